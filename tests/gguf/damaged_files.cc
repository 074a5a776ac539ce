#include "damaged_files.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "model/gguf/tiny_model_for_test.h"

namespace memdecay {
namespace {

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostSigned = kMost / 2;
constexpr std::uint32_t kString = 8, kArray = 9, kUint32 = 4, kFloat32 = 6, kBool = 7;

/// The lies for a kind of field; a lie that happens to be the truth is left out.
std::vector<std::uint64_t> lies_for(std::string_view field, std::uint64_t truth,
                                    std::size_t file_bytes) {
  if (field.ends_with("_length") || field.ends_with("_count"))
    return field == "dimension_count"
               ? std::vector<std::uint64_t>{0, 5, 0x80000000U, 0xFFFFFFFFU}
               : std::vector<std::uint64_t>{
                     truth + 1, truth - 1, file_bytes, std::uint64_t{1} << 32, kMostSigned, kMost};
  if (field == "dimension")
    return {0, truth + 1, 2 * truth, std::uint64_t{1} << 62, kMostSigned + 1, kMost};
  if (field == "value_type") return {13, 99, 0xFFFFFFFFU};
  if (field == "tensor_type") return {4, 17, 28, 77, 0xFFFFFFFFU};
  if (field == "tensor_offset") return {truth + 1, truth + 32, file_bytes, kMost - 31, kMost};
  if (field == "version") return {0, 1, 4, 0x03000000U, 0xFFFFFFFFU};
  return {};
}

DamagedFile built(std::string how, GgufBuilder builder) {
  return {std::move(how), builder.build()};
}

/// The tiny model with one more key.
DamagedFile with_value(std::string how, std::uint32_t type, std::string value,
                       const std::string& key = "extra") {
  return built(std::move(how), tiny_model().add_raw(key, type, std::move(value)));
}

std::string nested_arrays(int depth) {
  std::string value = GgufBuilder::array_head(kUint32, 0);
  for (int i = 1; i < depth; ++i) value = GgufBuilder::array_head(kArray, 1) + value;
  return value;
}

template <typename T>
DamagedFile with_llama(const std::string& suffix, T value) {
  return built("llama." + suffix + " is wrong", tiny_model().add("llama." + suffix, value));
}

void add_bad_arrays(std::vector<DamagedFile>& files) {
  for (const int depth : {5, 64, 1000, 20000})
    files.push_back(
        with_value(fmt::format("arrays nested {} deep", depth), kArray, nested_arrays(depth)));
  for (const std::uint32_t type : {0U, 3U, kUint32, kFloat32, kBool, kString, kArray, 12U})
    for (const std::uint64_t count :
         {std::uint64_t{1} << 20, std::uint64_t{1} << 40, kMost / 8, kMostSigned, kMost})
      files.push_back(with_value(fmt::format("an array of {} elements of type {}", count, type),
                                 kArray, GgufBuilder::array_head(type, count)));
  files.push_back(
      with_value("an array of unknown elements", kArray, GgufBuilder::array_head(13, 1) + "x"));
  files.push_back(with_value("a string in an array that is too long", kArray,
                             GgufBuilder::array_head(kString, 2) + GgufBuilder::counted("ok") +
                                 GgufBuilder::little_endian(kMost)));
  files.push_back(with_value("a bool of 2", kBool, "\x02"));
  files.push_back(with_value("a bool of 255 in an array", kArray,
                             GgufBuilder::array_head(kBool, 2) + std::string("\x01\xff", 2)));
  files.push_back(with_value("a long string", kString, GgufBuilder::little_endian(kMost - 8)));
}

void add_bad_keys(std::vector<DamagedFile>& files) {
  const std::string one = GgufBuilder::little_endian(1U);
  const std::pair<const char*, std::string> keys[] = {
      {"an empty key", ""},
      {"a key of bad UTF-8", "a\xff\xfe.b"},
      {"a key of overlong UTF-8", "a\xc0\xaf"},
      {"a key with a surrogate", "a\xed\xa0\x80"},
      {"a key with a letter outside ASCII", "caf\xc3\xa9"},
      {"a key with a line break", "a\nb"},
      {"a key with a NUL", std::string("a\0b", 3)},
      {"a key with a space", "a b"},
      {"a key with an escape", "\x1b[31m"},
      {"a key of 70,000 bytes", std::string(70000, 'k')}};
  for (const auto& [how, key] : keys) files.push_back(with_value(how, kUint32, one, key));
  files.push_back(built("a key twice", tiny_model().add_again("general.name", kString,
                                                              GgufBuilder::counted("again"))));
  files.push_back(built("a key twice, with other types",
                        tiny_model().add_again("llama.block_count", kUint32, one)));
}

void add_bad_values(std::vector<DamagedFile>& files) {
  for (const std::uint64_t alignment : {std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{48},
                                        std::uint64_t{1} << 31, std::uint64_t{1} << 63, kMost})
    files.push_back(built(fmt::format("alignment {}", alignment),
                          tiny_model().add("general.alignment", alignment)));
  files.push_back(built("a larger alignment than the tensors have",
                        tiny_model().add("general.alignment", std::uint32_t{8192})));
  files.push_back(built("an alignment in words", tiny_model().add("general.alignment", "32")));
  files.push_back(built("one of 4 parts", tiny_model().add("split.count", std::uint16_t{4})));
  files.push_back(built("a split count in words", tiny_model().add("split.count", "4")));
  files.push_back(built("no architecture", tiny_model().remove("general.architecture")));
  files.push_back(
      built("an architecture of control characters",
            tiny_model().add("general.architecture", std::string_view("\x1b[2J\n\xff\xfe"))));
  files.push_back(
      built("a very long architecture",
            tiny_model().add("general.architecture", std::string_view(std::string(5000, 'a')))));
  for (const char* suffix :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.head_count_kv"}) {
    files.push_back(with_llama(suffix, std::uint32_t{0}));
    files.push_back(with_llama(suffix, std::int32_t{-1}));
    files.push_back(with_llama(suffix, kMost));
    files.push_back(with_llama(suffix, 2.0F));
    files.push_back(with_llama(suffix, "2"));
    files.push_back(with_llama(suffix, true));
  }
  for (const float value : {0.0F, -1.0F, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()}) {
    files.push_back(with_llama("rope.freq_base", value));
    files.push_back(with_llama("attention.layer_norm_rms_epsilon", value));
  }
  files.push_back(with_llama("expert_count", std::uint32_t{8}));
  files.push_back(with_llama("attention.key_length", std::uint32_t{7}));
  files.push_back(with_llama("attention.value_length", std::uint32_t{4}));
  files.push_back(with_llama("rope.dimension_count", std::uint32_t{5}));
  files.push_back(with_llama("rope.scaling.type", "su"));
  files.push_back(built("a token list of another length",
                        tiny_model().add_strings("tokenizer.ggml.tokens", {"one"})));
}

}  // namespace

std::vector<DamagedFile> truncated_files() {
  GgufBuilder builder = tiny_model();
  const std::vector<std::byte> right = builder.build();
  std::vector<DamagedFile> files;
  const auto cut = [&](const std::string& how, std::size_t bytes) {
    files.push_back({how, {right.begin(), right.begin() + static_cast<std::ptrdiff_t>(bytes)}});
  };
  for (const auto& place : builder.places()) {
    const std::string where = fmt::format("{} at byte {}", place.what, place.offset);
    cut("cut before the " + where, place.offset);
    if (place.bytes > 1) cut("cut inside the " + where, place.offset + place.bytes / 2);
  }
  for (std::size_t bytes = 0; bytes < 4; ++bytes)
    cut(fmt::format("cut after {} bytes", bytes), bytes);
  cut("cut before the last byte of data", right.size() - 32);
  return files;
}

std::vector<DamagedFile> files_with_a_lie() {
  GgufBuilder builder = tiny_model();
  const std::vector<std::byte> right = builder.build();
  std::vector<DamagedFile> files;
  for (const auto& place : builder.places()) {
    std::uint64_t truth = 0;
    if (place.bytes > sizeof truth) continue;
    std::memcpy(&truth, right.data() + place.offset, place.bytes);
    for (const std::uint64_t lie : lies_for(place.what, truth, right.size())) {
      std::vector<std::byte> bytes = right;
      std::memcpy(bytes.data() + place.offset, &lie, place.bytes);
      files.push_back(
          {fmt::format("{} at byte {} is {}, not {}", place.what, place.offset, lie, truth),
           std::move(bytes)});
    }
  }
  return files;
}

std::vector<DamagedFile> files_with_bad_metadata() {
  std::vector<DamagedFile> files;
  add_bad_arrays(files);
  add_bad_keys(files);
  add_bad_values(files);
  return files;
}

std::vector<DamagedFile> files_with_bad_tensors() {
  std::vector<DamagedFile> files;
  const auto replaced = [](const std::string& name, std::vector<std::uint64_t> dimensions,
                           std::uint32_t type, std::uint64_t bytes) {
    return built(name + " is another tensor", tiny_model().remove_tensor(name).add_raw_tensor(
                                                  name, std::move(dimensions), type, bytes));
  };
  for (const char* name :
       {"token_embd.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
        "blk.1.attn_k.weight", "blk.1.attn_v.weight", "blk.0.attn_output.weight",
        "blk.1.ffn_norm.weight", "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight",
        "blk.1.ffn_down.weight"}) {
    files.push_back(built(std::string(name) + " is missing", tiny_model().remove_tensor(name)));
    files.push_back(
        built(std::string(name) + " is there twice", tiny_model().add_tensor(name, {32})));
    files.push_back(replaced(name, {96}, 0, 384));
    files.push_back(replaced(name, {32, 2, 2, 2}, 0, 1024));
    files.push_back(replaced(name, {32, 16}, 17, 512));
    files.push_back(replaced(name, {std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 0, 64));
    files.push_back(replaced(name, {std::uint64_t{1} << 31, std::uint64_t{1} << 31}, 0, 64));
    files.push_back(replaced(name, {33, 16}, 2, 512));
  }
  for (const char* name : {"blk.0.attn_output.bias", "blk.2.attn_norm.weight", "v.patch.weight",
                           "blk.0.ffn_gate_exps.weight", "blk.0.attn_q.bias", "x"})
    files.push_back(built(std::string("the tensor ") + name + " is not known",
                          tiny_model().add_tensor(name, {32})));
  for (const std::string& name : {std::string(), std::string("a\xff"), std::string("a b"),
                                  std::string(65, 't'), std::string("a\0b", 3)})
    files.push_back(built(fmt::format("a tensor name of {} bytes", name.size()),
                          tiny_model().add_tensor(name, {32})));
  files.push_back(built("rope divisors of 0", tiny_model().add_tensor("rope_freqs.weight", {4})));
  files.push_back(
      built("rope divisors of another length", tiny_model().add_tensor("rope_freqs.weight", {8})));
  files.push_back(built("no tensors at all", GgufBuilder().add("general.architecture", "llama")));
  return files;
}

}  // namespace memdecay
