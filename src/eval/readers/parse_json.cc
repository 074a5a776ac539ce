#include "eval/readers/parse_json.h"

#include <algorithm>

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// How deep arrays and objects nest, counted without recursion; brackets in strings do not count.
int nesting_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<ordered_json> parse_json(std::string_view text, const std::string& place) {
  if (nesting_of(text) > kDeepestJson) {
    return make_status(StatusCode::kCorrupt, "{}: values nest deeper than {} levels", place,
                       kDeepestJson);
  }
  try {
    return ordered_json::parse(text);
  } catch (const ordered_json::parse_error& error) {
    if (error.byte > text.size()) {
      return make_status(StatusCode::kCorrupt, "{}: the text ends in the middle of a JSON value",
                         place);
    }
    return make_status(StatusCode::kCorrupt, "{}: byte {} is not JSON", place, error.byte);
  } catch (const ordered_json::exception&) {  // a number that fits no type
    return make_status(StatusCode::kCorrupt, "{}: a number is out of range", place);
  }
}

bool is_json(std::string_view text) {
  return nesting_of(text) <= kDeepestJson && ordered_json::accept(text);
}

}  // namespace memdecay
