// GgufBuilder: writes small GGUF files in memory, for tests and the fuzzer's seeds. Right by
// default; every place where a number stands is remembered, so that a test can damage exactly that
// one. For one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "model/gguf/gguf_value_type.h"
#include "quant/weight_type.h"

namespace memdecay {

class GgufBuilder {
 public:
  /// A field of the built file: "tensor_count", "key_length", "value", "dimension", ...
  struct Place {
    std::string what;
    std::size_t offset;
    std::size_t bytes;
  };

  std::uint32_t version = 3;
  std::size_t alignment = 32;  ///< of the layout; general.alignment is written by whoever adds it

  template <typename T>
  GgufBuilder& add(const std::string& key, T value) {
    return add_raw(key, number_of<T>(), little_endian(value));
  }
  GgufBuilder& add(const std::string& key, std::string_view text) {
    return add_raw(key, static_cast<std::uint32_t>(GgufValueType::kString), counted(text));
  }
  GgufBuilder& add(const std::string& key, const char* text) {
    return add(key, std::string_view(text));
  }
  template <typename T>
  GgufBuilder& add_array(const std::string& key, const std::vector<T>& values) {
    std::string items;
    for (const T value : values) items += little_endian(value);
    return add_raw(key, static_cast<std::uint32_t>(GgufValueType::kArray),
                   array_head(number_of<T>(), values.size()) + items);
  }
  GgufBuilder& add_strings(const std::string& key, const std::vector<std::string>& values) {
    std::string items;
    for (const std::string& value : values) items += counted(value);
    return add_raw(
        key, static_cast<std::uint32_t>(GgufValueType::kArray),
        array_head(static_cast<std::uint32_t>(GgufValueType::kString), values.size()) + items);
  }
  /// Replaces the value where the key is there already.
  GgufBuilder& add_raw(const std::string& key, std::uint32_t type, std::string value) {
    for (Entry& entry : metadata_) {
      if (entry.key != key) continue;
      entry = {key, type, std::move(value)};
      return *this;
    }
    return add_again(key, type, std::move(value));
  }
  /// Adds the key even where it is there already.
  GgufBuilder& add_again(const std::string& key, std::uint32_t type, std::string value) {
    metadata_.push_back({key, type, std::move(value)});
    return *this;
  }
  GgufBuilder& remove(std::string_view key) {
    std::erase_if(metadata_, [&](const Entry& entry) { return entry.key == key; });
    return *this;
  }

  /// A tensor of zeros behind the ones before it.
  GgufBuilder& add_tensor(const std::string& name, std::vector<std::uint64_t> dimensions,
                          WeightType type = WeightType::kF32) {
    std::uint64_t values = 1;
    for (const std::uint64_t length : dimensions) values *= length;
    const WeightTypeTraits& traits = weight_type_traits(type);
    const std::uint64_t bytes =
        values / static_cast<std::uint64_t>(traits.block_values) * traits.block_bytes;
    return add_raw_tensor(name, std::move(dimensions), static_cast<std::uint32_t>(type), bytes);
  }
  GgufBuilder& add_raw_tensor(const std::string& name, std::vector<std::uint64_t> dimensions,
                              std::uint32_t type, std::uint64_t bytes) {
    tensors_.push_back({name, std::move(dimensions), type, bytes});
    return *this;
  }
  GgufBuilder& remove_tensor(std::string_view name) {
    std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
    return *this;
  }

  std::vector<std::byte> build() {
    out_.clear();
    places_.clear();
    out_ += "GGUF";
    put("version", version);
    put("tensor_count", std::uint64_t{tensors_.size()});
    put("metadata_count", std::uint64_t{metadata_.size()});
    for (const Entry& entry : metadata_) {
      put_name("key", entry.key);
      put("value_type", entry.type);
      note("value", entry.value.size());
      out_ += entry.value;
    }
    const std::uint64_t data_bytes = put_directory();
    out_.resize((out_.size() + alignment - 1) / alignment * alignment);
    note("data", static_cast<std::size_t>(data_bytes));
    out_.resize(out_.size() + static_cast<std::size_t>(data_bytes));
    std::vector<std::byte> bytes(out_.size());
    std::memcpy(bytes.data(), out_.data(), out_.size());
    return bytes;
  }
  /// The fields of the file that build() made last.
  const std::vector<Place>& places() const { return places_; }

  template <typename T>
  static std::string little_endian(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
  }
  static std::string counted(std::string_view text) {
    return little_endian(std::uint64_t{text.size()}) + std::string(text);
  }
  static std::string array_head(std::uint32_t type, std::uint64_t count) {
    return little_endian(type) + little_endian(count);
  }

 private:
  struct Entry {
    std::string key;
    std::uint32_t type;
    std::string value;
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> dimensions;
    std::uint32_t type;
    std::uint64_t bytes;
  };

  template <typename T>
  static constexpr std::uint32_t number_of() {
    static_assert(std::is_arithmetic_v<T>);
    if constexpr (std::is_same_v<T, bool>) return 7;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, double>) return 12;
    if constexpr (std::is_integral_v<T>) {
      constexpr std::uint32_t is_signed = std::is_signed_v<T> ? 1 : 0;
      return (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : sizeof(T) == 4 ? 4 : 10) + is_signed;
    }
  }
  void note(const char* what, std::size_t bytes) { places_.push_back({what, out_.size(), bytes}); }
  template <typename T>
  void put(const char* what, T value) {
    note(what, sizeof value);
    out_ += little_endian(value);
  }
  void put_name(const std::string& what, const std::string& name) {
    put((what + "_length").c_str(), std::uint64_t{name.size()});
    note(what.c_str(), name.size());
    out_ += name;
  }
  std::uint64_t put_directory() {
    std::uint64_t offset = 0;
    for (const Tensor& tensor : tensors_) {
      put_name("tensor_name", tensor.name);
      put("dimension_count", static_cast<std::uint32_t>(tensor.dimensions.size()));
      for (const std::uint64_t length : tensor.dimensions) put("dimension", length);
      put("tensor_type", tensor.type);
      put("tensor_offset", offset);
      offset += (tensor.bytes + alignment - 1) / alignment * alignment;
    }
    return offset;
  }

  std::vector<Entry> metadata_;
  std::vector<Tensor> tensors_;
  std::string out_;
  std::vector<Place> places_;
};

}  // namespace memdecay
