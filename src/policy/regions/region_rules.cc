#include "policy/regions/region_rules.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/ascii.h"
#include "policy/regions/exact_values.h"

namespace memdecay {
namespace {

constexpr std::array<std::string_view, 20> kDecisionWords = {
    "decision:",     "decided",    "i will use",   "we will use", "let's go with",
    "plan:",         "conclusion", "final answer", "must not",    "do not forget",
    "remember that", "important:", "never ",       "always ",     "confirmed",
    "agreed",        "[decision]", "<decision>",   "i choose",    "we choose"};
constexpr std::array<std::string_view, 12> kErrorWords = {
    "error",  "exception", "traceback", "failed", "failure",   "fatal",
    "denied", "not found", "invalid",   "panic",  "undefined", "refused"};

struct Mark {
  Region region;
  RegionReason reason;
  bool core;
};

template <std::size_t n>
bool has_word(std::string_view lower, const std::array<std::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    return lower.find(word) != std::string_view::npos;
  });
}

/// The end of the piece that starts at `at`: a line, or (in prose) a sentence.
std::size_t piece_end(std::string_view text, std::size_t at, bool prose) {
  while (at < text.size()) {
    const char c = text[at++];
    if (c == '\n') break;
    const bool stop = c == '.' || c == '!' || c == '?';
    if (prose && stop && (at == text.size() || text[at] == ' ')) break;
  }
  return at;
}

/// Marks tokens that share a byte with [begin, end) of the text.
void mark_bytes(const MessageSpan& span, std::size_t begin, std::size_t end, Mark mark,
                std::vector<Mark>& marks) {
  auto first = std::upper_bound(span.token_ends.begin(), span.token_ends.end(), begin);
  for (auto i = static_cast<std::size_t>(first - span.token_ends.begin());
       i < marks.size() && (i == 0 ? 0 : span.token_ends[i - 1]) < end; ++i) {
    marks[i] = mark;
  }
}

void mark_pieces(const MessageSpan& span, bool prose, Mark mark, std::vector<Mark>& marks) {
  const std::string lower = lower_case(span.text);
  for (std::size_t begin = 0; begin < lower.size();) {
    const std::size_t end = piece_end(lower, begin, prose);
    const auto piece = std::string_view(lower).substr(begin, end - begin);
    const bool hit = prose ? has_word(piece, kDecisionWords) : has_word(piece, kErrorWords);
    if (hit) mark_bytes(span, begin, end, mark, marks);
    begin = end;
  }
}

void close_small_gaps(std::int32_t smallest, Mark kept, std::vector<Mark>& marks) {
  for (std::size_t begin = 0; begin < marks.size();) {
    std::size_t end = begin;
    while (end < marks.size() && marks[end].core == marks[begin].core) ++end;
    if (!marks[begin].core && end - begin < static_cast<std::size_t>(smallest)) {
      std::fill(marks.begin() + static_cast<std::ptrdiff_t>(begin),
                marks.begin() + static_cast<std::ptrdiff_t>(end), kept);
    }
    begin = end;
  }
}

/// A6: the tokens beside a mark of that region take the region too.
void spread(std::int32_t reach, Region region, std::vector<Mark>& marks) {
  const std::vector<Mark> before = marks;
  const auto count = static_cast<std::ptrdiff_t>(marks.size());
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    if (before[static_cast<std::size_t>(i)].region != region) continue;
    const std::ptrdiff_t last = std::min<std::ptrdiff_t>(count - 1, i + reach);
    for (std::ptrdiff_t j = std::max<std::ptrdiff_t>(0, i - reach); j <= last; ++j) {
      Mark& mark = marks[static_cast<std::size_t>(j)];
      if (mark.region > region) {
        mark = {region, RegionReason::kNeighbour, before[static_cast<std::size_t>(i)].core};
      }
    }
  }
}

std::vector<Mark> tool_result_marks(const MessageSpan& span, const RegionRuleOptions& options) {
  const Mark kept = {Region::kTool, RegionReason::kKeptResult, true};
  const Mark raw = {Region::kOrdinary, RegionReason::kRawResult, false};
  const auto count = static_cast<std::size_t>(span.tokens.size());
  if (span.tokens.size() <= options.whole_result_tokens) return std::vector<Mark>(count, kept);
  std::vector<Mark> marks(count, raw);
  const auto head =
      static_cast<std::size_t>(std::min(options.result_head_tokens, span.tokens.size()));
  std::fill_n(marks.begin(), head, kept);
  if (!span.token_ends.empty()) {
    mark_pieces(span, /*prose=*/false, kept, marks);
    const auto exact = mark_exact_tokens(find_exact_values(span.text), span.token_ends);
    for (std::size_t i = 0; i < count; ++i) {
      if (exact[i] != 0) marks[i] = kept;
    }
    spread(options.neighbours, Region::kTool, marks);
  }
  close_small_gaps(options.smallest_raw_tokens, kept, marks);
  return marks;
}

std::vector<Mark> marks_of(const MessageSpan& span, bool goal, const RegionRuleOptions& options) {
  const auto count = static_cast<std::size_t>(span.tokens.size());
  const bool tool = span.part == Part::kToolCall || span.part == Part::kToolResult;
  const auto all = [&](Region region, RegionReason reason) {
    return std::vector<Mark>(count, Mark{region, reason, tool});
  };
  if (span.client_region.has_value()) return all(*span.client_region, RegionReason::kClient);
  if (span.role == Role::kSystem) return all(Region::kSystem, RegionReason::kSystemText);
  if (goal) return all(Region::kDecision, RegionReason::kGoal);
  if (span.part == Part::kToolCall) return all(Region::kTool, RegionReason::kToolCall);
  if (span.part == Part::kToolResult) return tool_result_marks(span, options);
  if (span.part == Part::kReasoning) return all(Region::kOrdinary, RegionReason::kReasoning);
  std::vector<Mark> marks = all(Region::kRecent, RegionReason::kDialogue);
  if (span.token_ends.empty()) return marks;
  mark_pieces(span, /*prose=*/true, {Region::kDecision, RegionReason::kDecisionWords, false},
              marks);
  spread(options.neighbours, Region::kDecision, marks);
  return marks;
}

Status check(const MessageSpan& span, Position expected) {
  const auto invalid = [](const char* what, Position at) {
    return make_status(StatusCode::kInvalidArgument, "the span at token {} {}", at, what);
  };
  const Position at = span.tokens.begin;
  if (at != expected) return invalid("does not follow the one before it", at);
  if (span.tokens.end < at) return invalid("ends before it begins", at);
  if (span.token_ends.empty()) return Status();
  if (span.token_ends.size() != static_cast<std::size_t>(span.tokens.size())) {
    return invalid("has another number of token ends than tokens", at);
  }
  if (!std::is_sorted(span.token_ends.begin(), span.token_ends.end()) ||
      span.token_ends.back() > span.text.size()) {
    return invalid("has token ends that fall or pass its text", at);
  }
  return Status();
}

}  // namespace

bool RegionRules::is_goal(const MessageSpan& span) const {
  return span.role == Role::kUser && span.part == Part::kText && span.message == goal_message_;
}

void RegionRules::enter_round(const MessageSpan& span) {
  if (span.part != Part::kToolCall || span.message == call_message_) return;
  call_message_ = span.message;
  ++tool_rounds_;
}

void RegionRules::classify_one(const MessageSpan& span, std::vector<RegionSpan>& out) {
  if (goal_message_ < 0 && span.role == Role::kUser && span.part == Part::kText) {
    goal_message_ = span.message;
  }
  enter_round(span);
  const bool goal = is_goal(span);
  const bool tool = span.part == Part::kToolCall || span.part == Part::kToolResult;
  const bool counted = span.role == Role::kSystem || goal || span.part == Part::kToolResult;
  if (counted && item_message_ != span.message) {
    item_message_ = span.message;
    ++items_;
  }
  const std::vector<Mark> marks = marks_of(span, goal, options_);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    RegionSpan next;
    next.tokens.begin = span.tokens.begin + static_cast<Position>(i);
    next.tokens.end = next.tokens.begin + 1;
    next.region = marks[i].region;
    next.reason = marks[i].reason;
    next.message = span.message;
    next.tool_round = tool && tool_rounds_ > 0 ? tool_rounds_ - 1 : kNoToolRound;
    next.tool_core = next.tool_round != kNoToolRound && marks[i].core;
    next.item = counted ? items_ - 1 : kNoItem;
    const bool pinned_goal = goal && goal_tokens_ < options_.pinned_goal_tokens;
    goal_tokens_ += goal ? 1 : 0;
    next.pinned = next.region == Region::kSystem || pinned_goal;
    if (!out.empty()) {
      RegionSpan& last = out.back();
      RegionSpan same = next;
      same.tokens = last.tokens;
      if (same == last) {
        last.tokens.end = next.tokens.end;
        continue;
      }
    }
    out.push_back(next);
  }
}

Result<std::vector<RegionSpan>> RegionRules::classify(std::span<const MessageSpan> spans) {
  Position expected = end_;
  for (const MessageSpan& span : spans) {
    MEMDECAY_RETURN_IF_ERROR(check(span, expected));
    expected = span.tokens.end;
  }
  std::vector<RegionSpan> out;
  for (const MessageSpan& span : spans) classify_one(span, out);
  end_ = expected;
  return out;
}

}  // namespace memdecay
