#include "eval/report/html_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <vector>

#include "eval/report/results_file.h"
#include "eval/report/svg_plot.h"

namespace memdecay {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kStyle =
    ":root{color-scheme:light dark}body{font:15px/1.5 sans-serif;max-width:78rem;margin:2rem auto;"
    "padding:0 1rem}h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2.2rem}"
    ".plots{display:flex;flex-wrap:wrap;gap:1rem}.plots svg{flex:1 1 34rem;max-width:46rem}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.82rem}"
    "th,td{padding:.2rem .55rem;text-align:right;white-space:nowrap;border-bottom:1px solid #8884}"
    "th:nth-child(-n+6),td:nth-child(-n+6){text-align:left}thead th{position:sticky;top:0}"
    "small{opacity:.65}.bar{display:inline-block;height:.7em;background:#0072b2}";

double number_of(const ordered_json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

bool is_metric(const ordered_json& value) {
  return value.is_object() && value.contains("value") && value.contains("n");
}

/// The value of a metric or of a plain number; NaN where the row has neither.
double metric_of(const ordered_json& row, const std::string& name) {
  const auto found = row.find(name);
  if (found == row.end()) return std::numeric_limits<double>::quiet_NaN();
  return number_of(is_metric(*found) ? found->at("value") : *found);
}

std::string series_name(const ResultKey& key, bool with_budget) {
  std::string name = key.policy + " " + key.kv_format;
  if (with_budget) name += " " + key.budget;
  if (!key.variant.empty()) name += " (" + key.variant + ")";
  return name;
}

std::string row_name(const ResultKey& key) {
  return key.model + ", " + key.data_set + ": " + series_name(key, true);
}

/// Rows of one model and data set.
using Group = std::vector<const ordered_json*>;

std::map<std::pair<std::string, std::string>, Group> groups_of(const ordered_json& rows) {
  std::map<std::pair<std::string, std::string>, Group> groups;
  for (const ordered_json& row : rows) {
    const ResultKey key = key_of_row(row);
    groups[{key.model, key.data_set}].push_back(&row);
  }
  return groups;
}

SvgPlot against_bytes(const Group& group, const std::string& metric, const std::string& title,
                      bool logarithmic) {
  std::map<std::string, PlotSeries> series;
  for (const ordered_json* row : group) {
    const PlotPoint point = {metric_of(*row, "kv_bytes"), metric_of(*row, metric)};
    if (!std::isfinite(point.x) || !std::isfinite(point.y)) continue;
    const std::string name = series_name(key_of_row(*row), false);
    series[name].name = name;
    series[name].points.push_back(point);
  }
  SvgPlot plot{title, {"bytes of keys and values", true}, {metric, logarithmic}, {}};
  for (auto& [name, one] : series) {
    std::sort(one.points.begin(), one.points.end(),
              [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
    plot.series.push_back(std::move(one));
  }
  return plot;
}

/// [[x, y], ...]; what is not a pair is left out.
std::vector<PlotPoint> points_of(const ordered_json& pairs) {
  std::vector<PlotPoint> points;
  if (!pairs.is_array()) return points;
  for (const ordered_json& pair : pairs) {
    if (pair.is_array() && pair.size() == 2)
      points.push_back({number_of(pair[0]), number_of(pair[1])});
  }
  return points;
}

SvgPlot latency_plot(const Group& group) {
  SvgPlot plot{"Latency against turn", {"turn", false}, {"ms per token", false}, {}};
  for (const ordered_json* row : group) {
    const auto found = row->find("latency_by_turn_ms");
    if (found == row->end()) continue;
    plot.series.push_back({series_name(key_of_row(*row), true), points_of(*found)});
  }
  return plot;
}

SvgPlot survival_plot(const ordered_json& row) {
  SvgPlot plot{"Survival: " + row_name(key_of_row(row)),
               {"age in tokens", true},
               {"share still kept", false},
               {}};
  for (const auto& region : row.at("survival").items())
    plot.series.push_back({region.key(), points_of(region.value())});
  return plot;
}

bool has_object(const ordered_json& row, const char* name) {
  const auto found = row.find(name);
  return found != row.end() && found->is_object() && !found->empty();
}

std::string cell_of(const ordered_json& value) {
  if (is_metric(value)) {
    const double middle = number_of(value.at("value"));
    if (!std::isfinite(middle)) return "";
    std::string text = fmt::format("{:.4g}", middle);
    const double low = value.contains("low") ? number_of(value.at("low")) : middle;
    const double high = value.contains("high") ? number_of(value.at("high")) : middle;
    if (std::isfinite(low) && std::isfinite(high))
      text += fmt::format(" <small>{:.4g} to {:.4g}</small>", low, high);
    if (value.at("n").is_number())
      text += fmt::format(" <small>n {:g}</small>", number_of(value.at("n")));
    return text;
  }
  if (value.is_number()) return fmt::format("{:.6g}", value.get<double>());
  if (value.is_string()) return escape_markup(value.get_ref<const std::string&>());
  return value.is_boolean() ? (value.get<bool>() ? "yes" : "no") : "";
}

bool is_key_member(const std::string& name) {
  return name == "model" || name == "policy" || name == "kv_format" || name == "budget" ||
         name == "data_set" || name == "variant";
}

/// Members that fit a table cell, in the order in which rows bring them.
std::vector<std::string> columns_of(const ordered_json& rows) {
  std::vector<std::string> columns;
  for (const ordered_json& row : rows) {
    for (const auto& member : row.items()) {
      const bool fits = is_metric(member.value()) || member.value().is_primitive();
      if (!fits || is_key_member(member.key())) continue;
      if (std::find(columns.begin(), columns.end(), member.key()) == columns.end())
        columns.push_back(member.key());
    }
  }
  return columns;
}

void add_table(const ordered_json& rows, std::string& page) {
  const std::vector<std::string> columns = columns_of(rows);
  page +=
      "<h2>Every row</h2><div class=\"wide\"><table><thead><tr><th>model</th><th>data set</th>"
      "<th>policy</th><th>kv format</th><th>budget</th><th>variant</th>";
  for (const std::string& column : columns) page += "<th>" + escape_markup(column) + "</th>";
  page += "</tr></thead><tbody>";
  for (const ordered_json& row : rows) {
    const ResultKey key = key_of_row(row);
    page += "<tr>";
    for (const std::string* text :
         {&key.model, &key.data_set, &key.policy, &key.kv_format, &key.budget, &key.variant}) {
      page += "<td>" + escape_markup(*text) + "</td>";
    }
    for (const std::string& column : columns)
      page += "<td>" + (row.contains(column) ? cell_of(row.at(column)) : "") + "</td>";
    page += "</tr>\n";
  }
  page += "</tbody></table></div>";
}

void add_kept(const ordered_json& rows, std::string& page) {
  std::string body;
  for (const ordered_json& row : rows) {
    if (!has_object(row, "kept")) continue;
    for (const auto& region : row.at("kept").items()) {
      const ordered_json& kept = region.value();
      const double share = number_of(is_metric(kept) ? kept.at("value") : kept);
      if (!std::isfinite(share)) continue;
      body += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{:.1f} %</td><td><span class=\"bar\" "
          "style=\"width:{:.1f}rem\"></span></td></tr>\n",
          escape_markup(row_name(key_of_row(row))), escape_markup(region.key()), 100 * share,
          10 * std::clamp(share, 0.0, 1.0));
    }
  }
  if (body.empty()) return;
  page +=
      "<h2>What was kept</h2><details><summary>Share of each region's tokens that is there at "
      "the end</summary><div class=\"wide\"><table><thead><tr><th>row</th><th>region</th>"
      "<th>kept</th><th></th></tr></thead><tbody>" +
      body + "</tbody></table></div></details>";
}

void add_plot(const SvgPlot& plot, std::string& page) {
  const bool any = std::any_of(plot.series.begin(), plot.series.end(),
                               [](const PlotSeries& series) { return !series.points.empty(); });
  if (any) page += render_svg(plot) + "\n";
}

}  // namespace

std::string render_html_report(const ordered_json& results, const ReportHead& head) {
  const ordered_json& rows = results.at("rows");
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head>"
      "<meta charset=\"utf-8\"/><title>" +
      escape_markup(head.title) + "</title><style>" + std::string(kStyle) +
      "</style></head><body><h1>" + escape_markup(head.title) + "</h1>\n";
  if (!head.note.empty()) page += "<p>" + escape_markup(head.note) + "</p>\n";
  page += fmt::format("<p>{} rows. Intervals are drawn by episode.</p>\n", rows.size());
  for (const auto& [name, group] : groups_of(rows)) {
    page += "<h2>" + escape_markup(name.first + ", " + name.second) + "</h2><div class=\"plots\">";
    add_plot(against_bytes(group, "mean_kl", "KL against bytes (lower is better)", true), page);
    add_plot(
        against_bytes(group, "value_match", "Value match against bytes (higher is better)", false),
        page);
    add_plot(latency_plot(group), page);
    page += "</div>\n";
  }
  std::string survival;
  for (const ordered_json& row : rows) {
    if (has_object(row, "survival")) add_plot(survival_plot(row), survival);
  }
  if (!survival.empty()) page += "<h2>Survival</h2><div class=\"plots\">" + survival + "</div>\n";
  add_kept(rows, page);
  add_table(rows, page);
  return page + "</body></html>\n";
}

}  // namespace memdecay
