#include "model/tokenizer/utf8.h"

#include <cstdint>
#include <cstring>

namespace memdecay {
namespace {

struct LeadByte {
  std::size_t length = 0;  // 0: no character starts with it
  unsigned second_low = 0x80;
  unsigned second_high = 0xBF;
};

LeadByte lead_byte(unsigned byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

// How many bytes of the character that `lead` announces are there and right.
std::size_t good_bytes(std::string_view text, LeadByte lead) {
  std::size_t good = 1;
  while (good < lead.length && good < text.size()) {
    const unsigned byte = static_cast<unsigned char>(text[good]);
    const unsigned low = good == 1 ? lead.second_low : 0x80;
    const unsigned high = good == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) break;
    ++good;
  }
  return good;
}

}  // namespace

std::size_t utf8_char_length(std::string_view text) {
  if (text.empty()) return 0;
  const LeadByte lead = lead_byte(static_cast<unsigned char>(text[0]));
  if (lead.length <= 1) return lead.length;
  return good_bytes(text, lead) == lead.length ? lead.length : 0;
}

std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    std::uint64_t block;
    if (text.size() - at >= sizeof block) {
      std::memcpy(&block, text.data() + at, sizeof block);
      if ((block & 0x8080808080808080U) == 0) {
        at += sizeof block;
        continue;
      }
    }
    const std::size_t length = utf8_char_length(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

Utf8Subpart utf8_subpart(std::string_view text) {
  const LeadByte lead = lead_byte(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return {1, false};
  const std::size_t good = good_bytes(text, lead);
  return {good, good == text.size()};
}

}  // namespace memdecay
