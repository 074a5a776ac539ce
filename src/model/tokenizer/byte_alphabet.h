// The byte alphabet of GPT-2's vocabulary: each byte is written as one printable character.
//
// Bytes 0x21-0x7E, 0xA1-0xAC and 0xAE-0xFF stand for themselves as code points; the other 68, in
// order, are U+0100..U+0143. Source: Radford et al. 2019, "Language Models are Unsupervised
// Multitask Learners". Pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace memdecay {

/// The bytes that `piece` spells; empty when a character is not of the alphabet.
std::optional<std::string> bytes_of_byte_alphabet(std::string_view piece);

/// `bytes` written in the alphabet.
std::string byte_alphabet_of_bytes(std::string_view bytes);

}  // namespace memdecay
