// Chat messages as recordings hold them, brought to one form (trajectory.h).
//
// Content null or missing becomes an empty text, text parts are joined, arguments written as a JSON
// string become the object they say. What has the wrong type is kCorrupt with its place; what is
// not part of a chat message is left out, a "region" that is none of region.h too. Pure functions,
// any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/status.h"
#include "eval/runs/trajectory.h"

namespace memdecay {

/// A member that must be there. kCorrupt "PLACE: "name" is missing" or "... is no text".
Result<std::string> text_member(const nlohmann::ordered_json& object, const char* name,
                                const std::string& place);
/// An array that must be there.
Result<const nlohmann::ordered_json*> list_member(const nlohmann::ordered_json& object,
                                                  const char* name, const std::string& place);
/// A whole number, written as one or as text.
Result<std::int64_t> number_member(const nlohmann::ordered_json& object, const char* name,
                                   const std::string& place);
/// A name that may be a text or a number; "" where it is missing or something else.
std::string label_member(const nlohmann::ordered_json& object, const char* name);

/// One message in the common form.
Result<nlohmann::ordered_json> clean_message(const nlohmann::ordered_json& message,
                                             const std::string& place);
/// The list of messages in a record's member `name`; assistant turns count as recorded.
Result<Trajectory> trajectory_of(const nlohmann::ordered_json& record, const char* name,
                                 const std::string& place);

void add_message(Trajectory& trajectory, nlohmann::ordered_json message, bool recorded);
nlohmann::ordered_json chat_message(const char* role, std::string content);

/// A short, stable name for a text, blanks aside: runs on one issue share their task.
std::string task_of_text(std::string_view text);

}  // namespace memdecay
