// Session: one conversation whose keys and values outlive its requests.
//
// tokens() are exactly the tokens whose keys and values the session's pages hold, so a request that
// re-sends its history pays only for what is new: Engine matches the longest common prefix, cuts
// back what differs, and computes the rest. Made by Engine; used on the engine's thread; give it
// back before the engine goes.
#pragma once

#include <vector>

#include "core/id.h"
#include "kv/sequence.h"

namespace memdecay {

class Session {
 public:
  const std::vector<TokenId>& tokens() const { return tokens_; }
  const Sequence& sequence() const { return *sequence_; }

 private:
  friend class Engine;
  explicit Session(SequenceHandle sequence) : sequence_(std::move(sequence)) {}
  SequenceHandle sequence_;
  std::vector<TokenId> tokens_;
  bool busy_ = false;  ///< a request runs on it
};

}  // namespace memdecay
