#include "eval/cells/read_session.h"

#include <algorithm>

#include "eval/runs/label_noise.h"
#include "eval/runs/template_fit.h"

namespace memdecay {
namespace {

void judge_message(const Prompt& prompt, const MessageExtent& extent,
                   std::vector<std::uint8_t>& judged) {
  bool begun = false;  // the role's markup is not the assistant's doing
  for (std::int32_t i = extent.first_token; i < extent.end_token; ++i) {
    const auto at = static_cast<std::size_t>(i);
    begun = begun || !prompt.origins[at].from_template();
    judged[at] = begun ? 1 : 0;
  }
}

}  // namespace

Result<ReadSession> read_session(const Model& model, const ChainedSession& session,
                                 double label_noise, std::uint64_t seed) {
  ReadSession read;
  const auto conversation = fit_to_template(model, session.conversation);
  MEMDECAY_ASSIGN_OR_RETURN(read.prompt, render_prompt(model, conversation, false));
  MEMDECAY_ASSIGN_OR_RETURN(read.labels, label_prompt(read.prompt));
  read.regions = read.labels.regions;
  if (label_noise > 0) LabelNoise(label_noise, seed).relabel(read.labels.regions);
  const auto& messages = conversation.at("messages");
  read.extents = message_extents(read.prompt, messages.size());
  const std::size_t tokens = read.prompt.tokens.size();
  read.judged.assign(tokens, 0);
  read.episode.assign(tokens, 0);
  const RenderedTurns turns{messages, read.prompt.text, read.extents};
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::int32_t episode = std::max(0, session.sources[i].episode);
    read.episodes = std::max(read.episodes, episode + 1);
    std::fill(read.episode.begin() + read.extents[i].first_token,
              read.episode.begin() + read.extents[i].end_token, episode);
    if (session.recorded[i] == 0) continue;
    judge_message(read.prompt, read.extents[i], read.judged);
    const auto pieces = find_action_pieces(turns, i);
    read.pieces.insert(read.pieces.end(), pieces.begin(), pieces.end());
  }
  for (const RegionSpan& span : read.regions) {
    if (span.region != Region::kSystem) break;
    read.protected_tokens = span.tokens.end;
  }
  return read;
}

}  // namespace memdecay
