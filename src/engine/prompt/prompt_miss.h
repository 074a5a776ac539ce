// Why a prompt was not found whole, in a sentence about its own messages: PrefixDifference (token
// ids) with what Prompt knows. Pure, any thread.
#pragma once

#include <string>

#include "engine/model.h"
#include "engine/prompt/prompt.h"
#include "kv/prefix/miss_report.h"

namespace memdecay {

/// REQUIRES: `difference` is of these tokens.
MissReport report_miss(const Model& model, const Prompt& prompt,
                       const PrefixDifference& difference);

/// The sentence of a miss that somebody could do something about; empty where everything was found,
/// or the rest is new.
std::string describe_miss(const Model& model, const Prompt& prompt,
                          const PrefixDifference& difference);

}  // namespace memdecay
