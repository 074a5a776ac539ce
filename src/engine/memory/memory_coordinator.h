// MemoryCoordinator: decides which session of an engine gets memory, in what form, and who gives it
// back: the one place where budget, eviction, forms, packing, sharing and places in the context
// meet.
//
// It gives sessions their memory (add), makes room and places before a pass (make_room,
// make_places), tells memories what the pass was evidence of (ask_evidence, tell_evidence), and
// tends all of them between passes (tend). Policies propose, the Evictor carries out; what gives
// way first is decided here: pages' forms, prefixes that no session holds, then pages, then pins of
// others. Sessions without a memory (no budget, or the policy "none") get room or a refusal.
//
// A refusal changes nothing that was promised to anybody: who is protected stays. One thread, the
// engine's. Cost: make_room as evictor.h; tend a few pages' work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine_options.h"
#include "engine/memory/evictor.h"
#include "engine/memory/form_choice.h"
#include "engine/memory/pass_evidence.h"
#include "engine/memory/shared_prefixes.h"
#include "engine/session.h"
#include "kv/kv_cache.h"

namespace memdecay {

class MemoryCoordinator {
 public:
  /// What it works on; all of it outlives the coordinator.
  struct Surroundings {
    const EngineOptions& options;
    const Model& model;
    Transformer& transformer;
    const LayerGroups& groups;
    KvCache& cache;
    SharedPrefixes* shared;                 ///< null where sessions share nothing
    const std::vector<Session*>& sessions;  ///< all that are open
    int context_tokens;
  };
  explicit MemoryCoordinator(const Surroundings& surroundings);

  /// The layers that see every token, whose pages memories keep; none where all have a window.
  std::optional<LayerGroupId> group_without_window() const { return evictable_; }

  /// Gives the session a memory, or none where nothing of it is ever evicted or demoted. What is
  /// not set in `options` is the engine's. kResourceExhausted where its pages cannot take the form
  /// that was asked for.
  Status add(Session& session, SessionOptions options);
  /// Tells the session's memory what its pages and tokens are now.
  void sync(Session& session) const;

  /// Whether the session may have any number of tokens: the context counts what its evictions
  /// leave.
  bool outgrows_context(const Session& session) const;
  /// At a turn's border: closes gaps where the turn would not do without (design decision D4).
  void prepare_turn(Session& session, std::size_t tokens);
  /// Places for `tokens` more tokens within the context; where gaps do not give them, by evicting.
  [[nodiscard]] bool make_places(Session& session, int tokens);
  /// Slots for `tokens` more tokens, evicting where the budget has none; without `may_drop` pages
  /// only change their form.
  Room make_room(Session& session, int tokens, bool may_drop = true);
  /// The same for as many of `tokens` as there are places and room for at once; 0 where for none,
  /// and then a refusal, or none where it is places that are missing. Fewer tokens at once come
  /// before any page is dropped (docs/decisions/0250).
  int make_room_for_some(Session& session, int tokens, Room& room);
  /// kResourceExhausted, in words: why `tokens` more found no room, or no places.
  Status no_room(const Session& session, int tokens, const Room& room) const;
  /// Lets prefixes go that no session holds; whether that freed anything.
  bool prefixes_give_way(std::uint64_t bytes);

  /// What the session's policy wants to know of a pass. REQUIRES: slice.views is set.
  void ask_evidence(Session& session, PassEvidence& evidence, SequenceSlice& slice);
  /// After the pass.
  void tell_evidence(Session& session, const PassEvidence& evidence, const SequenceSlice& slice);
  /// What the keys themselves say, for policies that ask. May drop pages of any session to have
  /// room for it, so a pass's other evidence is told before.
  void take_key_evidence(Session& session);
  /// Between passes, after one of `pass_rows` rows: what the watermarks and fixed forms ask for.
  void tend(std::size_t pass_rows);

  /// As Engine::shrink().
  Status shrink(Session& session, std::uint64_t bytes);
  /// Cuts the session back to where its history is to be computed again, with `coming` tokens
  /// behind it; how many tokens that are.
  int discard_tail(Session& session, std::size_t coming);

  /// Bytes of the budget that are held beside pages, sequences and prefixes.
  std::uint64_t held_bytes() const;

 private:
  std::uint64_t page_bytes() const;
  Result<EvictionPolicyHandle> make_policy(const SessionOptions& options) const;
  Status offer_forms(const SessionOptions& options, std::uint64_t sketch_bytes,
                     SessionMemoryOptions& memory);
  PassEvidence::Layers layers() const;
  /// The sessions whose pages may go: while some stand apart, those alone.
  std::vector<Session*> seated() const;
  std::vector<Evictor::Seat> seats() const;
  /// Large gaps first, until the next token stands at `place` or before it.
  void close_gaps(Session& session, Position place);
  /// The context that places must stay in where they can.
  int trained_context() const;
  /// Half of a budget at most, of the engine's an equal part (decision 0257).
  void cap_pins(Session& session, std::size_t sharers) const;
  /// Gives pins back that fewer sessions allow; with `may_take` it also takes, and says whether.
  bool share_pins(bool may_take);

  const EngineOptions& options_;
  const Model& model_;
  const LayerGroups& groups_;
  KvCache& cache_;
  SharedPrefixes* const shared_;
  const std::vector<Session*>& sessions_;
  const int context_tokens_;
  std::optional<LayerGroupId> evictable_;  ///< group_without_window()
  std::optional<Evictor> evictor_;         ///< beside it
  FormChoice form_choice_;
};

}  // namespace memdecay
