// The context of a render: JSON to Values that know their message and part.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/chat_template/chat_template.h"
#include "model/chat_template/interpreter.h"

namespace memdecay::jinja {

/// Sets the variables of `context` and of `options` in `scope`. Throws for text that is not UTF-8
/// and numbers beyond 64 bits.
void import_context(Runtime& runtime, const nlohmann::ordered_json& context,
                    const RenderOptions& options, Scope* scope);

/// The "role" of each message, "" where it has none.
std::vector<std::string> message_roles(const nlohmann::ordered_json& context);

}  // namespace memdecay::jinja
