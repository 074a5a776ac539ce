// HTML report: the rows of results.json as one page that needs nothing else: no scripts, no fonts,
// no network; plots are inline SVG (svg_plot.h).
//
// For every model and data set: quality against bytes (KL, value match), latency against turn; then
// survival curves and what was kept, and last a table with every row and every metric. Rows are
// taken as docs/formats/results.md says; members that a row does not have leave their plot out.
// The page is well-formed XML too, so that any tool can read it. Pure, any thread. O(rows).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace memdecay {

struct ReportHead {
  std::string title = "What the memory keeps";
  std::string note;  ///< how the rows were made: command, machine, date
};

/// `results` is {"rows": [...]}. REQUIRES: rows are objects.
std::string render_html_report(const nlohmann::ordered_json& results, const ReportHead& head);

}  // namespace memdecay
