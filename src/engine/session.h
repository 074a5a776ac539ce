// Session: one conversation whose keys and values outlive its requests.
//
// tokens() is its logical history: every token that was computed, in order. What its pages hold of
// that may be less: evicted pages leave gaps that the history does not notice. So a request that
// re-sends its history pays only for what is new: Engine matches the longest common prefix,
// tombstones included, cuts back what differs, and computes the rest.
// Made by Engine; used on the engine's thread; give it back before the engine goes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/id.h"
#include "engine/engine_options.h"
#include "engine/memory/session_memory.h"
#include "kv/sequence.h"

namespace memdecay {

class MemoryCoordinator;
class SharedPrefixes;

class Session {
 public:
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::vector<TokenId>& tokens() const { return tokens_; }
  const Sequence& sequence() const { return *sequence_; }
  /// Null where nothing is ever evicted or demoted: no budget, or the policy "none".
  const SessionMemory* memory() const { return memory_ ? &*memory_ : nullptr; }
  /// Whether something of it may be evicted.
  bool evicts() const { return memory_ && memory_->options().evicts; }
  /// For forks that something is asked or timed on. Until they are closed, what is evicted, demoted
  /// and packed is of sessions that stand apart only: those they come from stay as they are.
  void stand_apart() { apart_ = true; }

 private:
  friend class Engine;
  friend class MemoryCoordinator;
  Session(SequenceHandle sequence, std::vector<Session*>& open, SharedPrefixes* shared);
  SequenceHandle sequence_;
  std::vector<TokenId> tokens_;
  std::optional<SessionMemory> memory_;
  SessionOptions memory_options_;  ///< what a fork's policy is made from
  std::string cache_salt_;
  Position remembered_ = 0;      ///< its pages up to here are in the prefix tree, or were
  std::vector<Session*>& open_;  ///< the engine's list of sessions; this one is in it
  SharedPrefixes* shared_;       ///< may be null; what it leaves there may be too much
  int probes_ = 0;               ///< of deletion errors so far: each takes other layers
  std::size_t pin_sharers_ = 1;  ///< sessions that its pins' cap leaves room for
  bool busy_ = false;            ///< a request runs on it
  bool apart_ = false;           ///< stand_apart()
};

}  // namespace memdecay
