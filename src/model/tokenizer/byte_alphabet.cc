#include "model/tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>

namespace memdecay {
namespace {

constexpr unsigned kAlphabetEnd = 256 + 68;

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<unsigned, 256> code_point{};
  std::array<int, kAlphabetEnd> byte{};
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  for (int& byte : alphabet.byte) byte = -1;
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned code_point = stands_for_itself(byte) ? byte : next++;
    alphabet.code_point[byte] = code_point;
    alphabet.byte[code_point] = static_cast<int>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::optional<std::string> bytes_of_byte_alphabet(std::string_view piece) {
  std::string bytes;
  for (std::size_t i = 0; i < piece.size(); ++i) {
    unsigned code_point = static_cast<unsigned char>(piece[i]);
    if (code_point >= 0x80) {  // the alphabet ends below U+0800: two bytes at most
      if ((code_point & 0xE0U) != 0xC0U || i + 1 == piece.size()) return std::nullopt;
      const unsigned second = static_cast<unsigned char>(piece[++i]);
      if ((second & 0xC0U) != 0x80U) return std::nullopt;
      code_point = ((code_point & 0x1FU) << 6) | (second & 0x3FU);
    }
    if (code_point >= kAlphabetEnd || kAlphabet.byte[code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(kAlphabet.byte[code_point]));
  }
  return bytes;
}

std::string byte_alphabet_of_bytes(std::string_view bytes) {
  std::string piece;
  for (const char c : bytes) {
    const unsigned code_point = kAlphabet.code_point[static_cast<unsigned char>(c)];
    if (code_point < 0x80) {
      piece.push_back(static_cast<char>(code_point));
    } else {
      piece.push_back(static_cast<char>(0xC0U | (code_point >> 6)));
      piece.push_back(static_cast<char>(0x80U | (code_point & 0x3FU)));
    }
  }
  return piece;
}

}  // namespace memdecay
