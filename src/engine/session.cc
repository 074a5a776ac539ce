#include "engine/session.h"

#include <algorithm>
#include <utility>

#include "engine/memory/shared_prefixes.h"

namespace memdecay {

Session::Session(SequenceHandle sequence, std::vector<Session*>& open, SharedPrefixes* shared)
    : sequence_(std::move(sequence)), open_(open), shared_(shared) {
  open_.push_back(this);
}

Session::~Session() {
  open_.erase(std::find(open_.begin(), open_.end(), this));
  sequence_.reset();
  if (shared_ != nullptr) shared_->hold_limit();
}

}  // namespace memdecay
