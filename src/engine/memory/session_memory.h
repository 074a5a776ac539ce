// SessionMemory: what one session remembers, by whose rule.
//
// It stands between a session's sequence (which pages there are), its labels (what every token is)
// and its eviction policy (what pages are worth). It moves no bytes: plan() proposes, the Evictor
// carries out and says so with dropped(), demoted() and packed().
//
//     label(labels)                       what the tokens of the prompt are, from position 0
//     cuts(begin, end)                    where pages must begin when these tokens are appended
//     sync(view, size, computed)          after an append, a pass, a cut back: what came or changed
//     observe(...)                        evidence of one pass, of the kinds that wants() names
//     plan(request) -> dropped(), demoted()
//     packed(...)                         neighbours were laid together (page_packing.h)
//
// Invariants: pages() is the view of the session's evictable layer group, entry for entry, after
// sync(); every entry is tracked by the policy under an id of its own; an id stands for one page
// and is used again only after the page is gone; a page with tokens that are still to be computed
// is open. Tokens past the labels are the answer being written: recent dialogue, asked for by the
// assistant.
// Threads: the engine's. Cost: sync O(pages changed), label O(pages + regions), others as
// eviction_policy.h.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/paged_kv.h"
#include "engine/memory/key_directions.h"
#include "engine/memory/prompt_labels.h"
#include "kv/kv_budget.h"
#include "kv/packed_runs.h"
#include "policy/eviction_policy.h"
#include "policy/watermarks.h"

namespace memdecay {

struct SessionMemoryOptions {
  /// What a page costs in each form and what it loses there; bytes 0: not on offer.
  std::array<FormCost, kPageFormCount> forms = {};
  int page_tokens = 32;
  KvFormat own_format = KvFormat::kF16;               ///< of pages as they are written
  std::optional<KvFormat> fixed_form;                 ///< what every page becomes once it is sealed
  bool packs_pages = true;                            ///< else Evictor::pack() leaves them alone
  bool evicts = true;                                 ///< else plans are never asked for
  bool demotes = false;                               ///< plans may change forms before they drop
  std::uint64_t budget_bytes = KvBudget::kUnlimited;  ///< of this session's evictable pages
  WatermarkOptions watermarks = {};
};

class SessionMemory {
 public:
  /// Whether plans may name coarser forms of a page.
  enum class Forms : std::uint8_t {
    kOffered,
    kWithheld,  ///< not now: it would free nothing
    kRefused,   ///< never: no form can hold the page's numbers
  };
  struct Page {
    Position first_position = 0;
    std::int32_t filled = 0;
    KvFormat format = KvFormat::kF16;
    bool sealed = false;
    TrackedPageId id;
    std::vector<PositionRun> runs = {};  ///< which positions; empty where they have no gap
    Forms forms = Forms::kOffered;
  };

  SessionMemory(EvictionPolicyHandle policy, const SessionMemoryOptions& options);

  void label(PromptLabels labels);
  std::vector<Position> cuts(Position begin, Position end) const;
  QueryPhase phase_at(Position position) const;

  /// `computed` of the session's `size` tokens have keys and values; by default all.
  void sync(const PagedKvView& view, Position size,
            Position computed = std::numeric_limits<Position>::max());
  /// Tells the time, in seconds on any clock; steps follow from sync().
  void advance(double seconds);
  /// Whether evidence of this kind is of any use: the policy reads it and something may be evicted.
  bool wants(EvidenceKind kind) const { return options_.evicts && policy_->wants(kind); }
  /// `values` stand beside pages(): one number a page of the evictable group.
  void observe(EvidenceKind kind, QueryPhase phase, std::span<const float> values);
  /// Pages whose keys are to be read, the newest first, at most `most`: indices of pages().
  /// REQUIRES here and below: wants(EvidenceKind::kKeySimilarity).
  std::vector<std::size_t> unread_keys(int most) const;
  void read_keys(std::size_t page, const KvPageRef& ref, const KvPageLayout& layout,
                 BudgetReservation charge);
  /// Evidence of at most `most` pages whose keys were read, each in its turn.
  void observe_keys(int most);
  std::uint64_t held_bytes() const { return keys_ ? keys_->held_bytes() : 0; }

  EvictionPlan plan(const PlanRequest& request) const { return policy_->plan(request); }
  /// Bytes by which the session's own budget would be passed with `tokens` more in pages that begin
  /// at `cuts` borders beside those that fill up.
  std::uint64_t missing_bytes(int tokens, std::size_t cuts) const;
  /// What the session's own budget asks for now; budget_bytes >= tracked_bytes(): nothing.
  PlanRequest demand() { return watermarks_.demand(tracked_bytes(), options_.budget_bytes); }
  const Page& page(TrackedPageId id) const;
  /// As EvictionPolicy::cap_pins().
  void cap_pins(std::uint64_t bytes) { policy_->cap_pins(bytes); }
  /// From now on plans may name coarser forms of pages()[page], or may not; a page whose forms were
  /// refused is left alone. Cost: O(1) where nothing changes, else as track().
  void offer_forms(std::size_t page, bool offered);
  /// No form can hold the page's numbers: plans name none any more.
  void refuse_forms(Position first_position);
  void dropped(std::span<const Position> first_positions);
  /// `rounding_error` is what the page's numbers lost (convert_kv_page): from then on the policy
  /// knows this page's own, and expects as much more or less than usual of coarser forms.
  void demoted(Position first_position, KvFormat format, float rounding_error);
  /// Pages [first, first + count) of before are those of the view from `first` on that stand for
  /// them now; `runs` are the table's.
  void packed(std::size_t first, std::size_t count, const PagedKvView& view,
              const PackedRuns& runs);
  /// Whether pages changed since no `most_pages` neighbours were found worth packing.
  bool may_pack(std::size_t most_pages) const { return most_pages > settled_pages_; }
  void settle(std::size_t most_pages) { settled_pages_ = most_pages; }

  const SessionMemoryOptions& options() const { return options_; }
  const std::vector<Page>& pages() const { return pages_; }
  const PageMeta& meta(const Page& page) const { return metas_[page.id.index()]; }
  Explanation explain(const Page& page) const { return policy_->explain(page.id); }
  /// What plans leave for last or for good, for a person: "a sink 12 KiB, among the newest 96 KiB";
  /// empty where nothing is. For failures: O(pages * pages of a round).
  std::string protection() const;
  std::uint64_t tracked_bytes() const { return policy_->tracked_bytes(); }
  /// Tokens whose pages were dropped, ever.
  std::int64_t evicted_tokens() const { return evicted_tokens_; }
  std::int64_t evicted_pages() const { return evicted_pages_; }
  /// Whether what was dropped is to be computed again at a turn's border.
  bool recomputes() const { return policy_->recomputes(); }
  void recomputed(int tokens) { recomputed_tokens_ += tokens; }
  /// Tokens computed twice, ever.
  std::int64_t recomputed_tokens() const { return recomputed_tokens_; }
  /// Wall time that planning, dropping and demoting took, ever.
  double eviction_seconds() const { return eviction_seconds_; }
  void add_eviction_seconds(double seconds) { eviction_seconds_ += seconds; }

  SessionMemory(SessionMemory&&) = default;
  /// The same memory over the same pages, for a fork: it knows what this one was told of them.
  SessionMemory fork() const;

 private:
  std::size_t index_of(Position first_position) const;
  const RegionSpan& region_at(std::size_t run) const { return labels_.regions[run]; }
  std::size_t run_at(Position position) const;
  RegionSpan region_of(std::span<const PositionRun> runs) const;
  void describe(const Page& page, PageMeta& meta) const;
  PageMeta begin_meta(const Page& page) const;
  void fill_in(const Page& page, PageMeta& meta) const;
  void track(Page& page, bool is_new);
  void set_forms(Page& page, Forms forms);
  TrackedPageId take_id();
  void give_back(TrackedPageId id);
  void release(const Page& page);
  void cut_off(const Page& page);
  Position labelled() const;

  EvictionPolicyHandle policy_;
  SessionMemoryOptions options_;
  Watermarks watermarks_;
  PromptLabels labels_;
  std::vector<Page> pages_;
  std::vector<PageMeta> metas_;          // by id
  std::vector<TrackedPageId> free_ids_;  // of pages that are gone
  PolicyTime time_;
  Position size_ = 0;
  std::optional<KeyDirections> keys_;  // where the policy asks for similarities
  std::int64_t evicted_tokens_ = 0;
  std::int64_t evicted_pages_ = 0;
  std::size_t settled_pages_ = 0;  // no packing of so many pages is worth it
  std::int64_t recomputed_tokens_ = 0;
  double eviction_seconds_ = 0;
  std::vector<PageEvidence> batch_;  // of observe(): no allocation while tokens stream
};

/// The page form that a KV format is to the policy. REQUIRES: not kF32.
PageForm form_of(KvFormat format);
KvFormat format_of(PageForm form);

}  // namespace memdecay
