// str(), repr() and json.dumps() of Values, byte for byte as Python writes them.
//
// Every character keeps the origin of the value it came from; brackets and commas take their
// container's. Objects whose Python text is a memory address are kUnsupported.
#pragma once

#include <optional>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

/// str(value).
Text to_text(Runtime& runtime, const Value& value);
Text repr_text(Runtime& runtime, const Value& value);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<Text> indent;  ///< one level of it
  Text item_separator;
  Text key_separator;
};
Text json_text(Runtime& runtime, const Value& value, const JsonStyle& style);

/// The characters that HTML minds, escaped as markupsafe does it.
Text escape_html(const Text& text);

}  // namespace memdecay::jinja
