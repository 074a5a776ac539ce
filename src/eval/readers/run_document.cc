#include "eval/readers/run_document.h"

#include <algorithm>

#include "eval/readers/parse_json.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

std::string_view without_margins(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

/// Whether the text is JSON Lines: its first line is a whole value, and more follows.
bool is_lines(std::string_view text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return false;
  const std::string_view first = without_margins(text.substr(0, end));
  return (first.starts_with('{') || first.starts_with('[')) && is_json(first);
}

Status read_lines(std::string_view text, const std::string& place, RunDocument& document) {
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = without_margins(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty()) continue;
    const std::string here = fmt::format("{}, line {}", place, line);
    MEMDECAY_ASSIGN_OR_RETURN(ordered_json value, parse_json(one, here));
    document.records.push_back(std::move(value));
    document.places.push_back(here);
  }
  return Status();
}

}  // namespace

Result<RunDocument> parse_run_document(std::string_view text, const std::string& place) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // the mark some editors write
  RunDocument document{place, {}, {}};
  if (without_margins(text).empty()) {
    return make_status(StatusCode::kCorrupt, "{} holds no text", place);
  }
  if (is_lines(text)) {
    MEMDECAY_RETURN_IF_ERROR(read_lines(text, place, document));
    return document;
  }
  MEMDECAY_ASSIGN_OR_RETURN(ordered_json value, parse_json(without_margins(text), place));
  if (!value.is_array()) {
    document.records.push_back(std::move(value));
    document.places.push_back(place);
    return document;
  }
  for (ordered_json& element : value) {
    document.records.push_back(std::move(element));
    document.places.push_back(fmt::format("{}, element {}", place, document.records.size()));
  }
  if (document.records.empty())
    return make_status(StatusCode::kCorrupt, "{} holds an empty list", place);
  return document;
}

}  // namespace memdecay
