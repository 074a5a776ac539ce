#include "model/chat_template/text.h"

#include <algorithm>

#include "core/check.h"

namespace memdecay::jinja {
namespace {

/// Length of the sequence that `lead` starts, 0 for a byte that starts none.
int sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

}  // namespace

std::optional<std::u32string> decode_utf8(std::string_view bytes) {
  static constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  std::u32string out;
  out.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const int length = sequence_length(lead);
    if (length == 0 || i + static_cast<std::size_t>(length) > bytes.size()) return std::nullopt;
    char32_t code = length == 1 ? lead : lead & (0xFFU >> (length + 1));
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(bytes[i + static_cast<std::size_t>(k)]);
      if ((next & 0xC0U) != 0x80U) return std::nullopt;
      code = (code << 6U) | (next & 0x3FU);
    }
    if (code < kSmallest[length] || code > 0x10FFFF) return std::nullopt;
    if (code >= 0xD800 && code < 0xE000) return std::nullopt;
    out.push_back(code);
    i += static_cast<std::size_t>(length);
  }
  return out;
}

void append_utf8(std::string* out, char32_t code) {
  const auto put = [out](char32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6U));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12U));
    put(0x80 | ((code >> 6U) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18U));
    put(0x80 | ((code >> 12U) & 0x3F));
    put(0x80 | ((code >> 6U) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::string encode_utf8(std::u32string_view chars) {
  std::string out;
  out.reserve(chars.size());
  for (const char32_t code : chars) append_utf8(&out, code);
  return out;
}

std::u32string widen(std::string_view ascii) {
  std::u32string out;
  out.reserve(ascii.size());
  for (const char c : ascii) out.push_back(static_cast<unsigned char>(c));
  return out;
}

Text::Text(std::u32string chars, OriginId origin) : chars_(std::move(chars)) {
  if (!chars_.empty()) pieces_.push_back({chars_.size(), origin});
}

OriginId Text::origin_at(std::size_t index) const {
  if (pieces_.empty()) return kTemplateOrigin;
  const auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), index,
                                      [](std::size_t at, const Piece& p) { return at < p.end; });
  return piece == pieces_.end() ? pieces_.back().origin : piece->origin;
}

void Text::extend_pieces(std::size_t end, OriginId origin) {
  if (!pieces_.empty() && pieces_.back().end == end) return;
  if (!pieces_.empty() && pieces_.back().origin == origin) {
    pieces_.back().end = end;
  } else {
    pieces_.push_back({end, origin});
  }
}

void Text::append(std::u32string_view chars, OriginId origin) {
  if (chars.empty()) return;
  chars_.append(chars);
  extend_pieces(chars_.size(), origin);
}

void Text::append(char32_t code, OriginId origin) {
  chars_.push_back(code);
  extend_pieces(chars_.size(), origin);
}

void Text::append_range(const Text& other, std::size_t begin, std::size_t end) {
  MEMDECAY_DCHECK(begin <= end && end <= other.size());
  if (begin == end) return;
  const std::size_t base = chars_.size();
  chars_.append(other.chars_, begin, end - begin);
  auto piece = std::upper_bound(other.pieces_.begin(), other.pieces_.end(), begin,
                                [](std::size_t at, const Piece& p) { return at < p.end; });
  for (;; ++piece) {
    const std::size_t stop = std::min(piece->end, end);
    extend_pieces(base + (stop - begin), piece->origin);
    if (stop == end) break;
  }
}

Text Text::slice(std::size_t begin, std::size_t end) const {
  Text out;
  out.append_range(*this, begin, end);
  return out;
}

void Text::clear() {
  chars_.clear();
  pieces_.clear();
}

}  // namespace memdecay::jinja
