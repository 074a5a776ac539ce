#include "engine/prompt/replay.h"

#include <string>
#include <string_view>

#include "model/tokenizer/tokenizer.h"

namespace memdecay {
namespace {

/// A run of held tokens and a run of prompt tokens that say the same bytes.
struct Pair {
  std::size_t held = 0;
  std::size_t prompt = 0;
};

/// The shortest such runs from the two places on, both empty where there are none.
Pair same_bytes(const Tokenizer& tokenizer, std::span<const TokenId> held,
                std::span<const TokenId> prompt) {
  Pair run;
  std::string ahead;        // bytes of the side that is ahead
  bool held_ahead = false;  // which side that is
  do {
    const bool take_held = !held_ahead;
    const auto side = take_held ? held : prompt;
    std::size_t& at = take_held ? run.held : run.prompt;
    if (at == side.size() || tokenizer.is_control(side[at])) return {};
    const std::string_view bytes = tokenizer.decode(side[at++]);
    if (bytes.empty()) return {};
    const std::size_t shared = std::min(ahead.size(), bytes.size());
    if (std::string_view(ahead).substr(0, shared) != bytes.substr(0, shared)) return {};
    if (bytes.size() >= ahead.size()) {
      ahead = bytes.substr(shared);
      held_ahead = take_held;
    } else {
      ahead.erase(0, shared);
    }
  } while (!ahead.empty() || run.held == 0 || run.prompt == 0);
  return run;
}

}  // namespace

void replay_held_ids(const Model& model, std::span<const TokenId> held, Prompt& prompt) {
  const Tokenizer& tokenizer = model.tokenizer();
  Prompt out;
  std::size_t at = 0;  // in prompt
  std::size_t i = 0;   // in held
  while (i < held.size() && at < prompt.tokens.size()) {
    Pair run{1, 1};
    if (held[i] != prompt.tokens[at]) {
      run = same_bytes(tokenizer, held.subspan(i), std::span(prompt.tokens).subspan(at));
    }
    if (run.held == 0) break;
    std::uint32_t end = at == 0 ? 0 : prompt.token_ends[at - 1];
    for (std::size_t k = 0; k < run.held; ++k) {
      out.tokens.push_back(held[i + k]);
      out.origins.push_back(prompt.origins[at]);
      end += static_cast<std::uint32_t>(tokenizer.decode(held[i + k]).size());
      out.token_ends.push_back(end);
    }
    i += run.held;
    at += run.prompt;
    out.token_ends.back() = prompt.token_ends[at - 1];
  }
  const auto rest = [at](auto& from, auto& to) {
    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(at), from.end());
    from = std::move(to);
  };
  rest(prompt.tokens, out.tokens);
  rest(prompt.origins, out.origins);
  rest(prompt.token_ends, out.token_ends);
}

}  // namespace memdecay
