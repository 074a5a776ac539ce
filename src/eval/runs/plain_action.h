// Plain actions: tool calls that an agent wrote as text, in the manners of recorded runs.
//
//   <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>     models without call syntax
//   <command>\nopen "a.py"\n</command>                                SWE-agent
//   ```bash\ngrep -rn x .\n```                                        SWE-agent, mini-swe-agent
//
// The last of the text counts: agents explain first and act last. A command's name is its first
// word, options (-n, --depth) are keys, everything else is one value a word or quoted string; what
// follows the first line (a file's new text) is one value. Pure functions, any thread. O(text).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace memdecay {

/// Bytes [begin, end) of a text.
struct TextSpan {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t size() const { return end - begin; }
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};

struct PlainAction {
  TextSpan whole;     ///< the action itself, without fences; empty where the text has none
  bool json = false;  ///< whole is the JSON of a call
  TextSpan name;      ///< of a command
  std::vector<TextSpan> keys;
  std::vector<TextSpan> values;
  bool found() const { return whole.size() > 0; }
};

PlainAction find_plain_action(std::string_view content);

}  // namespace memdecay
