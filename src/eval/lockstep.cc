#include "eval/lockstep.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "eval/log_probs.h"

namespace memdecay {
namespace {

/// One distribution: log-probabilities and the most likely token.
struct Prediction {
  std::vector<double> log_probs;
  TokenId top = 0;
};

Prediction predict(std::span<const float> logits) {
  Prediction prediction;
  prediction.log_probs.resize(logits.size());
  log_softmax(logits, prediction.log_probs);
  prediction.top =
      static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  return prediction;
}

double divergence(const Prediction& base, const Prediction& other) {
  double kl = 0;
  for (std::size_t i = 0; i < base.log_probs.size(); ++i)
    kl += std::exp(base.log_probs[i]) * (base.log_probs[i] - other.log_probs[i]);
  return std::max(0.0, kl);
}

TokenJudgement judge(const Prediction& base, const Prediction& other, int position, TokenId token) {
  TokenJudgement judgement;
  judgement.position = position;
  judgement.kl = divergence(base, other);
  judgement.log_probability = other.log_probs[static_cast<std::size_t>(token)];
  judgement.same_top = base.top == other.top;
  judgement.right = other.top == token;
  judgement.reference_right = base.top == token;
  return judgement;
}

}  // namespace

Result<std::unique_ptr<Lockstep>> Lockstep::open(Engine& engine,
                                                 std::span<const SessionOptions> memories) {
  std::unique_ptr<Lockstep> lockstep(new Lockstep(engine));
  SessionOptions everything;
  everything.policy = "none";
  everything.kv_forms = KvForms::kF16;
  std::vector<SessionOptions> all = {everything};
  all.insert(all.end(), memories.begin(), memories.end());
  for (const SessionOptions& options : all) {
    MEMDECAY_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, engine.open_session(options));
    lockstep->pointers_.push_back(session.get());
    lockstep->sessions_.push_back(std::move(session));
  }
  return lockstep;
}

/// Appends tokens; where they are judged, the token behind each is what its logits are asked for.
Status Lockstep::play_run(std::span<const TokenId> tokens, TokenId next, bool judged,
                          const OnToken& on_token) {
  const int begin = static_cast<int>(sessions_[0]->tokens().size());
  std::vector<Prediction> base(tokens.size());
  const auto tell = [&](std::size_t session, int position, std::span<const float> logits) {
    const auto at = static_cast<std::size_t>(position - begin);
    Prediction prediction = predict(logits);
    if (session == 0) {
      base[at] = std::move(prediction);
      return;
    }
    const TokenId token = at + 1 < tokens.size() ? tokens[at + 1] : next;
    on_token(session - 1, judge(base[at], prediction, position + 1, token));
  };
  return engine_.extend_together(pointers_, tokens,
                                 judged ? begin : std::numeric_limits<int>::max(), tell);
}

Status Lockstep::play(const Prompt& prompt, const PromptLabels& labels,
                      std::span<const std::uint8_t> judged, int chunk, const OnToken& on_token) {
  MEMDECAY_CHECK(judged.size() == prompt.tokens.size() && chunk > 0);
  for (Session* session : pointers_) engine_.label(*session, labels);
  const std::span<const TokenId> tokens(prompt.tokens);
  // The logits of token i are judged by token i + 1.
  const auto wanted = [&](std::size_t i) { return i + 1 < tokens.size() && judged[i + 1] != 0; };
  for (std::size_t begin = 0; begin < tokens.size();) {
    std::size_t end = begin + 1;
    while (end < tokens.size() && end - begin < static_cast<std::size_t>(chunk) &&
           wanted(end) == wanted(begin))
      ++end;
    const TokenId next = end < tokens.size() ? tokens[end] : -1;
    MEMDECAY_RETURN_IF_ERROR(
        play_run(tokens.subspan(begin, end - begin), next, wanted(begin), on_token));
    begin = end;
  }
  return Status();
}

}  // namespace memdecay
