// RandomSession: random calls, the same to a policy and to naive lists that plans are held to.
// A seed gives the same calls again. For tests.
#pragma once

#include <map>
#include <random>

#include "policy/naive_scores_for_test.h"
#include "policy/policies/make_policy.h"
#include "policy/policy_for_test.h"

namespace memdecay {

class RandomSession {
 public:
  RandomSession(std::string_view name, const PolicyOptions& options, unsigned seed)
      : name_(name),
        options_(options),
        random_(seed),
        oracle_(protection(), [this](const PageMeta& meta) { return region_of(meta); }) {
    policy_ = make_policy(name, options).value();
  }

  ProtectionOptions protection() const {
    ProtectionOptions protection = options_.memdecay.protection;
    if (name_ != "memdecay" && !options_.baseline_lag) protection.lag_rounds = 0;
    if (name_ != "memdecay" && !options_.baseline_floors) protection.floor_share = 0;
    if (name_ != "memdecay") {
      protection.lag_bonus = std::numeric_limits<double>::infinity();
    }
    if (name_ == "window") protection.sink_tokens = 0;
    return protection;
  }

  void append() {
    PageMeta meta;
    meta.id = TrackedPageId(free_id());
    meta.region = kRegions[random_() % kRegionCount];
    meta.tokens = 1 + static_cast<int>(random_() % 32);
    meta.position = end_;
    meta.born_step = step_;
    meta.bytes = static_cast<std::uint64_t>(meta.tokens) * 100;
    meta.pinned = random_() % 16 == 0;
    meta.sealed = random_() % 8 != 0;
    meta.exact_share = static_cast<float>(random_() % 5) / 4;
    if (random_() % 2 == 0) {
      round_ += random_() % 3 == 0 ? 1 : 0;
      meta.tool_round = std::max(round_, 0);
      meta.tool_core = random_() % 3 != 0;
    }
    if (random_() % 3 == 0)  // an instruction, or the result of its round
      meta.item = meta.tool_round == kNoToolRound ? static_cast<int>(random_() % 6) : 6 + round_;
    for (std::size_t form = 0; form < kPageFormCount; ++form) {
      meta.forms[form] = {meta.bytes / (form + 1), 0.01F * static_cast<float>(form * form)};
    }
    end_ += meta.tokens;
    ordinals_[meta.id.value()] = tracked_++;
    seen_[meta.id.value()].clear();
    track(meta);
  }
  void change() {
    PageMeta meta = any();
    meta.sealed = true;
    if (random_() % 2 == 0) meta.region = kRegions[random_() % kRegionCount];
    if (random_() % 4 == 0) meta.item = kNoItem;
    if (random_() % 4 == 0) meta.pinned = !meta.pinned;
    track(meta);
  }
  void observe() {
    std::vector<PageEvidence> pages;
    for (const auto& [id, meta] : oracle_.pages()) {
      if (random_() % 3 == 0) continue;
      pages.push_back({TrackedPageId(id), static_cast<float>(random_() % 1000) / 1000.0F});
    }
    const auto kind = static_cast<EvidenceKind>(random_() % kEvidenceKindCount);
    const auto phase = static_cast<QueryPhase>(random_() % kQueryPhaseCount);
    tell({kind, phase, pages});
  }
  /// Makes sure that every page has evidence that counts; what that teaches is in the lists too.
  void observe_all() {
    std::vector<PageEvidence> pages;
    for (const auto& [id, meta] : oracle_.pages()) {
      pages.push_back({TrackedPageId(id), static_cast<float>(random_() % 1000) / 1000.0F});
    }
    tell({EvidenceKind::kDeletionError, QueryPhase::kThink, pages});
  }
  void advance() {
    step_ += static_cast<std::int64_t>(random_() % 40);
    policy_->advance({step_, static_cast<double>(step_) / 20});
  }
  void release(TrackedPageId page) {
    policy_->release(page);
    oracle_.release(page);
  }
  /// Lays up to four neighbours together, into one page or two.
  void pack() {
    std::map<Position, PageMeta> by_position;
    for (const auto& [id, meta] : oracle_.pages()) by_position[meta.position] = meta;
    auto at = by_position.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_() % by_position.size()));
    std::vector<TrackedPageId> before;
    std::vector<PackedPart> parts;
    PageMeta meta = at->second;
    meta.tokens = 0;
    for (; at != by_position.end() && parts.size() < 4 && at->second.sealed; ++at) {
      before.push_back(at->second.id);
      parts.push_back({at->second.id, at->second.tokens});
      meta.tokens += at->second.tokens;
    }
    if (before.size() < 2) return;
    std::vector<PackedPage> after(1 + (meta.tokens > 8 ? random_() % 2 : 0));
    const std::int32_t each = meta.tokens / static_cast<std::int32_t>(after.size());
    std::int32_t rest = meta.tokens;
    int id = 1000;
    std::size_t from = 0;
    for (PackedPage& page : after) {
      while (oracle_.pages().contains(id)) ++id;
      page.meta = meta;
      page.meta.id = TrackedPageId(id++);
      page.meta.tokens = &page == &after.back() ? rest : each;
      page.meta.position += meta.tokens - rest;
      page.meta.bytes = static_cast<std::uint64_t>(page.meta.tokens) * 100;
      rest -= page.meta.tokens;
      for (std::int32_t left = page.meta.tokens; left > 0;) {
        const std::int32_t taken = std::min(left, parts[from].tokens);
        page.parts.push_back({parts[from].from, taken});
        left -= taken;
        parts[from].tokens -= taken;
        if (parts[from].tokens == 0) ++from;
      }
      seen_[page.meta.id.value()].clear();
      ordinals_[page.meta.id.value()] = tracked_++;
    }
    policy_->repack(before, after);
    if (options_.protect_prefix)
      for (PackedPage& page : after) page.meta.pinned |= page.meta.region == Region::kSystem;
    oracle_.repack(before, after);
  }
  void step() {
    const auto what = random_() % 16;
    if (what < 8 || oracle_.pages().size() < 4) return append();
    if (what < 10) return change();
    if (what < 13) return observe();
    if (what < 15) return advance();
    release(any().id);
  }

  double score(const PageMeta& meta, Region as) const {
    const int id = meta.id.value();
    return naive_score(name_, options_.memdecay, meta, {seen_.at(id), ordinals_.at(id), step_}, as);
  }

  /// The region that the policy counts the page as.
  Region region_of(const PageMeta& meta) const {
    if (name_ != "memdecay") return meta.region;
    const int id = meta.id.value();
    return naive_region(options_.memdecay, meta, {seen_.at(id), ordinals_.at(id), step_});
  }

  const EvictionPolicy& policy() const { return *policy_; }
  PolicyOracle& oracle() { return oracle_; }
  std::mt19937& random() { return random_; }
  std::string_view name() const { return name_; }

 private:
  /// An access is more than the uniform share of the batch.
  void tell(const EvidenceBatch& batch) {
    policy_->observe(batch);
    double all = 0;
    std::int64_t tokens = 0;
    for (const PageEvidence& e : batch.pages) {
      all += static_cast<double>(e.value);
      tokens += oracle_.pages().at(e.page.value()).tokens;
    }
    for (const PageEvidence& e : batch.pages) {
      const double uniform =
          all * oracle_.pages().at(e.page.value()).tokens / static_cast<double>(tokens);
      seen_[e.page.value()].push_back(
          {step_, batch.kind, batch.phase, e.value, static_cast<double>(e.value) > uniform});
    }
  }
  int free_id() {
    int id = 0;
    while (oracle_.pages().contains(id)) ++id;
    return id;
  }
  PageMeta any() {
    auto at = oracle_.pages().begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_() % oracle_.pages().size()));
    return at->second;
  }
  void track(const PageMeta& meta) {
    policy_->track(meta);
    PageMeta known = meta;
    if (options_.protect_prefix) known.pinned |= meta.region == Region::kSystem;
    oracle_.track(known);
  }

  std::string_view name_;
  PolicyOptions options_;
  std::mt19937 random_;
  EvictionPolicyHandle policy_;
  PolicyOracle oracle_;
  std::map<int, std::vector<Seen>> seen_;  // by page
  std::map<int, unsigned> ordinals_;       // by page
  Position end_ = 0;
  std::int64_t step_ = 0;
  std::int32_t round_ = 0;
  unsigned tracked_ = 0;
};

}  // namespace memdecay
