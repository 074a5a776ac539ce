// libFuzzer over sequences of prefix tree operations: the bytes choose shape and operations,
// PrefixOracle judges. Any disagreement ends the process.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "core/check.h"
#include "kv/prefix/prefix_model.h"

namespace {

/// Hands out bytes as numbers, zeros at the end.
class ByteChooser {
 public:
  ByteChooser(const std::uint8_t* bytes, std::size_t count) : next_(bytes), end_(bytes + count) {}
  bool empty() const { return next_ == end_; }
  std::uint32_t operator()(std::uint32_t bound) {
    return empty() ? 0 : static_cast<std::uint32_t>(*next_++) % bound;
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  ByteChooser choose(bytes, count);
  memdecay::PrefixWorld::Shape shape;
  shape.window = static_cast<std::int32_t>(choose(40));
  shape.budget_bytes = 50'000 + std::uint64_t{choose(256)} * 997;
  shape.one_key = choose(2) == 1;
  memdecay::PrefixModel model(shape);
  std::string trouble;
  for (int step = 0; step < 300 && !choose.empty() && trouble.empty(); ++step)
    trouble = model.step([&](std::uint32_t bound) { return choose(bound); });
  if (trouble.empty()) trouble = model.finish();
  if (!trouble.empty()) std::fprintf(stderr, "%s\n", trouble.c_str());
  MEMDECAY_CHECK(trouble.empty());
  return 0;
}
