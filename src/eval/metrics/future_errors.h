// FutureErrors: what a session's pages will be worth, known from a run that forgot nothing: the
// deletion errors that the assistant's later steps saw.
//
// recorder() is the policy of that run; oracle() one that drops what will be missed least from now
// on. That is as far as evidence can get: an upper bound for tables, never in a session that lives.
// A page is known by its first position, so both runs must cut pages alike: by the same labels.
// This outlives the policies that it makes. One thread.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "policy/policies/make_policy.h"

namespace memdecay {

class FutureErrors {
 public:
  EvictionPolicyHandle recorder(const PolicyOptions& options);
  EvictionPolicyHandle oracle(const PolicyOptions& options) const;

  /// Steps never fall.
  void record(Position first_position, std::int64_t step, double error);
  /// Sum of the errors recorded behind `step`; 0 of a page that nobody recorded.
  double behind(Position first_position, std::int64_t step) const;

 private:
  /// [records]: step, and the sum up to it.
  std::map<Position, std::vector<std::pair<std::int64_t, double>>> sums_;
};

}  // namespace memdecay
