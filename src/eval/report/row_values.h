// row_values(): what a row of results.json says of a cell, from its scores in several sessions.
//
// Metrics with their intervals by episode, realised bytes, what was kept and for how long, what
// steps cost, what was recalled (docs/formats/results.md). Pure, any thread. Cost: bootstrap.h.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "eval/report/cell_scores.h"

namespace memdecay {

/// REQUIRES: at least one session.
nlohmann::ordered_json row_values(std::span<const CellScores> sessions);

}  // namespace memdecay
