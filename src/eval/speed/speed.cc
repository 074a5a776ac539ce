#include "eval/speed/speed.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "core/steady_clock.h"

namespace memdecay {

Result<std::unique_ptr<SpeedRun>> SpeedRun::prepare(Engine& engine, const SpeedCase& speed_case) {
  MEMDECAY_CHECK((speed_case.n_prompt > 0) != (speed_case.n_gen > 0) && speed_case.n_depth >= 0);
  const int length = speed_case.n_depth + speed_case.tokens();
  if (length > engine.context_tokens()) {
    return make_status(StatusCode::kInvalidArgument,
                       "{} tokens do not fit the context of {} (set it with -c)", length,
                       engine.context_tokens());
  }
  std::unique_ptr<SpeedRun> run(new SpeedRun(engine, speed_case));
  MEMDECAY_ASSIGN_OR_RETURN(run->base_, engine.open_session());
  std::vector<TokenId> depth(static_cast<std::size_t>(speed_case.n_depth));
  for (TokenId& token : depth) token = run->next_token();
  MEMDECAY_RETURN_IF_ERROR(engine.extend(*run->base_, depth, length, nullptr));
  MEMDECAY_ASSIGN_OR_RETURN(const std::int64_t warm_up, run->repeat());
  static_cast<void>(warm_up);
  return run;
}

Result<std::int64_t> SpeedRun::repeat() {
  MEMDECAY_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, engine_.fork_session(*base_));
  const std::int64_t start = steady_now_ns();
  if (case_.n_prompt > 0) {
    std::vector<TokenId> prompt(static_cast<std::size_t>(case_.n_prompt));
    for (TokenId& token : prompt) token = next_token();
    const int last = case_.n_depth + case_.n_prompt - 1;
    MEMDECAY_RETURN_IF_ERROR(
        engine_.extend(*session, prompt, last, [](int, std::span<const float>) {}));
  } else {
    MEMDECAY_RETURN_IF_ERROR(decode(*session, case_.n_gen));
  }
  return steady_now_ns() - start;
}

Status SpeedRun::decode(Session& session, int tokens) {
  for (int i = 0; i < tokens; ++i) {
    const TokenId token = next_token();
    MEMDECAY_RETURN_IF_ERROR(
        engine_.extend(session, std::span(&token, 1), 0, [](int, std::span<const float>) {}));
  }
  return Status();
}

TokenId SpeedRun::next_token() {
  random_ = random_ * 1664525U + 1013904223U;
  return static_cast<TokenId>((random_ >> 8) %
                              static_cast<std::uint32_t>(engine_.model().config().vocab_size));
}

std::uint64_t SpeedRun::bytes_moved() const {
  std::uint64_t bytes = 0;
  for (int i = 0; i < case_.n_gen; ++i) {
    bytes += engine_.model().weights().bytes_per_token + engine_.kv_bytes_read(*base_, i + 1);
  }
  return bytes;
}

SpeedSummary summarize_speed(const std::vector<double>& tokens_per_second) {
  const auto count = static_cast<double>(tokens_per_second.size());
  SpeedSummary summary;
  summary.mean = std::accumulate(tokens_per_second.begin(), tokens_per_second.end(), 0.0) / count;
  if (tokens_per_second.size() < 2) return summary;
  double squares = 0;
  for (const double value : tokens_per_second)
    squares += (value - summary.mean) * (value - summary.mean);
  summary.deviation = std::sqrt(squares / (count - 1));
  return summary;
}

double median(std::vector<double> values) {
  MEMDECAY_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace memdecay
