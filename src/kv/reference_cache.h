// ReferenceCache: a naive oracle beside a KvCache, for the model-based test and the fuzzer only.
//
// It keeps every sequence's tokens as a plain vector of markers and drives one KvCache through
// random operations. Every K and V value of a slot is a function of (marker, group, layer, head,
// half, dim), written through page_for_write() and read back through view(). After each operation
// step() compares all views with the vectors, runs validate(), and checks that a refused operation
// left everything as it was. The product never includes this file.
// Threads: one. Cost of a step: O(all slots held).
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "kv/kv_cache.h"
#include "kv/slot_pattern.h"
#include "kv/take_for_test.h"

namespace memdecay {

class ReferenceCache {
 public:
  /// Gives a number in [0, bound). REQUIRES of it: bound >= 1.
  using Choose = std::function<std::uint32_t(std::uint32_t bound)>;

  struct Counts {
    std::uint64_t steps = 0, refused = 0, cuts_refused = 0, forks = 0, copies = 0;
  };

  /// REQUIRES: a config that KvCache accepts.
  explicit ReferenceCache(const KvCacheConfig& config) : cache_(make(config)) {
    empty_bytes_ = cache_->budget().current_bytes();
  }

  /// One operation; empty when all is well, else what happened and what is wrong.
  std::string step(const Choose& choose) {
    ++counts_.steps;
    std::string trouble = perform(choose);
    if (trouble.empty()) trouble = compare();
    return trouble.empty() ? trouble
                           : fmt::format("step {}, {}: {}", counts_.steps, done_, trouble);
  }

  /// Closes everything; nothing may be left.
  std::string finish() {
    pairs_.clear();
    ballast_.release();
    const Status status = cache_->validate();
    if (!status.ok()) return status.message();
    const bool clean = cache_->budget().current_bytes() == empty_bytes_;
    return clean ? "" : "bytes are left after every sequence was closed";
  }

  Counts counts() const {
    Counts counts = counts_;
    for (std::size_t g = 0; g < cache_->groups().size(); ++g)
      counts.copies += cache_->pool(group_id(g)).counters().copies;
    return counts;
  }

 private:
  struct Pair {
    SequenceHandle real;
    std::vector<std::uint32_t> markers;
    Position trimmed_at = 0;  // the largest size at which old pages may have been let go
  };
  static constexpr std::size_t kMostSequences = 6;
  static constexpr std::int32_t kMostTokens = 400;
  static constexpr std::uint64_t kGroupStep = std::uint64_t{1} << 32;  // groups hold other values

  static std::unique_ptr<KvCache> make(const KvCacheConfig& config) {
    auto cache = KvCache::create(config);
    MEMDECAY_CHECK(cache.ok());
    return std::move(cache).value();
  }
  static LayerGroupId group_id(std::size_t g) { return LayerGroupId(static_cast<std::int32_t>(g)); }

  std::string perform(const Choose& choose) {
    const std::uint32_t kind = choose(16);
    if (pairs_.empty() || (kind == 0 && pairs_.size() < kMostSequences)) return create();
    const std::size_t which = choose(static_cast<std::uint32_t>(pairs_.size()));
    if (kind <= 8) return append(which, choose);
    if (kind <= 10) return truncate(which, choose);
    if (kind <= 12 && pairs_.size() < kMostSequences) return fork(which);
    if (kind == 13) return trim(which);
    if (kind == 14) return squeeze(choose);
    done_ = fmt::format("close {}", which);
    pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(which));
    return {};
  }

  std::string create() {
    done_ = "create";
    auto real = cache_->try_create_sequence();
    if (real == nullptr) {
      ++counts_.refused;
      ballast_.release();  // or nothing would ever happen again
      return {};
    }
    pairs_.push_back({std::move(real), {}, 0});
    return {};
  }

  std::string append(std::size_t which, const Choose& choose) {
    Pair& pair = pairs_[which];
    const Position size = pair.real->size();
    // Mostly the small steps of decode and chunks around a page's border, now and then a leap.
    const std::uint32_t reach = std::vector<std::uint32_t>{2, 20, 70, 150}[choose(4)];
    const auto tokens = std::min(static_cast<std::int32_t>(choose(reach)), kMostTokens - size);
    done_ = fmt::format("append {} to sequence {} of {}", tokens, which, size);
    trim_pair(pair);
    const std::uint64_t bytes = cache_->budget().current_bytes();
    const std::uint64_t needed = pair.real->bytes_to_append(tokens);
    const Room room = pair.real->try_append(tokens);
    if (!room) {
      ++counts_.refused;
      if (room.missing_bytes == 0) return "a refusal that misses nothing";
      if (room.refusal == Room::Refusal::kBudget &&
          room.missing_bytes != needed - cache_->budget().free_bytes())
        return "a refusal that names the wrong number of bytes";
      if (pair.real->size() != size || cache_->budget().current_bytes() != bytes)
        return "a refused append changed something";
      return {};
    }
    pair.real->check_writable(size, size + tokens);
    for (Position p = size; p < size + tokens; ++p) {
      pair.markers.push_back(choose(1U << 30));
      write(*pair.real, p, pair.markers.back());
    }
    return {};
  }

  std::string truncate(std::size_t which, const Choose& choose) {
    Pair& pair = pairs_[which];
    const Position size = pair.real->size();
    const bool nearby = choose(2) == 0;
    const std::int32_t back =
        static_cast<std::int32_t>(choose(static_cast<std::uint32_t>(nearby ? 20 : size + 1)));
    const Position to = std::max(0, size - back);
    done_ = fmt::format("cut sequence {} from {} to {}", which, size, to);
    const bool allowed = to == 0 || to == size || to >= pair.real->earliest_cut();
    if (!allowed && to >= pair.trimmed_at - cache_->config().cut_back_tokens)
      return "a cut back that was promised is not allowed";
    if (pair.real->try_truncate(to) != allowed) return "earliest_cut and try_truncate disagree";
    if (!allowed) ++counts_.cuts_refused;
    if (allowed) pair.markers.resize(static_cast<std::size_t>(to));
    if (to == 0) pair.trimmed_at = 0;
    return {};
  }

  std::string fork(std::size_t which) {
    done_ = fmt::format("fork {}", which);
    const std::uint64_t bytes = cache_->budget().current_bytes();
    auto copy = pairs_[which].real->try_fork();
    if (copy == nullptr) {
      ++counts_.refused;
      return cache_->budget().current_bytes() == bytes ? "" : "a refused fork took bytes";
    }
    ++counts_.forks;
    if (copy->memory().exclusive_pages != 0) return "a fresh fork has a page of its own";
    Pair pair{std::move(copy), pairs_[which].markers, pairs_[which].trimmed_at};
    pairs_.push_back(std::move(pair));
    return {};
  }

  std::string trim(std::size_t which) {
    done_ = fmt::format("trim {}", which);
    trim_pair(pairs_[which]);
    return {};
  }
  static void trim_pair(Pair& pair) {
    pair.real->trim();
    pair.trimmed_at = std::max(pair.trimmed_at, pair.real->size());
  }

  /// Lets others take all but a little of the budget, or gives it back.
  std::string squeeze(const Choose& choose) {
    ballast_.release();
    done_ = "release the ballast";
    if (cache_->budget().limit_bytes() == KvBudget::kUnlimited || choose(2) == 0) return {};
    const std::uint64_t leave = std::min<std::uint64_t>(choose(24 * 1024), free_bytes());
    ballast_ = take_bytes(cache_->budget(), free_bytes() - leave);
    done_ = fmt::format("squeeze to {} free bytes", leave);
    return {};
  }
  std::uint64_t free_bytes() const { return cache_->budget().free_bytes(); }

  std::string compare() const {
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (pairs_[i].real->size() != static_cast<Position>(pairs_[i].markers.size()))
        return fmt::format("sequence {} has {} tokens", i, pairs_[i].real->size());
      for (std::size_t g = 0; g < cache_->groups().size(); ++g) {
        const std::string trouble = compare_group(pairs_[i], g);
        if (!trouble.empty()) return fmt::format("sequence {}, group {}: {}", i, g, trouble);
      }
    }
    const Status status = cache_->validate(ballast_.bytes());
    return status.ok() ? std::string() : status.message();
  }

  std::string compare_group(const Pair& pair, std::size_t g) const {
    const PagedKvView view = pair.real->view(group_id(g));
    const std::int32_t window = cache_->groups()[g].window;
    const Position size = pair.real->size();
    const Position needed = window == 0 ? 0 : std::max(0, size - window + 1);
    Position position = view.first_page_number * view.layout->page_tokens;
    if (position > needed) return fmt::format("starts at {}, needs {}", position, needed);
    for (const KvPageRef& page : view.pages) {
      if (page.first_position != position) return fmt::format("no position {}", position);
      for (std::int32_t slot = 0; slot < page.filled; ++slot, ++position)
        if (!SlotPattern(*view.layout, page, slot)
                 .holds(pair.markers[static_cast<std::size_t>(position)] + kGroupStep * g))
          return fmt::format("position {} holds other values", position);
      for (std::int32_t slot = page.filled; slot < view.layout->page_tokens; ++slot)
        if (!SlotPattern(*view.layout, page, slot).finite())
          return "an unfilled slot is not finite";
    }
    return position == size ? "" : fmt::format("ends at {} of {}", position, size);
  }

  void write(const Sequence& sequence, Position position, std::uint32_t marker) const {
    for (std::size_t g = 0; g < cache_->groups().size(); ++g) {
      const KvPageRef page = sequence.page_for_write(group_id(g), position);
      const std::int32_t slot = position - page.first_position;
      SlotPattern(cache_->groups()[g].layout, page, slot).write(marker + kGroupStep * g);
    }
  }

  std::unique_ptr<KvCache> cache_;
  BudgetReservation ballast_;
  std::vector<Pair> pairs_;
  std::string done_;
  std::uint64_t empty_bytes_ = 0;
  Counts counts_;
};

}  // namespace memdecay
