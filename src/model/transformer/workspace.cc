#include "model/transformer/workspace.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace memdecay {
namespace {

/// Hands out 64-byte aligned pieces of a memory range whose size is not known yet.
class Layout {
 public:
  template <typename T>
  void add(T** place, std::size_t count) {
    const std::size_t offset = total_;
    setters_.push_back(
        [place, offset](std::byte* base) { *place = reinterpret_cast<T*>(base + offset); });
    total_ += (count * sizeof(T) + 63) / 64 * 64;
  }
  std::size_t total() const { return total_; }
  void assign(std::byte* base) const {
    for (const auto& set : setters_) set(base);
  }

 private:
  std::vector<std::function<void(std::byte*)>> setters_;
  std::size_t total_ = 0;
};

}  // namespace

Result<Workspace> Workspace::create(const ModelConfig& config, const KernelTable& kernels,
                                    int max_rows, int max_logit_rows) {
  Workspace w;
  w.max_rows = max_rows;
  w.max_logit_rows = max_logit_rows;
  w.positions.resize(static_cast<std::size_t>(max_rows));
  w.virtual_places.resize(static_cast<std::size_t>(max_rows));
  const int query_width = config.heads * config.head_dim;
  const int kv_width = config.kv_heads * config.head_dim;
  const int widest = std::max({config.embedding_length, query_width, config.feed_forward_length});
  const auto floats = [](int rows, int width) {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(width);
  };
  const int columns = std::max(max_rows, max_logit_rows);

  Layout layout;
  layout.add(&w.x, floats(max_rows, config.embedding_length));
  layout.add(&w.normed, floats(columns, config.embedding_length));
  layout.add(&w.q, floats(max_rows, query_width));
  layout.add(&w.k, floats(max_rows, kv_width));
  layout.add(&w.v, floats(max_rows, kv_width));
  layout.add(&w.attended, floats(max_rows, query_width));
  layout.add(&w.gate, floats(max_rows, config.feed_forward_length));
  layout.add(&w.up, floats(max_rows, config.feed_forward_length));
  layout.add(&w.logits, floats(max_logit_rows, config.vocab_size));
  layout.add(&w.head_input, floats(max_logit_rows, config.embedding_length));
  layout.add(&w.quantized, kernels.activation_bytes(widest, columns));
  // Memory is committed as it is touched: a server that only decodes never pays for the largest
  // batch.
  MEMDECAY_ASSIGN_OR_RETURN(w.memory, AnonymousMemory::allocate(layout.total(), HugePages::kNever));
  layout.assign(w.memory.data());
  return w;
}

}  // namespace memdecay
