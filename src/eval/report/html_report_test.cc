#include "eval/report/html_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "eval/report/svg_plot.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

/// What is wrong with a text as XML: tags that do not close, bare ampersands; "" when nothing is.
std::string fault_of(std::string_view page) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < page.size(); ++at) {
    if (page[at] == '&') {
      const std::size_t end = page.find(';', at);
      if (end == std::string_view::npos || end - at > 6) return "a bare & at " + std::to_string(at);
    }
    if (page[at] != '<') continue;
    const std::size_t end = page.find('>', at);
    if (end == std::string_view::npos) return "a tag without an end";
    const std::string_view tag = page.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string_view::npos) return "< inside <" + std::string(tag);
    at = end;
    if (tag.starts_with('!') || tag.ends_with('/')) continue;
    const std::string name(tag.substr(0, tag.find(' ')));
    if (!name.starts_with('/')) {
      open.push_back(name);
    } else if (open.empty() || "/" + open.back() != name) {
      return "<" + name + "> closes " + (open.empty() ? "nothing" : open.back());
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is left open";
}

ordered_json metric(double value) {
  return {{"value", value}, {"low", value * 0.5}, {"high", value * 2}, {"n", 20}};
}

ordered_json results() {
  ordered_json rows = ordered_json::array();
  for (const char* policy : {"memdecay", "window", "<b>\"odd\" & co</b>"}) {
    for (int budget = 1; budget <= 3; ++budget) {
      rows.push_back({{"model", "qwen"},
                      {"policy", policy},
                      {"kv_format", "fp16"},
                      {"budget", std::to_string(budget) + "0%"},
                      {"data_set", "airline"},
                      {"variant", ""},
                      {"kv_bytes", metric(budget * 1e6)},
                      {"mean_kl", metric(0.125 / budget)},
                      {"value_match", metric(0.5 + 0.1 * budget)},
                      {"latency_by_turn_ms", {{1, 1.5}, {2, 2.5}, {5, 3.0 * budget}}},
                      {"survival", {{"tool", {{1, 1.0}, {100, 0.5}}}}},
                      {"kept", {{"system", 1.0}, {"ordinary", metric(0.25)}}},
                      {"refused", budget == 3}});
    }
  }
  rows.push_back(
      {{"model", "other"}, {"mean_kl", {{"value", nullptr}, {"n", 0}}}, {"odd", nullptr}});
  return {{"rows", rows}};
}

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t found = 0;
  for (std::size_t at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1))
    ++found;
  return found;
}

TEST(HtmlReport, IsWellFormedAndHoldsEveryRow) {
  const std::string page = render_html_report(results(), {"Title <1>", "made & measured"});
  EXPECT_EQ(fault_of(page), "");
  EXPECT_EQ(count(page, "<td>qwen</td>"), 9U);
  EXPECT_EQ(count(page, "<td>other</td>"), 1U);
  EXPECT_EQ(count(page, "<td>&lt;b&gt;&quot;odd&quot; &amp; co&lt;/b&gt;</td>"), 3U);
  EXPECT_EQ(count(page, "0.04167 <small>0.02083 to 0.08333</small> <small>n 20</small>"), 3U);
  EXPECT_EQ(count(page, "<svg "), 3U + 9U);  // quality twice, latency, survival of each row
  EXPECT_NE(page.find("25.0 %"), std::string::npos);
  EXPECT_NE(page.find("made &amp; measured"), std::string::npos);
}

TEST(HtmlReport, NeedsNothingFromOutside) {
  const std::string page = render_html_report(results(), ReportHead());
  for (const char* reference : {"<script", "<link", "src=", "href=", "@import", "url("})
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
}

TEST(HtmlReport, NoRowsMakeAPageToo) {
  const std::string page = render_html_report({{"rows", ordered_json::array()}}, ReportHead());
  EXPECT_EQ(fault_of(page), "");
  EXPECT_NE(page.find("0 rows"), std::string::npos);
}

TEST(SvgPlot, PointsLandWhereTheirAxesSay) {
  SvgPlot plot{"t", {"x", true}, {"y", false}, {{"s", {{10, 0}, {1000, 4}, {100, 2}}}}};
  const std::string svg = render_svg(plot);
  EXPECT_EQ(fault_of(svg), "");
  EXPECT_NE(svg.find("d=\"M74.0 328.0L524.0 40.0L299.0 184.0\""), std::string::npos) << svg;
  for (const char* tick : {">10<", ">100<", ">1000<", ">4<"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
}

TEST(SvgPlot, WhatAnAxisCannotShowIsLeftOut) {
  SvgPlot plot{"t", {"x", true}, {"y", true}, {{"s", {{0, 1}, {-1, 2}, {1, 0}, {NAN, 1}}}}};
  EXPECT_NE(render_svg(plot).find("nothing was measured"), std::string::npos);
  plot.series[0].points.push_back({5, 5});
  EXPECT_EQ(fault_of(render_svg(plot)), "");
  EXPECT_EQ(render_svg(plot).find("nothing was measured"), std::string::npos);
  EXPECT_EQ(render_svg(plot).find("nan"), std::string::npos);
}

TEST(SvgPlot, MarkupInNamesIsText) {
  EXPECT_EQ(escape_markup("a<b>&\"'\x01\n"), "a&lt;b&gt;&amp;&quot;&#39;\n");
}

}  // namespace
}  // namespace memdecay
