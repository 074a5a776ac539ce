#include "eval/cells/step_latency.h"

#include <algorithm>
#include <memory>

#include "core/steady_clock.h"

namespace memdecay {
namespace {

constexpr int kTimedSteps = 4;

}  // namespace

Result<std::vector<StepSample>> time_steps(Engine& engine, const Session& session,
                                           std::int32_t turn) {
  std::vector<StepSample> samples;
  const std::size_t needed = session.tokens().size() + kTimedSteps + 1;
  if (!engine.outgrows_context(session) &&
      needed > static_cast<std::size_t>(engine.context_tokens())) {
    return samples;
  }
  Result<std::unique_ptr<Session>> fork = engine.fork_session(session);
  if (fork.status().code() == StatusCode::kResourceExhausted) return samples;
  MEMDECAY_RETURN_IF_ERROR(fork.status());
  (*fork)->stand_apart();
  const std::vector<TokenId> token = {session.tokens().back()};
  for (int step = 0; step <= kTimedSteps; ++step) {
    const double begin = steady_seconds();
    const Status status =
        engine.extend(**fork, token, /*first_wanted=*/0, [](int, std::span<const float>) {});
    if (status.code() == StatusCode::kResourceExhausted) break;
    MEMDECAY_RETURN_IF_ERROR(status);
    if (step > 0) samples.push_back({turn, 1000 * (steady_seconds() - begin)});
  }
  return samples;
}

std::vector<TurnEnd> spread_turn_ends(std::span<const std::uint8_t> judged, std::size_t first,
                                      std::size_t most) {
  std::vector<TurnEnd> all;
  std::int32_t turn = 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const bool ends = judged[i] != 0 && (i + 1 == judged.size() || judged[i + 1] == 0);
    turn += ends ? 1 : 0;
    if (ends && i > first) all.push_back({i, turn});
  }
  const std::size_t count = std::min(most, all.size());
  std::vector<TurnEnd> spread;
  for (std::size_t i = 1; i <= count; ++i) spread.push_back(all[i * all.size() / count - 1]);
  return spread;
}

}  // namespace memdecay
