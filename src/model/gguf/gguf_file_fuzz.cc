// Any bytes: the reader refuses them in one sentence or gives views that can all be read.
// Seeds: `gguf_make_seeds FOLDER` (tests/gguf); words: tests/gguf/gguf.dict.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/gguf/model_tensors.h"

namespace memdecay {
namespace {

/// What is read goes here: a compiler may leave out a read that nobody looks at.
volatile double sink;

void read_array(const GgufArray& array, int depth) {
  if (const auto strings = array.strings(); strings.ok())
    for (const std::string_view text : *strings)
      MEMDECAY_CHECK(quote_gguf_text(text, 16).size() >= 2);
  if (const auto numbers = array.numbers<std::int32_t>(); numbers.ok())
    for (std::size_t i = 0; i < numbers->size(); ++i) sink = static_cast<double>((*numbers)[i]);
  if (const auto numbers = array.numbers<float>(); numbers.ok())
    for (std::size_t i = 0; i < numbers->size(); ++i) sink = static_cast<double>((*numbers)[i]);
  if (array.element_type() != GgufValueType::kArray || depth == 0) return;
  for (std::size_t i = 0; i < array.size() && i < 4; ++i)
    read_array(array.element(i).as<GgufArray>().value(), depth - 1);
}

void read_everything(const GgufFile& file) {
  for (std::size_t i = 0; i < file.metadata_count(); ++i) {
    const GgufValue value = file.value(i);
    MEMDECAY_CHECK(!value.describe().empty() && file.find(file.key(i)).has_value());
    if (const auto array = value.as<GgufArray>(); array.ok())
      read_array(*array, kGgufMaxArrayDepth);
  }
  for (std::size_t i = 0; i < file.tensor_count(); ++i) {
    const GgufTensor tensor = file.tensor(i);
    MEMDECAY_CHECK(file.find_tensor(tensor.name).has_value());
    if (tensor.bytes.empty()) continue;
    MEMDECAY_CHECK(tensor.bytes.data() >= file.bytes().data() + file.data_offset());
    sink = std::to_integer<int>(tensor.bytes.front()) + std::to_integer<int>(tensor.bytes.back());
  }
  const auto config = ModelConfig::read(file);
  if (!config.ok()) return;
  MEMDECAY_CHECK(config->heads % config->kv_heads == 0 && config->head_dim % 2 == 0);
  const auto tensors = ModelTensors::find(file, *config);
  if (!tensors.ok()) return;
  for (int layer = 0; layer < config->layers; ++layer)
    MEMDECAY_CHECK(!tensors->layer(layer).down.bytes.empty());
  MEMDECAY_CHECK(!rope_frequencies(config->rope, tensors->rope_divisors()).empty());
}

}  // namespace
}  // namespace memdecay

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = memdecay::GgufFile::from_bytes(bytes, "fuzzed");
  if (file.ok())
    memdecay::read_everything(*file);
  else
    MEMDECAY_CHECK(!file.status().message().empty());
  return 0;
}
