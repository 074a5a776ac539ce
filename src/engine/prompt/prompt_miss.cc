#include "engine/prompt/prompt_miss.h"

#include <algorithm>

namespace memdecay {
namespace {

class PromptWords final : public PromptText {
 public:
  PromptWords(const Model& model, const Prompt& prompt) : model_(model), prompt_(prompt) {}

  std::string text(std::span<const TokenId> tokens) const override {
    std::string text;
    for (const TokenId token : tokens) text += model_.token_text(token);
    return text;
  }

  TokenOrigin origin(Position position) const override {
    TokenOrigin origin;
    const auto at = static_cast<std::size_t>(position);
    if (at >= prompt_.origins.size()) return origin;
    origin.message = prompt_.origins[at].message;
    origin.in_tools = prompt_.origins[at].part == PromptPart::kToolSchema;
    const auto message = static_cast<std::size_t>(std::max(0, origin.message));
    if (origin.message >= 0 && message < prompt_.roles.size()) origin.role = prompt_.roles[message];
    return origin;
  }

 private:
  const Model& model_;
  const Prompt& prompt_;
};

}  // namespace

MissReport report_miss(const Model& model, const Prompt& prompt,
                       const PrefixDifference& difference) {
  return explain_miss(difference, static_cast<Position>(prompt.tokens.size()),
                      PromptWords(model, prompt));
}

std::string describe_miss(const Model& model, const Prompt& prompt,
                          const PrefixDifference& difference) {
  const MissReport report = report_miss(model, prompt, difference);
  const bool is_news = report.kind != MissKind::kHit && report.kind != MissKind::kNewText &&
                       report.kind != MissKind::kNoEntry;
  return is_news ? report.sentence() : std::string();
}

}  // namespace memdecay
