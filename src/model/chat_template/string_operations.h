// What Python's str methods compute, over Text: pieces keep their origins.
//
// Shared by the str methods and the filters of the same names. Pure but for charging the Runtime.
#pragma once

#include <cstdint>
#include <vector>

#include "model/chat_template/runtime.h"

namespace memdecay::jinja {

Text upper_text(Runtime& runtime, const Text& text);
Text lower_text(Runtime& runtime, const Text& text);
Text capitalize_text(Runtime& runtime, const Text& text);
/// str.title().
Text title_text(Runtime& runtime, const Text& text);

enum class Side : std::uint8_t { kLeft = 1, kRight = 2, kBoth = 3 };
/// Without `chars` (null): whitespace.
Text strip_text(const Text& text, const Text* chars, Side side);

/// At most `count` replacements, all where negative.
Text replace_text(Runtime& runtime, const Text& text, const Text& from, const Text& to,
                  std::int64_t count);

/// Pieces between separators (null: runs of whitespace), at most `limit` cuts where not negative.
std::vector<Text> split_text(Runtime& runtime, const Text& text, const Text* separator,
                             std::int64_t limit);
/// The same, cutting from the right.
std::vector<Text> split_text_right(Runtime& runtime, const Text& text, const Text* separator,
                                   std::int64_t limit);
std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends);

Text join_texts(Runtime& runtime, const Text& separator, const std::vector<Text>& parts);
/// `text` with `fill` on the sides: str.center, ljust, rjust.
Text pad_text(Runtime& runtime, const Text& text, std::int64_t width, char32_t fill, Side side);

}  // namespace memdecay::jinja
