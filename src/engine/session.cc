#include "engine/session.h"

#include <algorithm>
#include <utility>

namespace memdecay {

Session::Session(SequenceHandle sequence, std::vector<Session*>& open)
    : sequence_(std::move(sequence)), open_(open) {
  open_.push_back(this);
}

Session::~Session() {
  open_.erase(std::find(open_.begin(), open_.end(), this));
}

}  // namespace memdecay
