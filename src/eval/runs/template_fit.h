// TemplateFit: makes a recorded conversation one that a model's chat template says in full.
//
// Some templates write only roles and contents: they would drop tool calls, or fail on them. For
// those, calls are written into the content, the way most small models were trained to write them:
//   <tool_call>\n{"name": ..., "arguments": ...}\n</tool_call>
// and results stay messages of the role "tool". Whether a template needs that is found by rendering
// one call with it. Pure functions of the model; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/model.h"

namespace memdecay {

/// Whether the model's template writes tool calls by itself. False without a template.
bool writes_tool_calls(const Model& model);

/// Tool calls moved into contents; everything else as it is.
nlohmann::ordered_json with_calls_as_text(nlohmann::ordered_json conversation);

/// The conversation as this model's template can say it.
nlohmann::ordered_json fit_to_template(const Model& model, nlohmann::ordered_json conversation);

}  // namespace memdecay
