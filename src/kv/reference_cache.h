// ReferenceCache: random operations on a KvCache, each compared with a naive oracle, for the
// model-based test and the fuzzer only.
//
// It drives one KvCache and its ReferenceSequences. After each operation step() compares all views
// with the oracles and runs validate(). The product never includes this file.
// Threads: one. Cost of a step: O(all slots held).
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "kv/kv_cache.h"
#include "kv/random_walk.h"
#include "kv/reference_sequence.h"
#include "kv/take_for_test.h"

namespace memdecay {

class ReferenceCache final : public RandomWalk {
 public:
  struct Counts {
    std::uint64_t refused = 0, cuts_refused = 0, forks = 0, copies = 0;
    std::uint64_t dropped = 0, replaced = 0, packed = 0, adopted = 0;
  };

  /// REQUIRES: a config that KvCache accepts.
  explicit ReferenceCache(const KvCacheConfig& config) : cache_(make(config)) {
    empty_bytes_ = cache_->budget().current_bytes();
  }

  std::string finish() override {
    while (!sequences_.empty()) close(0);
    ballast_.release();
    if (const Status status = cache_->validate(); !status.ok()) return status.message();
    const bool clean = cache_->budget().current_bytes() == empty_bytes_;
    return clean ? "" : "bytes are left after every sequence was closed";
  }

  Counts counts() const {
    Counts counts = counts_;
    for (const ReferenceSequence& sequence : sequences_) counts.refused += sequence.refused();
    for (std::size_t g = 0; g < cache_->groups().size(); ++g)
      counts.copies += cache_->pool(group_id(g)).counters().copies;
    return counts;
  }

 private:
  static constexpr std::size_t kMostSequences = 6;
  static constexpr std::int32_t kMostTokens = 400;

  static std::unique_ptr<KvCache> make(const KvCacheConfig& config) {
    auto cache = KvCache::create(config);
    MEMDECAY_CHECK(cache.ok());
    return std::move(cache).value();
  }
  static LayerGroupId group_id(std::size_t g) { return LayerGroupId(static_cast<std::int32_t>(g)); }
  static std::uint32_t bound(std::size_t n) { return static_cast<std::uint32_t>(n); }

  std::string perform(const Choose& choose) override {
    const std::uint32_t kind = choose(24);
    if (sequences_.empty() || (kind == 0 && sequences_.size() < kMostSequences)) return create();
    const std::size_t which = choose(bound(sequences_.size()));
    ReferenceSequence& sequence = sequences_[which];
    done_ = fmt::format("sequence {} of {}: ", which, sequence.size());
    if (kind <= 8) return append(sequence, choose);
    if (kind <= 10) return truncate(sequence, choose);
    if (kind <= 12 && sequences_.size() < kMostSequences) return fork(sequence);
    if (kind == 13) return squeeze(choose);
    if (kind <= 15) return drop(sequence, choose);
    if (kind <= 18) return replace(sequence, choose);
    if (kind <= 21) return pack(sequence, choose);
    if (kind == 22 && sequences_.size() < kMostSequences) return adopt(which, choose);
    done_ += "close";
    close(which);
    return {};
  }

  void close(std::size_t which) {
    counts_.refused += sequences_[which].refused();
    sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  std::string create() {
    done_ = "create";
    auto real = cache_->try_create_sequence();
    if (real == nullptr) {
      ++counts_.refused;
      ballast_.release();  // or nothing would ever happen again
      return {};
    }
    sequences_.emplace_back(*cache_, std::move(real));
    return {};
  }

  std::string append(ReferenceSequence& sequence, const Choose& choose) {
    const Position size = sequence.size();
    // Mostly the small steps of decode and chunks around a page's border, now and then a leap.
    const std::uint32_t reach = std::vector<std::uint32_t>{2, 20, 70, 150}[choose(4)];
    const auto tokens = std::min(static_cast<std::int32_t>(choose(reach)), kMostTokens - size);
    std::vector<Position> cuts;
    for (std::uint32_t c = tokens > 0 ? choose(5) : 0; c > 0; --c)
      cuts.push_back(size + static_cast<Position>(choose(static_cast<std::uint32_t>(tokens))));
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    done_ += fmt::format("append {} with {} cuts", tokens, cuts.size());
    std::vector<std::uint32_t> markers;
    for (std::int32_t i = 0; i < tokens; ++i) markers.push_back(choose(1U << 30));
    return sequence.append(markers, cuts);
  }

  std::string truncate(ReferenceSequence& sequence, const Choose& choose) {
    const Position size = sequence.size();
    const bool nearby = choose(2) == 0;
    const auto back = choose(static_cast<std::uint32_t>(nearby ? 20 : size + 1));
    const Position to = std::max(0, size - static_cast<Position>(back));
    done_ += fmt::format("cut back to {}", to);
    bool refused = false;
    std::string trouble = sequence.truncate(to, refused);
    if (refused) ++counts_.cuts_refused;
    return trouble;
  }

  std::string fork(ReferenceSequence& sequence) {
    done_ += "fork";
    std::string trouble;
    auto copy = sequence.fork(trouble);
    if (!copy) return trouble;
    ++counts_.forks;
    sequences_.push_back(*std::move(copy));
    return trouble;
  }

  std::string drop(ReferenceSequence& sequence, const Choose& choose) {
    const ReferencePages& pages = sequence.pages();
    std::vector<Position> names;
    const std::uint32_t share = 2 + choose(5);
    for (std::size_t i = 0; i < pages.sealed(); ++i)
      if (choose(share) == 0) names.push_back(pages.pages()[i].first());
    done_ += fmt::format("drop {} of {} pages", names.size(), pages.pages().size());
    counts_.dropped += names.size();
    return sequence.drop(names);
  }

  std::string replace(ReferenceSequence& sequence, const Choose& choose) {
    const auto& pages = sequence.pages().pages();
    if (pages.empty()) return {};
    const std::size_t index = choose(bound(pages.size()));
    std::vector<KvFormat> forms = cache_->config().forms;
    forms.push_back(cache_->groups().front().layout.format);  // and back
    const KvFormat form = forms[choose(bound(forms.size()))];
    done_ += fmt::format("replace page {} by form {}", index, static_cast<int>(form));
    if (form == pages[index].form) return {};
    ++counts_.replaced;
    return sequence.replace(index, form);
  }

  std::string pack(ReferenceSequence& sequence, const Choose& choose) {
    const ReferencePages& pages = sequence.pages();
    if (pages.pages().empty()) return {};
    const std::size_t most = 2 + choose(6);
    for (std::size_t first = choose(bound(pages.pages().size())); first < pages.sealed(); ++first)
      for (std::size_t count = most; count >= 2; --count)
        if (pages.can_pack(first, count)) {
          done_ += fmt::format("pack {} pages from {}", count, first);
          ++counts_.packed;
          return sequence.pack(first, count);
        }
    return {};
  }

  /// A new sequence takes pages from the front of another; references are held in between. Windows
  /// take full pages only: sequence_sparse_test.cc has them.
  std::string adopt(std::size_t which, const Choose& choose) {
    const auto has_window = [](const KvLayerGroup& group) { return group.window > 0; };
    const auto& groups = cache_->groups();
    if (std::any_of(groups.begin(), groups.end(), has_window)) return {};
    const auto& pages = sequences_[which].pages().pages();
    std::size_t count = sequences_[which].pages().without_gaps();
    if (choose(2) == 0) count = std::min(count, std::size_t{1});
    std::vector<PageHandle> held;
    std::vector<const PageHandle*> others;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t g = 0; g < cache_->groups().size(); ++g)
        held.push_back(share_page(sequences_[which].real(), group_id(g), pages[i].first()));
    for (const PageHandle& page : held) others.push_back(&page);
    done_ += fmt::format("adopt {} pages", count);
    const std::string what = done_;
    const std::size_t before = sequences_.size();
    static_cast<void>(create());
    done_ = what;
    const Status status = cache_->validate(ballast_.bytes(), others);
    if (!status.ok()) return status.message();
    if (sequences_.size() == before) return {};  // no room
    const ReferencePages& taken = sequences_[which].pages();
    const std::size_t fill =
        count == 0 ? 0 : 1 + choose(bound(taken.pages()[count - 1].positions.size()));
    ++counts_.adopted;
    return sequences_.back().adopt(sequences_[which], count, fill, held);
  }

  /// Lets others take all but a little of the budget, or gives it back.
  std::string squeeze(const Choose& choose) {
    ballast_.release();
    done_ = "release the ballast";
    if (cache_->budget().limit_bytes() == KvBudget::kUnlimited || choose(2) == 0) return {};
    const std::uint64_t free_bytes = cache_->budget().free_bytes();
    const std::uint64_t leave = std::min<std::uint64_t>(choose(24 * 1024), free_bytes);
    ballast_ = take_bytes(cache_->budget(), free_bytes - leave);
    done_ = fmt::format("squeeze to {} free bytes", leave);
    return {};
  }

  std::string compare() override {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      const std::string trouble = sequences_[i].compare();
      if (!trouble.empty()) return fmt::format("sequence {}, {}", i, trouble);
    }
    const Status status = cache_->validate(ballast_.bytes());
    return status.ok() ? std::string() : status.message();
  }

  std::unique_ptr<KvCache> cache_;
  BudgetReservation ballast_;
  std::vector<ReferenceSequence> sequences_;
  std::uint64_t empty_bytes_ = 0;
  Counts counts_;
};

}  // namespace memdecay
