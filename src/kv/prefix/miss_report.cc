#include "kv/prefix/miss_report.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/check.h"

namespace memdecay {
namespace {

using Cause = PrefixDifference::Cause;

MissKind kind_of(Cause cause) {
  switch (cause) {
    case Cause::kNone:
      return MissKind::kHit;
    case Cause::kNewText:
      return MissKind::kNewText;
    case Cause::kNoEntry:
      return MissKind::kNoEntry;
    case Cause::kEvicted:
      return MissKind::kEvicted;
    case Cause::kOtherBorders:
      return MissKind::kOtherBorders;
    case Cause::kShortPage:
      return MissKind::kShortPage;
    case Cause::kBudget:
      return MissKind::kBudget;
    case Cause::kOtherSalt:
      return MissKind::kOtherSalt;
    case Cause::kDiffers:
      break;
  }
  return MissKind::kEditedMessage;
}

/// For a log line: short, on one line, in quotes.
std::string quoted(std::string_view text, bool end_of_it) {
  constexpr std::size_t kMost = 40;
  if (text.size() > kMost)
    text = end_of_it ? text.substr(text.size() - kMost) : text.substr(0, kMost);
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n')
      result += "\\n";
    else if (c == '"' || c == '\\')
      result += {'\\', c};
    else
      result.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c);
  }
  return result + "\"";
}

const char* reason(MissKind kind) {
  switch (kind) {
    case MissKind::kHit:
      return "everything was found";
    case MissKind::kNewText:
      return "everything is new";
    case MissKind::kNoEntry:
      return "nothing like it is remembered";
    case MissKind::kEvicted:
      return "it was remembered, and evicted for want of room";
    case MissKind::kOtherBorders:
      return "it is remembered, but cut into other pages";
    case MissKind::kShortPage:
      return "a page is not full there, and a model with sliding windows shares full pages only";
    case MissKind::kBudget:
      return "the session's own budget holds no more of it";
    case MissKind::kOtherSalt:
      return "another tenant has more of it, and tenants do not share";
    case MissKind::kClock:
      return "a time or date differs";
    case MissKind::kIdentifier:
      return "an identifier differs";
    case MissKind::kDifferentTools:
      return "the tool definitions differ";
    case MissKind::kEditedMessage:
      break;
  }
  return "the text differs";
}

}  // namespace

MissReport explain_miss(const PrefixDifference& difference, Position planned_tokens,
                        const PromptText& prompt) {
  MEMDECAY_CHECK(difference.matched_tokens <= planned_tokens);
  MissReport report;
  report.kind = kind_of(difference.cause);
  report.planned_tokens = planned_tokens;
  report.matched_tokens = difference.matched_tokens;
  const bool differs = difference.cause == Cause::kDiffers;
  report.first_missed_token = differs ? difference.equal_tokens : difference.matched_tokens;
  if (report.first_missed_token >= planned_tokens) return report;
  const TokenOrigin origin = prompt.origin(report.first_missed_token);
  report.message = origin.message;
  report.role = origin.role;
  if (!differs) return report;
  report.before = prompt.text(difference.before);
  report.remembered = prompt.text(difference.remembered);
  report.planned = prompt.text(difference.planned);
  report.kind =
      classify_difference({report.before, report.remembered, report.planned, origin.in_tools});
  return report;
}

std::string MissReport::sentence() const {
  std::string text = fmt::format("{}: {} of {} tokens were found; ", miss_kind_name(kind),
                                 matched_tokens, planned_tokens);
  if (kind == MissKind::kHit) return text + reason(kind);
  text += fmt::format("from token {}", first_missed_token);
  if (message >= 0) text += fmt::format(" (message {}, {})", message, role);
  text += fmt::format(" {}", reason(kind));
  if (!remembered.empty() || !planned.empty())
    text += fmt::format(": after {} comes {} where {} is remembered", quoted(before, true),
                        quoted(planned, false), quoted(remembered, false));
  return text;
}

}  // namespace memdecay
