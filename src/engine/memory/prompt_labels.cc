#include "engine/memory/prompt_labels.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "policy/regions/exact_values.h"

namespace memdecay {
namespace {

/// Who says a token and in which part of what message.
struct Voice {
  Role role = Role::kUser;
  Part part = Part::kText;
  std::int32_t message = 0;
  friend bool operator==(const Voice&, const Voice&) = default;
};

Role role_named(std::string_view name) {
  if (name == "system" || name == "developer") return Role::kSystem;
  if (name == "assistant") return Role::kAssistant;
  if (name == "tool" || name == "function" || name == "ipython") return Role::kTool;
  return Role::kUser;
}

/// The part that text of this origin belongs to; none for what the template wrote around it.
std::optional<Part> part_of(PromptPart part) {
  switch (part) {
    case PromptPart::kReasoning:
      return Part::kReasoning;
    case PromptPart::kToolCallName:
    case PromptPart::kToolCallArguments:
      return Part::kToolCall;
    case PromptPart::kToolResult:
    case PromptPart::kDocument:
      return Part::kToolResult;
    case PromptPart::kContent:
      return Part::kText;
    default:
      return std::nullopt;
  }
}

/// Markup takes the part of what it stands before in its message, else of what it stands behind.
std::vector<Voice> voices_of(const Prompt& prompt) {
  const std::size_t count = prompt.tokens.size();
  std::vector<Voice> voices(count);
  if (prompt.roles.empty()) return voices;
  const auto messages = static_cast<std::int32_t>(prompt.roles.size());
  std::int32_t latest = -1;
  for (std::size_t i = 0; i < count; ++i) {
    const Origin& origin = prompt.origins[i];
    Voice& voice = voices[i];
    voice.message = origin.message;
    latest = std::max(latest, origin.message);
    if (origin.message >= 0) {
      voice.role = role_named(prompt.roles[static_cast<std::size_t>(origin.message)]);
    } else if (origin.from_template() && latest >= 0) {  // the head of the answer to come
      voice.message = messages;
      voice.role = Role::kAssistant;
    } else {
      voice.role = origin.part == PromptPart::kDocument ? Role::kTool : Role::kSystem;
    }
  }
  Part next = Part::kText;
  for (std::size_t i = count; i-- > 0;) {
    const std::optional<Part> own = part_of(prompt.origins[i].part);
    if (i + 1 < count && voices[i + 1].message != voices[i].message) next = Part::kText;
    next = own.value_or(next);
    voices[i].part = next;
  }
  for (std::size_t i = 1; i < count; ++i) {  // what stands behind the last part of its message
    const bool bare = !part_of(prompt.origins[i].part).has_value();
    const bool same_message = voices[i].message == voices[i - 1].message;
    if (bare && same_message && voices[i].part == Part::kText) voices[i].part = voices[i - 1].part;
  }
  return voices;
}

std::optional<Region> client_region(const Prompt& prompt, std::int32_t message) {
  const auto index = static_cast<std::size_t>(message);
  if (message < 0 || index >= prompt.client_regions.size()) return std::nullopt;
  return prompt.client_regions[index];
}

QueryPhase phase_of(const Voice& voice) {
  if (voice.role == Role::kTool || voice.part == Part::kToolResult) return QueryPhase::kTool;
  if (voice.role != Role::kAssistant) return QueryPhase::kOther;
  return voice.part == Part::kReasoning ? QueryPhase::kThink : QueryPhase::kAct;
}

/// Whether `a` gives way to `b` where one of them is too short to stand alone.
bool gives_way(const RegionSpan& a, const RegionSpan& b) {
  return a.region != b.region ? b.region < a.region : b.pinned && !a.pinned;
}

bool alike(const RegionSpan& a, const RegionSpan& b) {
  return a.region == b.region && a.tool_round == b.tool_round && a.tool_core == b.tool_core &&
         a.item == b.item && a.pinned == b.pinned;
}

/// Adds a span to the coarse list, joining it with the last where it may.
void add_span(RegionSpan span, std::int32_t smallest, std::vector<RegionSpan>& out) {
  if (!out.empty()) {
    RegionSpan& last = out.back();
    const bool short_pair = std::min(span.tokens.size(), last.tokens.size()) < smallest;
    if (alike(last, span) || (short_pair && last.message == span.message)) {
      const Position begin = last.tokens.begin;
      const Position end = span.tokens.end;
      if (gives_way(last, span)) last = span;
      last.tokens = {begin, end};
      return;
    }
  }
  out.push_back(span);
}

}  // namespace

std::vector<RegionSpan> coarsen(const std::vector<RegionSpan>& regions,
                                std::int32_t smallest_tokens) {
  std::vector<RegionSpan> out;
  for (const RegionSpan& span : regions) add_span(span, smallest_tokens, out);
  return out;
}

PromptLabels label_by_regions(const Prompt& prompt, std::span<const Region> regions) {
  MEMDECAY_CHECK(regions.size() == prompt.tokens.size());
  PromptLabels labels;
  labels.exact = mark_exact_tokens(find_exact_values(prompt.text), prompt.token_ends);
  labels.phases.assign(regions.size(), QueryPhase::kOther);
  std::vector<RegionSpan> spans;
  for (std::size_t begin = 0, end = 0; begin < regions.size(); begin = end) {
    while (end < regions.size() && regions[end] == regions[begin]) ++end;
    RegionSpan& span = spans.emplace_back();
    span.tokens = {static_cast<Position>(begin), static_cast<Position>(end)};
    span.region = regions[begin];
  }
  labels.regions = coarsen(spans, kSmallestRunTokens);
  return labels;
}

Result<PromptLabels> label_prompt(const Prompt& prompt, const RegionRuleOptions& options) {
  const std::vector<Voice> voices = voices_of(prompt);
  const std::size_t count = prompt.tokens.size();
  std::vector<std::vector<std::uint32_t>> ends;  // of each span, from its text's first byte
  std::vector<MessageSpan> spans;
  PromptLabels labels;
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin;
    const std::uint32_t first_byte = begin == 0 ? 0 : prompt.token_ends[begin - 1];
    auto& own_ends = ends.emplace_back();
    for (; end < count && voices[end] == voices[begin]; ++end) {
      own_ends.push_back(prompt.token_ends[end] - first_byte);
      labels.phases.push_back(phase_of(voices[end]));
    }
    MessageSpan& span = spans.emplace_back();
    span.role = voices[begin].role;
    span.part = voices[begin].part;
    span.message = voices[begin].message;
    span.client_region = client_region(prompt, span.message);
    span.text = std::string_view(prompt.text).substr(first_byte, own_ends.back());
    span.tokens = {static_cast<Position>(begin), static_cast<Position>(end)};
    const auto marks = mark_exact_tokens(find_exact_values(span.text), own_ends);
    labels.exact.insert(labels.exact.end(), marks.begin(), marks.end());
    begin = end;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) spans[i].token_ends = ends[i];
  RegionRules rules(options);
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<RegionSpan> regions, rules.classify(spans));
  labels.regions = coarsen(regions, kSmallestRunTokens);
  return labels;
}

}  // namespace memdecay
