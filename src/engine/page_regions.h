// page_regions(): what region each page of a session counts as, for who looks in from outside.
//
// Sessions with a memory know; of others the labels say it, by the memory's own rule for pages that
// hold tokens of several regions. Of the layers without a window; empty where all have one.
// The engine's thread. Cost: O(pages), without a memory O(pages + regions).
#pragma once

#include <vector>

#include "core/paged_kv.h"
#include "engine/engine.h"
#include "engine/memory/prompt_labels.h"

namespace memdecay {

struct PageRegion {
  KvFormat format = KvFormat::kF16;
  Region region = Region::kOrdinary;
};

/// `labels` are of the session's tokens; those behind them are the answer, recent dialogue.
std::vector<PageRegion> page_regions(const Engine& engine, const Session& session,
                                     const PromptLabels& labels);

}  // namespace memdecay
