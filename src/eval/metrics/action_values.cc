#include "eval/metrics/action_values.h"

#include <algorithm>
#include <array>

#include "core/ascii.h"
#include "core/check.h"
#include "eval/readers/parse_json.h"
#include "policy/regions/exact_values.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

bool is_word(char c) {
  return is_alnum(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// The first place of `value` as whole words in text[from, end), or npos.
std::size_t find_words(std::string_view text, std::string_view value, std::size_t from,
                       std::size_t end) {
  if (value.empty()) return std::string_view::npos;
  for (std::size_t at = text.find(value, from); at != std::string_view::npos;
       at = text.find(value, at + 1)) {
    const std::size_t stop = at + value.size();
    if (stop > end) break;
    const bool left = at == from || !is_word(value.front()) || !is_word(text[at - 1]);
    const bool right = stop >= end || !is_word(value.back()) || !is_word(text[stop]);
    if (left && right) return at;
  }
  return std::string_view::npos;
}

/// A scalar as templates write it: strings without quotes, escaped for JSON.
std::string json_form(const ordered_json& leaf) {
  std::string text = leaf.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (leaf.is_string()) text = text.substr(1, text.size() - 2);
  return text;
}

struct Wanted {
  ActionPart part;
  std::string escaped;
  std::string raw;
};

void want_leaves(const ordered_json& value, std::vector<Wanted>& wanted) {
  if (value.is_object() || value.is_array()) {
    for (const auto& item : value.items()) {
      if (value.is_object()) {
        wanted.push_back({ActionPart::kArgumentKey, json_form(item.key()), item.key()});
      }
      want_leaves(item.value(), wanted);
    }
    return;
  }
  std::string escaped = json_form(value);
  std::string raw = value.is_string() ? value.get<std::string>() : escaped;
  wanted.push_back({ActionPart::kArgumentValue, std::move(escaped), std::move(raw)});
}

/// Finds the pieces of one message.
class PieceFinder {
 public:
  PieceFinder(const RenderedTurns& turns, std::size_t message, const ActionOptions& options)
      : turns_(turns), message_(message), options_(options), extent_(turns.extents[message]) {}

  std::vector<ActionPiece> run() {
    const ordered_json& message = turns_.messages[message_];
    const std::string& content = message.at("content").get_ref<const std::string&>();
    content_ = place_of_content(content);
    if (message.contains("tool_calls")) {
      std::size_t at = content_.end;
      for (const ordered_json& call : message.at("tool_calls")) at = take_call(call, at);
    } else {
      take_text(content);
    }
    std::sort(pieces_.begin(), pieces_.end(), [](const ActionPiece& a, const ActionPiece& b) {
      return std::pair(a.bytes.begin, a.part) < std::pair(b.bytes.begin, b.part);
    });
    return std::move(pieces_);
  }

 private:
  /// Where the content stands; templates may trim it. Empty at the message's begin without one.
  TextSpan place_of_content(std::string_view content) {
    constexpr std::string_view kBlank = " \t\r\n";
    const std::size_t from = content.find_first_not_of(kBlank);
    if (from == std::string_view::npos) return {extent_.first_byte, extent_.first_byte};
    const std::string_view core = content.substr(from, content.find_last_not_of(kBlank) - from + 1);
    const std::size_t at = turns_.text.find(core, extent_.first_byte);
    if (at == std::string_view::npos || at + core.size() > extent_.end_byte)
      return {extent_.first_byte, extent_.first_byte};
    trimmed_ = from;
    return {static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + core.size())};
  }

  /// Name, keys and values of a call in their order from `at` on; returns where they end.
  std::size_t take_call(const ordered_json& call, std::size_t at) {
    const ordered_json& function = call.at("function");
    std::vector<Wanted> wanted;
    const std::string name = function.at("name").get<std::string>();
    wanted.push_back({ActionPart::kToolName, name, name});
    want_leaves(function.at("arguments"), wanted);
    for (const Wanted& one : wanted) at = take_wanted(one, at);
    return at;
  }

  std::size_t take_wanted(const Wanted& wanted, std::size_t at) {
    for (const std::string* form : {&wanted.escaped, &wanted.raw}) {
      const std::size_t found = find_words(turns_.text, *form, at, extent_.end_byte);
      if (found == std::string_view::npos) continue;
      add(wanted.part, found, found + form->size());
      return found + form->size();
    }
    return at;  // the template does not write it
  }

  void take_text(std::string_view content) {
    const PlainAction action = find_plain_action(content);
    if (!action.found() || content_.size() == 0) return;
    const auto place = [&](TextSpan span) { return content_.begin + span.begin - trimmed_; };
    if (action.json) {
      const auto parsed =
          parse_json(content.substr(action.whole.begin, action.whole.size()), "the message");
      if (!parsed.ok()) return;  // nested too deep to be a call
      const ordered_json& call = parsed.value();
      const bool whole = call.is_object() && call.contains("name") && call.at("name").is_string() &&
                         call.contains("arguments");
      if (whole) take_call({{"function", call}}, place(action.whole));
      return;
    }
    add(ActionPart::kToolName, place(action.name), place(action.name) + action.name.size());
    for (const TextSpan key : action.keys)
      add(ActionPart::kArgumentKey, place(key), place(key) + key.size());
    for (const TextSpan value : action.values)
      add(ActionPart::kArgumentValue, place(value), place(value) + value.size());
  }

  void add(ActionPart part, std::size_t begin, std::size_t end) {
    if (begin >= end) return;
    const TextSpan bytes = {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
    pieces_.push_back({part, bytes, static_cast<std::int32_t>(message_), -1});
    if (part == ActionPart::kArgumentValue) recall(bytes);
  }

  /// Marks a leaf as recalled, or the exact values in it.
  void recall(TextSpan leaf) {
    const std::string_view value = turns_.text.substr(leaf.begin, leaf.size());
    if (value.size() <= options_.longest_whole_bytes && recall_value(value, leaf)) return;
    for (const ExactValue& exact : find_exact_values(value)) {
      const std::string_view part = value.substr(exact.begin, exact.end - exact.begin);
      recall_value(part, {leaf.begin + exact.begin, leaf.begin + exact.end});
    }
  }

  bool recall_value(std::string_view value, TextSpan place) {
    if (value.size() < options_.smallest_bytes) return false;
    const std::int32_t mention = last_mention(value);
    if (mention < 0) return false;
    // The turn's own text may say it before the call does.
    const std::size_t first = find_words(turns_.text, value, content_.begin,
                                         std::max<std::size_t>(content_.end, place.end));
    const std::size_t begin = std::min<std::size_t>(first, place.begin);
    const TextSpan bytes = {static_cast<std::uint32_t>(begin),
                            static_cast<std::uint32_t>(begin + value.size())};
    const auto known = std::find_if(pieces_.begin(), pieces_.end(), [&](const ActionPiece& piece) {
      return piece.part == ActionPart::kRecalled && piece.bytes == bytes;
    });
    if (known == pieces_.end()) {
      pieces_.push_back(
          {ActionPart::kRecalled, bytes, static_cast<std::int32_t>(message_), mention});
    }
    return true;
  }

  std::int32_t last_mention(std::string_view value) const {
    for (std::size_t i = message_; i-- > 0;) {
      const MessageExtent& extent = turns_.extents[i];
      if (find_words(turns_.text, value, extent.first_byte, extent.end_byte) !=
          std::string_view::npos) {
        return static_cast<std::int32_t>(i);
      }
    }
    return -1;
  }

  const RenderedTurns& turns_;
  std::size_t message_;
  const ActionOptions& options_;
  const MessageExtent& extent_;
  TextSpan content_;
  std::size_t trimmed_ = 0;  // bytes of the content that the template left out at its begin
  std::vector<ActionPiece> pieces_;
};

}  // namespace

const char* action_part_name(ActionPart part) {
  constexpr std::array<const char*, kActionPartCount> kNames = {"tool_name", "argument_key",
                                                                "argument_value", "recalled"};
  return kNames[static_cast<std::size_t>(part)];
}

std::vector<ActionPiece> find_action_pieces(const RenderedTurns& turns, std::size_t message,
                                            const ActionOptions& options) {
  MEMDECAY_CHECK(message < turns.extents.size() && turns.messages.size() == turns.extents.size());
  if (turns.messages[message].at("role") != "assistant") return {};
  return PieceFinder(turns, message, options).run();
}

TokenSpan tokens_of_bytes(TextSpan bytes, std::span<const std::uint32_t> token_ends) {
  const auto first = std::upper_bound(token_ends.begin(), token_ends.end(), bytes.begin);
  auto last = std::lower_bound(first, token_ends.end(), bytes.end);
  if (last != token_ends.end() && bytes.end > bytes.begin) ++last;
  return {static_cast<std::int32_t>(first - token_ends.begin()),
          static_cast<std::int32_t>(last - token_ends.begin())};
}

}  // namespace memdecay
