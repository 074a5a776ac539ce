#include "eval/readers/run_text.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include "sys/mapped_file.h"

namespace memdecay {
namespace {

bool is_gzip(std::span<const std::byte> bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1F} && bytes[1] == std::byte{0x8B};
}

Status too_large(const std::string& place, std::size_t max_bytes) {
  return make_status(StatusCode::kResourceExhausted, "{} holds more than {} bytes of text", place,
                     max_bytes);
}

/// One zlib stream over the whole input; a gzip file may have several members one after another.
class Inflater {
 public:
  explicit Inflater(std::span<const std::byte> bytes) : left_(bytes) {
    ok_ = inflateInit2(&stream_, 15 + 16) == Z_OK;  // the largest window, gzip headers
  }
  ~Inflater() {
    if (ok_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  Status run(const std::string& place, std::size_t max_bytes, std::string& text);

 private:
  void feed() {
    const std::size_t most = std::numeric_limits<uInt>::max();
    const std::size_t count = std::min(left_.size(), most);
    // zlib does not write through next_in; its type has no const for old callers.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(left_.data()));
    stream_.avail_in = static_cast<uInt>(count);
    left_ = left_.subspan(count);
  }

  std::span<const std::byte> left_;
  z_stream stream_ = {};
  bool ok_ = false;
};

Status Inflater::run(const std::string& place, std::size_t max_bytes, std::string& text) {
  if (!ok_) return make_status(StatusCode::kResourceExhausted, "{}: zlib has no memory", place);
  char piece[1 << 15];
  while (true) {
    if (stream_.avail_in == 0 && !left_.empty()) feed();
    stream_.next_out = reinterpret_cast<Bytef*>(piece);
    stream_.avail_out = sizeof piece;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    text.append(piece, sizeof piece - stream_.avail_out);
    if (text.size() > max_bytes) return too_large(place, max_bytes);
    const bool input_is_over = stream_.avail_in == 0 && left_.empty();
    if (code == Z_STREAM_END) {
      if (input_is_over) return Status();
      inflateReset(&stream_);
    } else if (code == Z_BUF_ERROR || (code == Z_OK && input_is_over && stream_.avail_out > 0)) {
      return make_status(StatusCode::kCorrupt, "{}: the gzip archive ends too early", place);
    } else if (code != Z_OK) {
      return make_status(StatusCode::kCorrupt, "{}: the gzip archive is damaged after {} bytes",
                         place, text.size());
    }
  }
}

}  // namespace

Result<std::string> unpack_run_text(std::span<const std::byte> bytes, const std::string& place,
                                    std::size_t max_bytes) {
  std::string text;
  if (is_gzip(bytes)) {
    MEMDECAY_RETURN_IF_ERROR(Inflater(bytes).run(place, max_bytes, text));
    return text;
  }
  if (bytes.size() > max_bytes) return too_large(place, max_bytes);
  text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text;
}

Result<std::string> read_run_text(const std::string& path, std::size_t max_bytes) {
  MEMDECAY_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  file.advise_sequential();
  return unpack_run_text(file.bytes(), path, max_bytes);
}

}  // namespace memdecay
