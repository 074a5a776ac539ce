#include "model/gguf/gguf_file_kind.h"

#include <array>
#include <string_view>

#include "model/gguf/gguf_cursor.h"

namespace memdecay {
namespace {

struct KnownBeginning {
  std::string_view begins_with;
  std::string_view what;
};

using namespace std::string_view_literals;

constexpr std::array kKnown = {
    KnownBeginning{"PK\x03\x04"sv, "a zip archive, perhaps a PyTorch checkpoint"sv},
    KnownBeginning{"\x80\x02"sv, "a Python pickle, perhaps an old PyTorch checkpoint"sv},
    KnownBeginning{"\x1f\x8b"sv, "a gzip archive"sv},
    KnownBeginning{"lmgg"sv, "a GGML file, the unversioned predecessor of GGUF"sv},
    KnownBeginning{"fmgg"sv, "a GGMF file, a predecessor of GGUF"sv},
    KnownBeginning{"tjgg"sv, "a GGJT file, a predecessor of GGUF"sv},
    KnownBeginning{"version https://git-lfs"sv,
                   "a Git LFS pointer, which only says where the model is"sv},
    KnownBeginning{"<!DOCTYPE"sv, "a web page, perhaps a failed download"sv},
    KnownBeginning{"<html"sv, "a web page, perhaps a failed download"sv},
};

std::string_view recognise(std::string_view text) {
  for (const KnownBeginning& known : kKnown)
    if (text.starts_with(known.begins_with)) return known.what;
  // Safetensors: a 64-bit length, then that many bytes of JSON.
  if (text.size() >= 10 && text.substr(8, 2) == "{\"") return "a safetensors file";
  return {};
}

}  // namespace

Status check_gguf_kind(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("GGUF")) {
    if (const std::string_view kind = recognise(text); !kind.empty())
      return make_status(StatusCode::kInvalidArgument, "this is {}; a GGUF file is needed", kind);
    return make_status(StatusCode::kInvalidArgument,
                       "this is not a GGUF file: it does not begin with the letters GGUF");
  }
  GgufCursor cursor(bytes.subspan(4));
  std::uint32_t version = 0;
  if (!cursor.read(version))
    return make_status(StatusCode::kCorrupt, "the file ends inside its header");
  if (version != 0 && (version & 0xFFFFU) == 0)
    return make_status(StatusCode::kUnsupported,
                       "this is a big-endian GGUF file; this build reads little-endian ones");
  if (version != 2 && version != 3)
    return make_status(StatusCode::kUnsupported,
                       "this is a GGUF file of version {}; this build reads versions 2 and 3",
                       version);
  return {};
}

}  // namespace memdecay
