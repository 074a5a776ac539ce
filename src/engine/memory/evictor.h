// Evictor: makes room in one KV cache by the plans of its sessions' memories.
//
// Policies propose; it carries plans out on the sequences (kv) and tells the memories. For the
// cache's budget it decides only how much of the excess each session gives: in proportion to what
// its policy tracks, so a session that holds little gives little. Two occasions:
//   free(bytes)   a pass finds no room: whatever it takes, now;
//   relieve()     between passes, by the watermarks of the cache and of each session: a bounded
//                 number of bytes a call, so that no step waits for more than a few pages' work.
// Before that, pack() lays neighbouring small pages together where a page is freed by it
// (page_packing.h): what is demoted afterwards keeps its scales to itself and is never packed.
//
// A demotion writes the page's new form into a buffer of its own first, where its rounding error is
// known before anything is lost, and needs its new page before the old one goes. Budget for both is
// held from the start, so demotions work in a full budget and current_bytes() never passes the
// limit.
//
// A page that several sessions hold gives nothing back before the last of them lets go. Plans for
// the cache's budget are not offered its coarser forms; a session's own budget, which counts it in
// full, may take a copy in fewer bits where the cache has room for one beside what is held here.
//
// Invariants: a plan's drops are applied whole, and first; of its demotions those that find room. A
// page with numbers that no form can hold stays as it is, and is not offered one again. What is
// held for demotions is held again after each.
// Threads: the engine's. Cost: the plans', plus the pages moved.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/memory/page_packing.h"
#include "engine/memory/session_memory.h"
#include "kv/kv_cache.h"
#include "policy/watermarks.h"

namespace memdecay {

class Evictor {
 public:
  /// One session's place: what it remembers, and the pages.
  struct Seat {
    SessionMemory* memory = nullptr;
    Sequence* sequence = nullptr;
  };

  /// `group` is the one whose pages the memories judge. The cache outlives the evictor.
  Evictor(KvCache& cache, LayerGroupId group);

  /// Takes the buffer and the spare page out of the budget. False where it is too small for them:
  /// then nothing can be demoted.
  [[nodiscard]] bool hold_spare();

  /// Frees at least `bytes` of the session's own pages. False where its plan cannot, and then
  /// nothing has changed; or where it could only with copies that the cache has no room for, and
  /// then what else could go has gone. Without `may_drop` pages only change their form.
  [[nodiscard]] bool free_own(const Seat& seat, std::uint64_t bytes, bool may_drop = true);
  /// Plans for `bytes` of the cache's budget; false where no plan has anything left to give.
  /// Nothing is dropped while a session can free the bytes by demotions. Dropped pages that
  /// sessions share come back only when the last of them lets go: who asks again asks for more.
  /// What a session shares with the prefix tree alone, the tree forgets first.
  bool free(std::span<const Seat> seats, std::uint64_t bytes, bool may_drop = true);
  /// Drops at least `tokens` tokens where the session's plans can, however many bytes are free.
  void drop_tokens(const Seat& seat, std::int64_t tokens);
  /// Works towards the watermarks, at most about `most_bytes` of pages. Remembered prefixes that no
  /// session holds are not counted against sessions, and go first.
  void relieve(std::span<const Seat> seats, std::uint64_t most_bytes);
  /// Packs at most `most_pages` neighbouring pages into fewer; the pages that were copied, 0 where
  /// none are worth it or the cache has no room for both at once.
  std::size_t pack(const Seat& seat, std::size_t most_pages);
  /// Brings pages that were sealed since the last call to the session's fixed form, small ones
  /// only when they had their time to be packed.
  void convert_sealed(const Seat& seat);

  /// What hold_spare() needs.
  std::uint64_t spare_bytes() const;
  /// Bytes of the budget that are held here.
  std::uint64_t held_bytes() const { return spare_.bytes() + buffer_charge_.bytes(); }

 private:
  /// Whether pages that others hold are demoted too, by a copy of one's own.
  enum class Sharing : std::uint8_t { kLeave, kCopy };
  enum class Demotion : std::uint8_t {
    kDone,
    kLeft,  ///< others hold it, and no copy is wanted or has room; or no form holds its numbers
    kNoRoom,
  };

  /// What the seat's policy proposes, with only those forms on offer that `sharing` allows.
  EvictionPlan make_plan(const Seat& seat, const PlanRequest& request, Sharing sharing) const;
  void carry_out(const Seat& seat, const EvictionPlan& plan, Sharing sharing = Sharing::kLeave);
  Demotion demote(const Seat& seat, Position first_position, KvFormat format, Sharing sharing);
  Room replace(const Seat& seat, Position first_position, KvFormat format);
  std::uint64_t free_by_demotion(std::span<const Seat> seats, std::uint64_t bytes);
  std::uint64_t relieve_of_prefixes(std::uint64_t most_bytes);
  static bool may_be_alone(const PageHandle& page);
  bool held_alone(const PageHandle& page);
  static bool may_be_packed(const PageHandle& page, const PageMeta& meta);
  /// Fills packable_; whether the pages are so empty that near kin may be packed.
  bool list_packable(const Seat& seat);
  std::optional<PackingChoice> choose(std::int32_t page_tokens, std::size_t most_pages,
                                      bool too_empty) const;
  bool pack_pages(const Seat& seat, const PackingChoice& choice);
  enum class Occasion { kNeed, kAhead };
  static bool drops_ahead(const Seat& seat);
  void share_out(std::span<const Seat> seats, std::uint64_t excess, const PlanRequest& request,
                 Occasion occasion);

  KvCache& cache_;
  LayerGroupId group_;
  Watermarks watermarks_;            // of what sessions hold
  Watermarks prefix_watermarks_;     // of that and remembered prefixes
  BudgetReservation spare_;          // of the page that a demotion makes
  BudgetReservation buffer_charge_;  // pays for buffer_
  std::vector<std::byte> buffer_;
  std::vector<Position> positions_;     // of carry_out() and pack()
  std::vector<PackablePage> packable_;  // of pack()
  std::uint64_t changed_pages_ = 0;     // dropped or demoted so far
};

}  // namespace memdecay
