#include "eval/cells/session_eval.h"

#include <algorithm>
#include <utility>

#include "engine/extend_without_logits.h"
#include "eval/cells/cell_memories.h"
#include "eval/cells/lockstep.h"
#include "eval/cells/read_session.h"
#include "eval/cells/recall_eval.h"
#include "eval/cells/step_latency.h"
#include "eval/metrics/future_errors.h"
#include "eval/metrics/region_fates.h"

namespace memdecay {
namespace {

/// Bytes of a session's evictable pages, with what is kept to judge them, and of its tables.
std::uint64_t live_bytes(const Session& session, std::uint64_t full_bytes) {
  const std::uint64_t pages =
      session.memory() == nullptr ? full_bytes : session.memory()->tracked_bytes();
  return pages + session.sequence().memory().table_bytes;
}

/// The first token that is scored: with eviction after the fact, when most of a session is played.
std::size_t first_scored(std::size_t tokens, const SessionEvalOptions& options) {
  return options.after_the_fact ? tokens * 3 / 4 : 0;
}

/// Plays the session through a memory that forgets nothing and notes what each of the assistant's
/// steps reads.
Status record_future(Engine& engine, const ReadSession& read, const PassTokens& most,
                     FutureErrors& future) {
  SessionOptions options;
  options.policy = "recorder";
  options.own_policy = [&future](const PolicyOptions& policy) { return future.recorder(policy); };
  options.kv_forms = KvForms::kF16;
  options.evicts_when_asked = true;
  options.packs_pages = false;
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine.open_session(options));
  engine.label(*session, read.labels);
  const std::span<const TokenId> tokens(read.prompt.tokens);
  for (std::size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    // A pass is asked about once, for its last token.
    const auto chunk = static_cast<std::size_t>(read.judged[begin] != 0 ? most.written : most.read);
    while (end < tokens.size() && end - begin < chunk && read.judged[end] == read.judged[begin])
      ++end;
    MEMDECAY_RETURN_IF_ERROR(
        extend_without_logits(engine, *session, tokens.subspan(begin, end - begin)));
  }
  return Status();
}

/// The cells as memories of the session; only its first tokens are held when they evict after the
/// fact.
Result<std::vector<SessionOptions>> make_memories(const Engine& engine, const ReadSession& read,
                                                  std::span<const MemoryCell> cells,
                                                  const FutureErrors& future,
                                                  const SessionEvalOptions& options) {
  const std::size_t all = read.prompt.tokens.size();
  const std::size_t counted = options.after_the_fact ? first_scored(all, options) : all;
  const std::uint64_t token_bytes = engine.kv_bytes_per_token();
  const CellSession session{token_bytes * static_cast<std::uint64_t>(read.protected_tokens),
                            token_bytes * counted, options.seed, &future};
  MEMDECAY_ASSIGN_OR_RETURN(std::vector<SessionOptions> memories, cell_memories(cells, session));
  for (SessionOptions& memory : memories)
    memory.evicts_when_asked = options.after_the_fact && memory.policy != "none";
  return memories;
}

/// What is measured after each pass, and the one eviction after the fact.
class PassWatch {
 public:
  PassWatch(Engine& engine, Lockstep& lockstep, const ReadSession& read,
            std::span<const SessionOptions> memories, std::span<CellScores> scores,
            std::size_t shrink_from, std::vector<TurnEnd> timed)
      : engine_(engine),
        lockstep_(lockstep),
        memories_(memories),
        scores_(scores),
        shrink_from_(shrink_from),
        scoring_(shrink_from == 0),
        timed_(std::move(timed)),
        ages_(memories.size(), DropAges(read.regions)),
        evicted_pages_(memories.size()) {}

  std::size_t held() const { return lockstep_.tokens_played(); }
  /// Whether what a memory says of this token counts.
  bool scores(Position position) const {
    return scoring_ && static_cast<std::size_t>(position) > shrunk_at_;
  }

  Status after_pass() {
    if (!scoring_) {
      if (held() < shrink_from_) return Status();
      MEMDECAY_RETURN_IF_ERROR(shrink());
    }
    ++passes_;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (!lockstep_.status(i).ok()) continue;
      note_drops(i);
      const std::uint64_t bytes =
          live_bytes(lockstep_.session(i), held() * engine_.kv_bytes_per_token());
      scores_[i].mean_bytes += static_cast<double>(bytes);
      scores_[i].peak_bytes = std::max(scores_[i].peak_bytes, bytes);
    }
    return time_turn();
  }
  std::map<std::string, std::vector<LifeCount>> lives(std::size_t memory) const {
    return ages_[memory].lives(static_cast<Position>(held()));
  }
  double passes() const { return static_cast<double>(std::max<std::uint64_t>(1, passes_)); }

 private:
  Status shrink() {
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      if (!memories_[i].evicts_when_asked) continue;
      MEMDECAY_RETURN_IF_ERROR(lockstep_.shrink(i, memories_[i].budget_bytes));
    }
    scoring_ = true;
    shrunk_at_ = held();
    return Status();
  }

  /// Where a turn ends that is to be timed: what a step costs each memory then.
  Status time_turn() {
    if (next_timed_ == timed_.size() || held() < timed_[next_timed_].tokens) return Status();
    const std::int32_t turn = timed_[next_timed_++].turn;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (!lockstep_.status(i).ok()) continue;
      MEMDECAY_ASSIGN_OR_RETURN(const std::vector<StepSample> steps,
                                time_steps(engine_, lockstep_.session(i), turn));
      scores_[i].steps.insert(scores_[i].steps.end(), steps.begin(), steps.end());
    }
    return Status();
  }

  void note_drops(std::size_t memory) {
    const Session& session = lockstep_.session(memory);
    if (session.memory() == nullptr) return;
    const std::int64_t evicted = session.memory()->evicted_pages();
    if (evicted == evicted_pages_[memory]) return;
    evicted_pages_[memory] = evicted;
    ages_[memory].look(engine_.held_tokens(session), static_cast<Position>(held()));
  }

  Engine& engine_;
  Lockstep& lockstep_;
  std::span<const SessionOptions> memories_;
  std::span<CellScores> scores_;
  std::size_t shrink_from_;
  bool scoring_;
  std::vector<TurnEnd> timed_;
  std::size_t next_timed_ = 0;
  std::vector<DropAges> ages_;               ///< [memories]
  std::vector<std::int64_t> evicted_pages_;  ///< [memories], when they were last looked at
  std::size_t shrunk_at_ = 0;
  std::uint64_t passes_ = 0;
};

Status evaluate_group(Engine& engine, const ReadSession& read, std::span<const MemoryCell> cells,
                      const FutureErrors& future, const SessionEvalOptions& options,
                      std::span<Result<CellScores>> results,
                      const std::function<void(double)>& on_progress) {
  const std::uint64_t token_bytes = engine.kv_bytes_per_token();
  const auto tokens = read.prompt.tokens.size();
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<SessionOptions> memories,
                            make_memories(engine, read, cells, future, options));
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Lockstep> lockstep,
                            Lockstep::open(engine, memories));
  std::vector<CellScores> scores(cells.size());
  PassWatch watch(engine, *lockstep, read, memories, scores, first_scored(tokens, options),
                  spread_turn_ends(read.judged, first_scored(tokens, options), kTimedTurns));
  std::vector<DecisionMetrics> metrics(cells.size());
  for (const ActionPiece& piece : read.pieces) {
    const TokenSpan span = tokens_of_bytes(piece.bytes, read.prompt.token_ends);
    for (DecisionMetrics& one : metrics)
      one.add_piece(piece.part, span, read.episode[static_cast<std::size_t>(span.begin)]);
  }
  MEMDECAY_RETURN_IF_ERROR(lockstep->play(
      read.prompt.tokens, read.labels, read.judged, options.pass_tokens,
      [&](const ComparedToken& token) {
        if (!watch.scores(token.position)) return;
        metrics[token.memory].add(token.position,
                                  read.episode[static_cast<std::size_t>(token.position)],
                                  token.token, token.reference_logits, token.logits);
      },
      [&] {
        on_progress(static_cast<double>(watch.held()) / static_cast<double>(tokens));
        return watch.after_pass();
      }));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!lockstep->status(i).ok()) {
      results[i] = lockstep->status(i);
      continue;
    }
    const Session& session = lockstep->session(i);
    scores[i].episodes = metrics[i].episodes();
    scores[i].mean_bytes /= watch.passes();
    scores[i].full_bytes = token_bytes * tokens;
    scores[i].kept = kept_shares(read.regions, engine.held_tokens(session));
    scores[i].lives = watch.lives(i);
    if (session.memory() != nullptr) {
      scores[i].evicted_tokens = session.memory()->evicted_tokens();
      scores[i].recomputed_tokens = session.memory()->recomputed_tokens();
      scores[i].eviction_ms_per_token =
          1000 * session.memory()->eviction_seconds() / static_cast<double>(tokens);
    }
    results[i] = std::move(scores[i]);
  }
  return Status();
}

/// Facts are asked for where memories forget as they go; cells that have no scores are not asked.
Status add_recall(Engine& engine, const ChainedSession& session, std::span<const MemoryCell> cells,
                  const SessionEvalOptions& options, const std::function<void(double)>& on_progress,
                  SessionScores& scores) {
  std::vector<MemoryCell> asked;
  std::vector<std::size_t> cell_of;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (!scores[i].ok()) continue;
    asked.push_back(cells[i]);
    cell_of.push_back(i);
  }
  const RecallOptions recall{options.cells_at_once, options.pass_tokens, options.label_noise,
                             options.seed};
  MEMDECAY_ASSIGN_OR_RETURN(std::vector<Result<std::vector<ProbeScore>>> probes,
                            ask_for_facts(engine, session, asked, recall, on_progress));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (probes[i].ok()) {
      scores[cell_of[i]]->probes = std::move(probes[i]).value();
    } else {
      scores[cell_of[i]] = probes[i].status();
    }
  }
  return Status();
}

}  // namespace

Result<SessionScores> evaluate_session(Engine& engine, const ChainedSession& session,
                                       std::span<const MemoryCell> cells,
                                       const SessionEvalOptions& options,
                                       const std::function<void(double)>& on_progress) {
  MEMDECAY_ASSIGN_OR_RETURN(
      const ReadSession read,
      read_session(engine.model(), session, options.label_noise, options.seed));
  FutureErrors future;
  if (std::any_of(cells.begin(), cells.end(), [](const MemoryCell& c) { return c.is_oracle(); }))
    MEMDECAY_RETURN_IF_ERROR(record_future(engine, read, options.pass_tokens, future));
  SessionScores scores(cells.size(), CellScores());
  const double own_share = options.asks_for_facts ? 0.5 : 1.0;
  const auto group = static_cast<std::size_t>(std::max(1, options.cells_at_once));
  for (std::size_t begin = 0; begin < cells.size(); begin += group) {
    const std::size_t count = std::min(group, cells.size() - begin);
    const auto tell = [&](double share) {
      const double done = static_cast<double>(begin) + share * static_cast<double>(count);
      on_progress(own_share * done / static_cast<double>(cells.size()));
    };
    const Status status = evaluate_group(engine, read, cells.subspan(begin, count), future, options,
                                         std::span(scores).subspan(begin, count), tell);
    if (!status.ok()) return status.with_context(session.id);
  }
  if (options.asks_for_facts) {
    const auto tell = [&](double share) { on_progress(own_share + (1 - own_share) * share); };
    MEMDECAY_RETURN_IF_ERROR(add_recall(engine, session, cells, options, tell, scores));
  }
  return scores;
}

}  // namespace memdecay
