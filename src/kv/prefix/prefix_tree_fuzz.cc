// libFuzzer over sequences of prefix tree operations: the bytes choose shape and operations,
// PrefixOracle judges. Any disagreement ends the process.
#include <cstddef>
#include <cstdint>

#include "kv/prefix/prefix_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t count) {
  memdecay::ByteChooser choose(bytes, count);
  memdecay::PrefixWorld::Shape shape;
  shape.window = static_cast<std::int32_t>(choose(40));
  shape.budget_bytes = 50'000 + std::uint64_t{choose(256)} * 997;
  shape.one_key = choose(2) == 1;
  memdecay::PrefixModel model(shape);
  memdecay::walk_or_die(model, choose);
  return 0;
}
