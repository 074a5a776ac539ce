// Engine: the one place where model, paged memory and scheduling meet.
//
// Owns, in teardown order: sessions' pages (KvCache), the transformer's buffers, the model, the
// thread team. One thread, the engine's, calls everything here; callbacks run on it: they may call
// submit() and cancel(), and on_done may also close its session. Requests of
// several sessions share forward passes: each step plans decode tokens first and slices of prompts
// after them (sched/batch_planner.h).
//
// Results do not depend on what else is in a pass, on thread count, page placement or chunking
// (transformer.h). Under a budget sessions are kept within it by their policy
// (memory_coordinator.h): a pass that finds no room has room made for it, and between passes a few
// pages a step are demoted or dropped before it comes to that. Where the rest is protected, no room
// is an answer: the request ends with kNoMemory and its session keeps what it holds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/status.h"
#include "engine/engine_options.h"
#include "engine/generation.h"
#include "engine/memory/memory_coordinator.h"
#include "engine/memory/shared_prefixes.h"
#include "engine/model.h"
#include "engine/session.h"
#include "kernels/kernel_table.h"
#include "kv/kv_cache.h"
#include "model/transformer/layer_groups.h"
#include "model/transformer/transformer.h"
#include "sched/batch_planner.h"
#include "sys/thread_team.h"

namespace memdecay {

class Engine {
 public:
  static Result<std::unique_ptr<Engine>> create(const EngineOptions& options);
  ~Engine();

  const Model& model() const { return *model_; }
  const EngineOptions& options() const { return options_; }
  const KernelTable& kernels() const { return kernels_; }
  const KvCache& cache() const { return *cache_; }
  int threads() const { return team_.size(); }
  /// The layers that see every token, whose pages memories keep; none where all have a window.
  std::optional<LayerGroupId> group_without_window() const {
    return memory_->group_without_window();
  }
  /// Longest sequence in tokens, prompt and answer together, but for sessions that outgrow it.
  int context_tokens() const { return context_tokens_; }
  /// Whether a session may have any number of tokens: the context counts what its evictions leave.
  bool outgrows_context(const Session& session) const { return memory_->outgrows_context(session); }
  /// Bytes that one token's keys and values take in all layer groups, windows aside.
  std::uint64_t kv_bytes_per_token() const;
  /// Bytes of keys and values that a decode step of the session reads once it holds `more` tokens
  /// in pages as they are written; windowed layers read their window only.
  std::uint64_t kv_bytes_read(const Session& session, int more) const;

  /// kResourceExhausted when not even an empty sequence fits the budget.
  Result<std::unique_ptr<Session>> open_session(const SessionOptions& options = {});
  /// A second session with the same tokens; pages are shared until one of them writes.
  Result<std::unique_ptr<Session>> fork_session(const Session& session);

  // --- generation: submit, then step until idle ---

  /// kInvalidArgument for an empty or too long prompt, tokens out of range, bad sampling options,
  /// or a busy session; kResourceExhausted for a prompt that the KV budget can never hold. A
  /// refusal changes nothing.
  Result<RequestId> submit(GenerationRequest request);
  /// Ends a request with kCancelled before the next step; unknown ids are ignored.
  void cancel(RequestId id);
  /// One forward pass for everything that waits. False when nothing waits.
  bool step();
  /// submit() and step() until this request is done (others advance too).
  Result<GenerationResult> generate(GenerationRequest request);

  // --- teacher forcing: perplexity, benchmarks ---

  using LogitsCallback = std::function<void(int position, std::span<const float> logits)>;
  /// Appends tokens to a session. For each appended token with position >= first_wanted,
  /// `on_logits` gets the logits that follow it, in order of position; with first_wanted past the
  /// end no logits are computed. kInvalidArgument, and nothing has changed, for a busy session,
  /// tokens out of range or more than the context holds. kResourceExhausted when there is no room;
  /// the session then holds the passes that fitted.
  Status extend(Session& session, std::span<const TokenId> tokens, int first_wanted,
                const LogitsCallback& on_logits);
  /// Where a turn of `tokens` begins: sessions whose policy discards and recomputes (policy
  /// "recompute") get back of their history what fits; others are left alone. Returns the tokens
  /// computed again; where they find no room the session is cut back to those that did. submit()
  /// does the same, in the request's own passes.
  Result<int> begin_turn(Session& session, std::size_t tokens);
  using SessionLogitsCallback =
      std::function<void(std::size_t session, int position, std::span<const float> logits)>;
  /// The same for several sessions that hold equally many tokens: one pass serves them all. Of the
  /// sessions' tokens none are appended where one of them finds no room; those before stay.
  Status extend_together(std::span<Session* const> sessions, std::span<const TokenId> tokens,
                         int first_wanted, const SessionLogitsCallback& on_logits);
  /// Says what the session's tokens are, those to be appended included (prompt_labels.h).
  void label(Session& session, PromptLabels labels);
  struct PrefixMatch {
    int tokens = 0;         ///< of the prompt that the session holds now
    int cached_tokens = 0;  ///< of those, taken from prefixes that other sessions left
    PrefixDifference miss;  ///< why it is not more
  };
  /// Cuts the session back to the longest prefix that it shares with the prompt, and where other
  /// sessions left a longer one takes that, but leaves one token to compute. REQUIRES: no request
  /// runs on the session; it has the prompt's labels.
  PrefixMatch match_prefix(Session& session, std::span<const TokenId> prompt);
  /// Lets go of every prefix that no session holds.
  void forget_prefixes();
  /// Null where sessions share nothing.
  const PrefixTree* prefixes() const { return cache_->prefixes(); }
  /// Bytes of the budget that are held beside pages, sequences and prefixes, for
  /// KvCache::validate().
  std::uint64_t other_budget_bytes() const { return memory_->held_bytes(); }
  /// The next peak_bytes() of the budget counts from now.
  void reset_peak_bytes() { cache_->budget().reset_peak(); }
  /// Evicts once, by the session's policy, so that its evictable pages take at most `bytes`.
  /// kResourceExhausted where what is protected takes more, and then nothing has changed; or where
  /// only copies of pages that others hold would do and the engine's budget has no room for them.
  /// REQUIRES: no request runs on the session.
  Status shrink(Session& session, std::uint64_t bytes);
  /// The positions whose keys and values are there, ascending, in as few runs as can be; of the
  /// layers without a window, none where all have one.
  std::vector<PositionRun> held_tokens(const Session& session) const;
  /// Forgets all tokens from `size` on. REQUIRES: no request runs on the session.
  Status truncate(Session& session, int size);

 private:
  struct Running;
  /// Tokens of one session that a forward pass computes.
  struct PassSlice {
    Session* session = nullptr;
    std::span<const TokenId> tokens;
    Running* running = nullptr;  ///< the request that it serves; null for extend()
  };
  Engine(const EngineOptions& options, int threads);
  Status initialize();
  Status check_request(const GenerationRequest& request) const;
  Status check_extension(const Session& session, std::span<const TokenId> tokens) const;
  void tell_logits(int begin, int end,
                   const std::function<void(int, std::span<const float>)>& tell);
  Status check_tokens(std::span<const TokenId> tokens) const;
  /// Bytes without which no sequence of this length can be: its pages, windows only as they end.
  std::uint64_t least_bytes(int tokens) const;
  /// Runs the model over slices whose sequences already have room, and records the tokens as held.
  Status run_pass(std::span<const PassSlice> slices);
  static void take_text(Running& running, const std::string& text);
  void finish(Running& running, FinishReason reason, Status status);
  void accept_logits(Running& running, std::span<const float> logits);
  std::vector<PassSlice> plan_pass();
  static std::size_t rows_of(std::span<const PassSlice> slices);
  void reserve(std::vector<PassSlice>& slices);
  void emit(std::span<const PassSlice> slices);
  void sweep();

  // --- exact prefixes: engine_prefixes.cc ---

  Status initialize_prefixes();
  int match_own(Session& session, std::span<const TokenId> prompt, PrefixDifference& miss);
  bool shares(const Session& session) const;
  static std::size_t most_pages(const Session& session);
  /// Leaves what the session's last pass sealed for others.
  void remember_prefix(Session& session);

  EngineOptions options_;
  const KernelTable& kernels_;
  ThreadTeam team_;
  std::unique_ptr<Model> model_;
  LayerGroups groups_;
  std::unique_ptr<Transformer> transformer_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<SharedPrefixes> shared_;  ///< null where sessions share nothing
  std::vector<Session*> sessions_;          ///< all that are open
  std::optional<MemoryCoordinator> memory_;
  BatchPlanner planner_;
  int context_tokens_ = 0;
  std::vector<std::unique_ptr<Running>> running_;  ///< in order of arrival
  std::int64_t next_request_ = 0;
};

}  // namespace memdecay
