#include "model/gguf/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "model/gguf/gguf_file_kind.h"

namespace memdecay {
namespace {

constexpr std::size_t kMaxKeyBytes = 65535;      // the format's own limit
constexpr std::size_t kMaxTensorNameBytes = 64;  // likewise
constexpr std::uint64_t kMaxAlignment = std::uint64_t{1} << 30;
/// The least bytes of an entry: a name of one letter, then type and value; dimensions and place.
constexpr std::size_t kLeastMetadataBytes = 8 + 1 + 4 + 1;
constexpr std::size_t kLeastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

template <typename... Args>
Status corrupt(fmt::format_string<Args...> format, Args&&... args) {
  return make_status(StatusCode::kCorrupt, format, std::forward<Args>(args)...);
}

/// Names are shown in messages and joined with dots: letters one can see, no spaces.
bool is_plain_name(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < '\x7F'; });
}

Status read_name(GgufCursor& cursor, const char* what, std::size_t max_bytes,
                 std::string_view& name) {
  if (!cursor.read_string(name)) return corrupt("the file ends inside the name of a {}", what);
  if (name.empty()) return corrupt("a {} has no name", what);
  if (name.size() > max_bytes)
    return corrupt("a {} has a name of {} bytes, more than {}", what, name.size(), max_bytes);
  if (!is_plain_name(name))
    return corrupt("the name {} of a {} has characters other than visible ASCII",
                   quote_gguf_text(name), what);
  return {};
}

/// Reads what follows a tensor's name. `offset` is relative to the data section.
Status read_tensor_facts(GgufCursor& cursor, GgufTensor& tensor, std::uint64_t& offset) {
  const auto ends = [&] { return corrupt("the file ends inside the tensor {}", tensor.name); };
  std::uint32_t dimension_count = 0;
  if (!cursor.read(dimension_count)) return ends();
  if (dimension_count < 1 || dimension_count > kGgufMaxDimensions)
    return corrupt("the tensor {} has {} dimensions; 1 to {} are possible", tensor.name,
                   dimension_count, kGgufMaxDimensions);
  tensor.dimension_count = static_cast<int>(dimension_count);
  std::int64_t values = 1;
  for (std::size_t i = 0; i < dimension_count; ++i) {
    std::uint64_t length = 0;
    if (!cursor.read(length)) return ends();
    if (length == 0) return corrupt("the tensor {} has a dimension of length 0", tensor.name);
    if (length > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / values))
      return corrupt("the dimensions of the tensor {} are too large to multiply", tensor.name);
    tensor.dimensions[i] = static_cast<std::int64_t>(length);
    values *= tensor.dimensions[i];
  }
  return cursor.read(tensor.type_number) && cursor.read(offset) ? Status() : ends();
}

/// Bytes of a tensor's data, or nothing when they are more than any file has.
std::optional<std::uint64_t> data_bytes(const GgufTensor& tensor, const WeightTypeTraits& traits) {
  const auto blocks = static_cast<std::uint64_t>(tensor.values() / traits.block_values);
  if (blocks > std::numeric_limits<std::uint64_t>::max() / traits.block_bytes) return std::nullopt;
  return blocks * traits.block_bytes;
}

}  // namespace

std::string GgufTensor::shape_text() const {
  std::string text = "[";
  for (std::size_t i = 0; i < static_cast<std::size_t>(dimension_count); ++i)
    text += fmt::format("{}{}", i > 0 ? ", " : "", dimensions[i]);
  return text + "]";
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  MEMDECAY_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::open(path));
  const std::span<const std::byte> bytes = mapping.bytes();
  MEMDECAY_ASSIGN_OR_RETURN(GgufFile file, from_bytes(bytes, path));
  file.mapping_ = std::move(mapping);
  return file;
}

Result<GgufFile> GgufFile::from_bytes(std::span<const std::byte> bytes, const std::string& name) {
  GgufFile file;
  file.name_ = name;
  file.bytes_ = bytes;
  if (const Status status = file.parse(); !status.ok()) return status.with_context(name);
  return file;
}

Status GgufFile::parse() {
  MEMDECAY_RETURN_IF_ERROR(check_gguf_kind(bytes_));
  GgufCursor cursor(bytes_);
  std::uint32_t magic = 0;
  std::uint64_t tensor_count = 0;
  std::uint64_t metadata_count = 0;
  if (!cursor.read(magic) || !cursor.read(version_) || !cursor.read(tensor_count) ||
      !cursor.read(metadata_count))
    return corrupt("the file ends inside its header");
  MEMDECAY_RETURN_IF_ERROR(parse_metadata(cursor, metadata_count));
  MEMDECAY_RETURN_IF_ERROR(check_known_metadata());
  MEMDECAY_RETURN_IF_ERROR(parse_tensors(cursor, tensor_count));
  // Cannot overflow: the position is within the file, and the alignment is at most 2^30.
  data_offset_ = (cursor.position() + alignment_ - 1) / alignment_ * alignment_;
  return check_layout();
}

Status GgufFile::parse_metadata(GgufCursor& cursor, std::uint64_t count) {
  if (count > cursor.remaining() / kLeastMetadataBytes ||
      count > std::numeric_limits<std::uint32_t>::max())
    return corrupt("the file claims {} metadata keys, more than it can hold", count);
  metadata_.entries.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    metadata_.entries.push_back(cursor.position());
    std::string_view key;
    MEMDECAY_RETURN_IF_ERROR(read_name(cursor, "metadata key", kMaxKeyBytes, key));
    std::uint32_t number = 0;
    if (!cursor.read(number)) return corrupt("the file ends inside the value of {}", key);
    const auto type = find_gguf_value_type(number);
    if (!type) return corrupt("the value of {} has the unknown type {}", key, number);
    const Status status = skip_gguf_value(cursor, *type);
    if (!status.ok()) return status.with_context(fmt::format("the value of {}", key));
  }
  return sort_by_name(metadata_, "metadata key");
}

Status GgufFile::check_known_metadata() {
  if (const auto alignment = find("general.alignment")) {
    const auto bytes = alignment->as<std::uint64_t>();
    if (!bytes.ok()) return bytes.status().with_context("general.alignment");
    if (!std::has_single_bit(*bytes) || *bytes > kMaxAlignment)
      return corrupt("general.alignment is {}, not a power of two up to {}", *bytes, kMaxAlignment);
    alignment_ = static_cast<std::size_t>(*bytes);
  }
  if (const auto split = find("split.count")) {
    const auto parts = split->as<std::uint64_t>();
    if (!parts.ok()) return parts.status().with_context("split.count");
    if (*parts > 1)
      return make_status(StatusCode::kUnsupported,
                         "this is one of {} parts of a split model; merge the parts into one file",
                         *parts);
  }
  return {};
}

Status GgufFile::parse_tensors(GgufCursor& cursor, std::uint64_t count) {
  if (count > cursor.remaining() / kLeastTensorBytes ||
      count > std::numeric_limits<std::uint32_t>::max())
    return corrupt("the file claims {} tensors, more than it can hold", count);
  tensors_.entries.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    tensors_.entries.push_back(cursor.position());
    GgufTensor tensor;
    std::uint64_t offset = 0;
    MEMDECAY_RETURN_IF_ERROR(read_name(cursor, "tensor", kMaxTensorNameBytes, tensor.name));
    MEMDECAY_RETURN_IF_ERROR(read_tensor_facts(cursor, tensor, offset));
    const auto traits = find_weight_type(tensor.type_number);
    if (traits && tensor.row_values() % traits->block_values != 0)
      return corrupt("the rows of the tensor {} have {} values, not whole blocks of {} ({})",
                     tensor.name, tensor.row_values(), traits->block_values, traits->name);
  }
  return sort_by_name(tensors_, "tensor");
}

Status GgufFile::check_layout() const {
  for (const std::uint64_t entry : tensors_.entries) {
    GgufCursor cursor(bytes_.subspan(static_cast<std::size_t>(entry)));
    GgufTensor tensor;
    std::uint64_t offset = 0;
    MEMDECAY_CHECK(cursor.read_string(tensor.name));
    MEMDECAY_RETURN_IF_ERROR(read_tensor_facts(cursor, tensor, offset));
    if (offset % alignment_ != 0)
      return corrupt("the data of the tensor {} is not aligned to {} bytes", tensor.name,
                     alignment_);
    const auto traits = find_weight_type(tensor.type_number);
    // Of an unreadable type the size is not known: one byte must be there.
    const std::optional<std::uint64_t> size = traits ? data_bytes(tensor, *traits) : 1;
    const std::uint64_t room = bytes_.size() - std::min(data_offset_, bytes_.size());
    if (offset > room || !size || *size > room - offset)
      return corrupt("the data of the tensor {} reaches beyond the end of the file", tensor.name);
  }
  return check_no_overlap();
}

Status GgufFile::check_no_overlap() const {
  std::vector<std::uint32_t> by_offset(tensor_count());
  std::iota(by_offset.begin(), by_offset.end(), 0U);
  std::sort(by_offset.begin(), by_offset.end(), [&](std::uint32_t a, std::uint32_t b) {
    return tensor(a).file_offset < tensor(b).file_offset;
  });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor before = tensor(by_offset[i - 1]);
    const GgufTensor after = tensor(by_offset[i]);
    const std::uint64_t size = std::max<std::uint64_t>(before.bytes.size(), 1);
    if (before.file_offset + size > after.file_offset)
      return corrupt("the data of the tensors {} and {} overlap", before.name, after.name);
  }
  return {};
}

std::string_view GgufFile::name_at(std::uint64_t entry) const {
  std::string_view name;
  MEMDECAY_CHECK(GgufCursor(bytes_.subspan(static_cast<std::size_t>(entry))).read_string(name));
  return name;
}

Status GgufFile::sort_by_name(Directory& directory, const char* what) const {
  std::vector<std::uint32_t>& order = directory.by_name;
  order.resize(directory.entries.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto name = [&](std::uint32_t i) { return name_at(directory.entries[i]); };
  std::sort(order.begin(), order.end(),
            [&](std::uint32_t a, std::uint32_t b) { return name(a) < name(b); });
  const auto twice =
      std::adjacent_find(order.begin(), order.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return name(a) == name(b); });
  if (twice != order.end()) return corrupt("the {} {} occurs twice", what, name(*twice));
  return {};
}

std::optional<std::size_t> GgufFile::find_in(const Directory& directory,
                                             std::string_view name) const {
  const auto found = std::lower_bound(directory.by_name.begin(), directory.by_name.end(), name,
                                      [&](std::uint32_t i, std::string_view wanted) {
                                        return name_at(directory.entries[i]) < wanted;
                                      });
  if (found == directory.by_name.end() || name_at(directory.entries[*found]) != name)
    return std::nullopt;
  return *found;
}

std::string_view GgufFile::key(std::size_t index) const {
  MEMDECAY_CHECK(index < metadata_count());
  return name_at(metadata_.entries[index]);
}

GgufValue GgufFile::value(std::size_t index) const {
  MEMDECAY_CHECK(index < metadata_count());
  GgufCursor cursor(bytes_.subspan(static_cast<std::size_t>(metadata_.entries[index])));
  std::string_view key;
  std::uint32_t number = 0;
  MEMDECAY_CHECK(cursor.read_string(key) && cursor.read(number));
  const auto type = find_gguf_value_type(number);
  MEMDECAY_CHECK(type.has_value());
  // The value ends somewhere before the end of the file; its own lengths say where.
  return {*type, bytes_.subspan(static_cast<std::size_t>(cursor.here() - bytes_.data()))};
}

std::optional<GgufValue> GgufFile::find(std::string_view key) const {
  const auto index = find_in(metadata_, key);
  if (!index) return std::nullopt;
  return value(*index);
}

Result<GgufStrings> GgufFile::strings(std::string_view key) const {
  MEMDECAY_ASSIGN_OR_RETURN(const GgufArray array, required<GgufArray>(key));
  Result<GgufStrings> strings = array.strings();
  if (!strings.ok()) return about(key, strings.status());
  return strings;
}

Status GgufFile::about(std::string_view key, const Status& failure) const {
  return failure.with_context(fmt::format("{}: the value of {}", name_, key));
}

GgufTensor GgufFile::tensor(std::size_t index) const {
  MEMDECAY_CHECK(index < tensor_count());
  GgufCursor cursor(bytes_.subspan(static_cast<std::size_t>(tensors_.entries[index])));
  GgufTensor tensor;
  std::uint64_t offset = 0;
  MEMDECAY_CHECK(cursor.read_string(tensor.name));
  MEMDECAY_CHECK(read_tensor_facts(cursor, tensor, offset).ok());
  tensor.file_offset = data_offset_ + offset;
  if (const auto traits = find_weight_type(tensor.type_number)) {
    tensor.type = traits->type;
    tensor.bytes = bytes_.subspan(static_cast<std::size_t>(tensor.file_offset),
                                  static_cast<std::size_t>(*data_bytes(tensor, *traits)));
  }
  return tensor;
}

std::optional<GgufTensor> GgufFile::find_tensor(std::string_view name) const {
  const auto index = find_in(tensors_, name);
  if (!index) return std::nullopt;
  return tensor(*index);
}

Result<GgufTensor> GgufFile::readable_tensor(std::string_view name) const {
  const std::optional<GgufTensor> tensor = find_tensor(name);
  if (!tensor) return corrupt("{}: the tensor {} is missing", name_, name);
  if (!tensor->type)
    return make_status(StatusCode::kUnsupported,
                       "{}: the tensor {} has type {}, which this build cannot read", name_, name,
                       gguf_type_name(tensor->type_number));
  return *tensor;
}

}  // namespace memdecay
