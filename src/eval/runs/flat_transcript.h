// Flat transcripts: a recorded conversation as one plain text, as people send it who know nothing
// of chat templates: what the region classifier is there for.
//
// Three ways to write it: contents with blank lines between (kBare), a word for the speaker before
// each (kHeadings), and control tokens typed by hand (kMarkers, ChatML). Every byte knows its
// message, role and part; tool calls are written as JSON. Pure, any thread. O(bytes).
#pragma once

#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "policy/regions/message_span.h"

namespace memdecay {

enum class TranscriptStyle : std::uint8_t { kBare, kHeadings, kMarkers };
inline constexpr std::array<TranscriptStyle, 3> kTranscriptStyles = {
    TranscriptStyle::kBare, TranscriptStyle::kHeadings, TranscriptStyle::kMarkers};
const char* transcript_style_name(TranscriptStyle style);

/// Bytes [begin, end) of the text, from one part of one message.
struct TranscriptPiece {
  Role role = Role::kUser;
  Part part = Part::kText;
  std::int32_t message = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const TranscriptPiece&, const TranscriptPiece&) = default;
};

struct Transcript {
  std::string text;
  std::vector<TranscriptPiece> pieces;  ///< cover the text in order; none empty
};

/// Messages as Trajectory has them; it ends before the message that would pass max_bytes, but
/// never before the second one.
Transcript flat_transcript(const nlohmann::ordered_json& messages, TranscriptStyle style,
                           std::size_t max_bytes);

}  // namespace memdecay
