// Engine::extend() for who reads no predictions: recorded turns, history that comes back.
#pragma once

#include <limits>
#include <span>

#include "engine/engine.h"

namespace memdecay {

inline Status extend_without_logits(Engine& engine, Session& session,
                                    std::span<const TokenId> tokens) {
  return engine.extend(session, tokens, std::numeric_limits<int>::max(),
                       [](int, std::span<const float>) {});
}

}  // namespace memdecay
