#include "eval/cells/recall_eval.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/log_softmax.h"
#include "eval/cells/cell_memories.h"
#include "eval/cells/lockstep.h"
#include "eval/cells/read_session.h"
#include "eval/runs/template_fit.h"
#include "policy/region.h"

namespace memdecay {
namespace {

constexpr double kAskedAt[] = {0.5, 1.0};

/// A probe's question and reply behind the tokens that the sessions hold.
struct Question {
  std::vector<TokenId> tokens;
  std::vector<std::uint8_t> judged;  ///< [tokens]: 1 in the answer
  PromptLabels labels;               ///< of the whole prompt
  std::size_t common = 0;            ///< tokens that the sessions hold already
};

Result<Question> render_question(const Model& model, const ProbedSession& probed,
                                 const RecallProbe& probe, std::span<const TokenId> held) {
  const auto conversation = fit_to_template(model, asked_conversation(probed, probe));
  MEMDECAY_ASSIGN_OR_RETURN(const Prompt prompt, render_prompt(model, conversation, false));
  Question question;
  MEMDECAY_ASSIGN_OR_RETURN(question.labels, label_prompt(prompt));
  const auto common =
      std::mismatch(held.begin(), held.end(), prompt.tokens.begin(), prompt.tokens.end()).first;
  question.common = static_cast<std::size_t>(common - held.begin());
  question.tokens.assign(prompt.tokens.begin() + static_cast<std::ptrdiff_t>(question.common),
                         prompt.tokens.end());
  question.judged.assign(question.tokens.size(), 0);
  const std::size_t answer = prompt.text.rfind(probe.answer);
  if (answer == std::string::npos) {
    return make_status(StatusCode::kInvalidArgument, "the template lost the answer \"{}\"",
                       probe.answer);
  }
  const TextSpan bytes{static_cast<std::uint32_t>(answer),
                       static_cast<std::uint32_t>(answer + probe.answer.size())};
  const TokenSpan span = tokens_of_bytes(bytes, prompt.token_ends);
  for (std::int32_t i = span.begin; i < span.end; ++i)
    question.judged[static_cast<std::size_t>(i) - question.common] = 1;
  return question;
}

bool is_first(std::span<const float> logits, TokenId token) {
  return std::max_element(logits.begin(), logits.end()) - logits.begin() == token;
}

/// Sums over an answer's tokens as they come.
class AnswerScore {
 public:
  void add(const ComparedToken& token) {
    ++tokens_;
    right_full_ = right_full_ && is_first(token.reference_logits, token.token);
    right_ = right_ && is_first(token.logits, token.token);
    log_prob_full_ += log_prob(token.reference_logits, token.token);
    log_prob_ += log_prob(token.logits, token.token);
  }
  void finish(ProbeScore& score) const {
    const double tokens = std::max(1, tokens_);
    score.right_full = tokens_ > 0 && right_full_;
    score.right = tokens_ > 0 && right_;
    score.log_prob_full = log_prob_full_ / tokens;
    score.log_prob = log_prob_ / tokens;
  }

 private:
  static double log_prob(std::span<const float> logits, TokenId token) {
    return static_cast<double>(logits[static_cast<std::size_t>(token)]) - log_sum_exp(logits);
  }
  int tokens_ = 0;
  bool right_full_ = true, right_ = true;
  double log_prob_full_ = 0, log_prob_ = 0;
};

/// One group of cells through the planted session.
class FactPlay {
 public:
  FactPlay(Engine& engine, const ProbedSession& probed, const ReadSession& read,
           std::span<Result<std::vector<ProbeScore>>> scores, const PassTokens& most)
      : engine_(engine), probed_(probed), read_(read), scores_(scores), most_(most) {}

  Status run(std::span<const SessionOptions> memories,
             const std::function<void(double)>& on_progress) {
    MEMDECAY_ASSIGN_OR_RETURN(lockstep_, Lockstep::open(engine_, memories));
    std::vector<const RecallProbe*> probes;
    for (const RecallProbe& probe : probed_.probes) probes.push_back(&probe);
    std::sort(probes.begin(), probes.end(), [](const RecallProbe* a, const RecallProbe* b) {
      return a->asked_after != b->asked_after ? a->asked_after < b->asked_after : a < b;
    });
    for (std::size_t i = 0; i < probes.size(); ++i) {
      MEMDECAY_RETURN_IF_ERROR(play_until(probes[i]->asked_after));
      MEMDECAY_RETURN_IF_ERROR(ask(*probes[i]));
      on_progress(static_cast<double>(i + 1) / static_cast<double>(probes.size()));
    }
    return Status();
  }

 private:
  Status play_until(std::int32_t message) {
    const auto end =
        static_cast<std::size_t>(read_.extents[static_cast<std::size_t>(message)].end_token);
    if (end <= played_) return Status();
    const auto tokens = std::span(read_.prompt.tokens).subspan(played_, end - played_);
    const auto judged = std::span(read_.judged).subspan(played_, end - played_);
    played_ = end;
    return lockstep_->play(
        tokens, read_.labels, judged, most_, [](const ComparedToken&) {}, [] { return Status(); });
  }

  Status ask(const RecallProbe& probe) {
    const auto held = std::span<const TokenId>(read_.prompt.tokens).first(played_);
    MEMDECAY_ASSIGN_OR_RETURN(Question question,
                              render_question(engine_.model(), probed_, probe, held));
    MEMDECAY_ASSIGN_OR_RETURN(const auto fork, lockstep_->fork(question.common));
    std::vector<AnswerScore> answers(scores_.size());
    MEMDECAY_RETURN_IF_ERROR(fork->play(
        question.tokens, question.labels, question.judged, most_,
        [&](const ComparedToken& token) { answers[token.memory].add(token); },
        [] { return Status(); }));
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (!fork->status(i).ok()) scores_[i] = fork->status(i);
      if (!scores_[i].ok()) continue;
      ProbeScore score;
      score.kind = probe_kind_name(probe.kind);
      score.region = region_name(probe.region);
      score.depth = probe.depth;
      score.age = static_cast<double>(probe.age_tokens) /
                  static_cast<double>(std::max(1, probed_.session.tokens));
      answers[i].finish(score);
      scores_[i]->push_back(std::move(score));
    }
    return Status();
  }

  Engine& engine_;
  const ProbedSession& probed_;
  const ReadSession& read_;
  std::span<Result<std::vector<ProbeScore>>> scores_;
  PassTokens most_;
  std::unique_ptr<Lockstep> lockstep_;
  std::size_t played_ = 0;
};

/// Tokens that questions may need behind the session.
constexpr std::size_t kQuestionTokens = 256;
/// Rows beside each fact: as many of these as the context has room for.
constexpr std::int32_t kDecoys[] = {7, 3, 1};

struct PlantedSession {
  ProbedSession probed;
  ReadSession read;
};

/// Nothing where even the fewest rows make the session longer than the context.
Result<std::optional<PlantedSession>> plant_what_fits(const Engine& engine,
                                                      const ChainedSession& session,
                                                      const RecallOptions& options) {
  ProbeOptions probes;
  probes.seed = options.seed;
  probes.ask_at.assign(std::begin(kAskedAt), std::end(kAskedAt));
  for (const std::int32_t decoys : kDecoys) {
    probes.decoys = decoys;
    MEMDECAY_ASSIGN_OR_RETURN(ProbedSession probed, plant_probes(session, probes));
    MEMDECAY_ASSIGN_OR_RETURN(ReadSession read, read_session(engine.model(), probed.session,
                                                             options.label_noise, options.seed));
    const std::size_t longest = read.prompt.tokens.size() + kQuestionTokens;
    if (longest <= static_cast<std::size_t>(engine.context_tokens()))
      return std::optional<PlantedSession>({std::move(probed), std::move(read)});
  }
  return std::optional<PlantedSession>();
}

}  // namespace

Result<std::vector<Result<std::vector<ProbeScore>>>> ask_for_facts(
    Engine& engine, const ChainedSession& session, std::span<const MemoryCell> cells,
    const RecallOptions& options, const std::function<void(double)>& on_progress) {
  using CellProbes = Result<std::vector<ProbeScore>>;
  std::vector<CellProbes> scores(cells.size(), std::vector<ProbeScore>());
  std::vector<MemoryCell> asked;
  std::vector<std::size_t> cell_of;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].is_oracle()) continue;
    asked.push_back(cells[i]);
    cell_of.push_back(i);
  }
  std::optional<PlantedSession> planted;
  if (!asked.empty()) {
    MEMDECAY_ASSIGN_OR_RETURN(planted, plant_what_fits(engine, session, options));
  }
  if (!planted.has_value()) {
    on_progress(1);
    return scores;
  }
  const ReadSession& read = planted->read;
  const std::size_t tokens = read.prompt.tokens.size();
  const std::uint64_t token_bytes = engine.kv_bytes_per_token();
  MEMDECAY_ASSIGN_OR_RETURN(
      const std::vector<SessionOptions> memories,
      cell_memories(asked, {token_bytes * static_cast<std::uint64_t>(read.protected_tokens),
                            token_bytes * tokens, options.seed, nullptr}));
  const auto group = static_cast<std::size_t>(std::max(1, options.cells_at_once));
  for (std::size_t begin = 0; begin < asked.size(); begin += group) {
    const std::size_t count = std::min(group, asked.size() - begin);
    std::vector<CellProbes> of_group(count, std::vector<ProbeScore>());
    FactPlay play(engine, planted->probed, read, of_group, options.pass_tokens);
    const Status status = play.run(std::span(memories).subspan(begin, count), [&](double share) {
      const double done = static_cast<double>(begin) + share * static_cast<double>(count);
      on_progress(done / static_cast<double>(asked.size()));
    });
    if (!status.ok()) return status.with_context(session.id);
    for (std::size_t i = 0; i < count; ++i) scores[cell_of[begin + i]] = std::move(of_group[i]);
  }
  return scores;
}

}  // namespace memdecay
