#include "eval/runs/labelled_episode.h"

#include <algorithm>
#include <string_view>

#include "engine/memory/token_embeddings.h"

namespace memdecay {
namespace {

/// One piece, the tokens whose first byte is in it, and where they end in its text.
struct PieceTokens {
  MessageSpan span;
  std::vector<std::uint32_t> ends;
};

std::vector<PieceTokens> tokens_of_pieces(const Transcript& transcript,
                                          const std::vector<Token>& tokens) {
  std::vector<PieceTokens> pieces;
  std::size_t at = 0;
  for (const TranscriptPiece& piece : transcript.pieces) {
    PieceTokens own;
    const std::size_t first = at;
    const bool is_last = &piece == &transcript.pieces.back();
    while (at < tokens.size() && (tokens[at].begin < piece.end || is_last)) {
      const std::size_t end = std::clamp<std::size_t>(tokens[at].end, piece.begin, piece.end);
      own.ends.push_back(static_cast<std::uint32_t>(end - piece.begin));
      ++at;
    }
    if (at == first) continue;
    own.span.role = piece.role;
    own.span.part = piece.part;
    own.span.message = piece.message;
    own.span.text = std::string_view(transcript.text).substr(piece.begin, piece.end - piece.begin);
    own.span.tokens = {static_cast<Position>(first), static_cast<Position>(at)};
    pieces.push_back(std::move(own));
  }
  return pieces;
}

Result<std::vector<RegionSpan>> regions_with_structure(const std::vector<PieceTokens>& pieces) {
  std::vector<MessageSpan> spans;
  for (const PieceTokens& piece : pieces) {
    spans.push_back(piece.span);
    spans.back().token_ends = piece.ends;
  }
  return RegionRules().classify(spans);
}

Result<std::vector<RegionSpan>> regions_without(const Transcript& transcript,
                                                const std::vector<Token>& tokens) {
  std::vector<std::uint32_t> ends;
  for (const Token& token : tokens) ends.push_back(token.end);
  MessageSpan whole;
  whole.text = transcript.text;
  whole.tokens = {0, static_cast<Position>(tokens.size())};
  whole.token_ends = ends;
  return RegionRules().classify(std::span(&whole, 1));
}

}  // namespace

std::vector<Region> regions_of(const std::vector<RegionSpan>& spans) {
  std::vector<Region> regions;
  for (const RegionSpan& span : spans)
    regions.insert(regions.end(), static_cast<std::size_t>(span.tokens.size()), span.region);
  return regions;
}

Result<LabelledEpisode> label_episode(const Model& model, const Trajectory& run,
                                      TranscriptStyle style, std::size_t max_bytes) {
  const Transcript transcript = flat_transcript(run.messages(), style, max_bytes);
  EncodeOptions encode;
  encode.control_everywhere = style == TranscriptStyle::kMarkers;
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<Token> tokens,
                            model.tokenizer().encode(transcript.text, encode));
  LabelledEpisode episode;
  episode.task = run.task;
  episode.data_set = run.data_set;
  episode.style = style;
  for (const Token& token : tokens) episode.tokens.push_back(token.id);
  episode.places = segment_places(model, episode.tokens);
  MEMDECAY_ASSIGN_OR_RETURN(episode.spans,
                            regions_with_structure(tokens_of_pieces(transcript, tokens)));
  MEMDECAY_ASSIGN_OR_RETURN(const std::vector<RegionSpan> without,
                            regions_without(transcript, tokens));
  episode.without = regions_of(without);
  return episode;
}

}  // namespace memdecay
