// GgufFile: a GGUF model file (v2 or v3, little-endian), checked whole when opened, read through
// mmap.
//
// Opening walks the header once and checks every count, length and offset before it is used:
// nothing that the file says can make this class read outside it or allocate more than its size
// (the directory costs 12 bytes per key and per tensor, less than each takes in the file; all else
// are views). After that nothing here fails for reasons of format. The tensors' data is not
// touched. What the metadata means is ModelConfig's business. docs/formats/gguf.md says what is
// accepted.
//
// Invariants: keys are unique, as are tensor names; tensor data is aligned, inside the file, behind
// the header, and no two tensors share a byte; rows are whole blocks of their type.
// Immutable after open; any thread may read. All views live as long as the object (or the one it
// was moved to). Costs: open is linear in the header (6 MB: a few ms); lookups are O(log n).
//
// Format: github.com/ggml-org/ggml, docs/gguf.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "model/gguf/gguf_tensor.h"
#include "model/gguf/gguf_value.h"
#include "sys/mapped_file.h"

namespace memdecay {

class GgufFile {
 public:
  /// Every failure names the path: kCorrupt when the bytes break the format, kUnsupported for
  /// versions, byte orders and split files that this build does not read.
  static Result<GgufFile> open(const std::string& path);
  /// The same for bytes that the caller keeps alive; `name` stands for the path in messages.
  static Result<GgufFile> from_bytes(std::span<const std::byte> bytes, const std::string& name);

  const std::string& name() const { return name_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::uint32_t version() const { return version_; }
  std::size_t alignment() const { return alignment_; }
  /// Where the tensor data begins.
  std::size_t data_offset() const { return data_offset_; }
  /// The mapping, for advice and drop(); nullptr for from_bytes.
  const MappedFile* mapping() const { return mapping_ ? &*mapping_ : nullptr; }

  /// Metadata in the file's order. REQUIRES: index < metadata_count().
  std::size_t metadata_count() const { return metadata_.entries.size(); }
  std::string_view key(std::size_t index) const;
  GgufValue value(std::size_t index) const;
  std::optional<GgufValue> find(std::string_view key) const;

  /// The value of `key` as T (see GgufValue::as); kCorrupt, naming the key, when it is missing or
  /// does not convert.
  template <typename T>
  Result<T> required(std::string_view key) const;
  /// Nothing when the key is absent; a failure still when it is there and does not convert.
  template <typename T>
  Result<std::optional<T>> optional(std::string_view key) const;
  /// The strings (numbers) of the array `key`, which must be there.
  Result<GgufStrings> strings(std::string_view key) const;
  template <typename T>
  Result<GgufNumbers<T>> numbers(std::string_view key) const;

  /// Tensors in the file's order, also those of unreadable types. REQUIRES: index < tensor_count().
  std::size_t tensor_count() const { return tensors_.entries.size(); }
  GgufTensor tensor(std::size_t index) const;
  std::optional<GgufTensor> find_tensor(std::string_view name) const;
  /// A tensor whose data this build reads: kCorrupt when it is missing, kUnsupported when its type
  /// is not among quant/weight_type.h.
  Result<GgufTensor> readable_tensor(std::string_view name) const;

 private:
  /// Where entries start in the file, and their numbers in the order of their names.
  struct Directory {
    std::vector<std::uint64_t> entries;
    std::vector<std::uint32_t> by_name;
  };

  GgufFile() = default;
  Status parse();
  Status parse_metadata(GgufCursor& cursor, std::uint64_t count);
  Status parse_tensors(GgufCursor& cursor, std::uint64_t count);
  Status check_known_metadata();
  Status check_layout() const;
  Status check_no_overlap() const;
  Status sort_by_name(Directory& directory, const char* what) const;
  std::string_view name_at(std::uint64_t entry) const;
  std::optional<std::size_t> find_in(const Directory& directory, std::string_view name) const;
  Status about(std::string_view key, const Status& failure) const;

  std::string name_;
  std::optional<MappedFile> mapping_;
  std::span<const std::byte> bytes_;
  std::uint32_t version_ = 0;
  std::size_t alignment_ = 32;
  std::size_t data_offset_ = 0;
  Directory metadata_;
  Directory tensors_;
};

template <typename T>
Result<T> GgufFile::required(std::string_view key) const {
  const std::optional<GgufValue> value = find(key);
  if (!value) return make_status(StatusCode::kCorrupt, "{}: the key {} is missing", name_, key);
  Result<T> converted = value->as<T>();
  if (!converted.ok()) return about(key, converted.status());
  return converted;
}

template <typename T>
Result<std::optional<T>> GgufFile::optional(std::string_view key) const {
  const std::optional<GgufValue> value = find(key);
  if (!value) return std::optional<T>();
  Result<T> converted = value->as<T>();
  if (!converted.ok()) return about(key, converted.status());
  return std::optional<T>(std::move(converted).value());
}

template <typename T>
Result<GgufNumbers<T>> GgufFile::numbers(std::string_view key) const {
  MEMDECAY_ASSIGN_OR_RETURN(const GgufArray array, required<GgufArray>(key));
  Result<GgufNumbers<T>> numbers = array.numbers<T>();
  if (!numbers.ok()) return about(key, numbers.status());
  return numbers;
}

}  // namespace memdecay
