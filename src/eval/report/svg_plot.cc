#include "eval/report/svg_plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

namespace memdecay {
namespace {

constexpr double kWidth = 720, kHeight = 380;
constexpr double kLeft = 74, kRight = 196, kTop = 40, kBottom = 52;
constexpr double kLegendLine = 16;
// Distinct for most kinds of colour vision (Okabe, Ito); dashes repeat them.
constexpr std::array<const char*, 8> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#b8a800", "#808080"};
constexpr std::array<const char*, 4> kDashes = {"none", "7 3", "2 3", "8 3 2 3"};

/// Maps values of one axis to pixels.
class Scale {
 public:
  Scale(const PlotAxis& axis, double from, double to)
      : logarithmic_(axis.logarithmic), from_(from), to_(to) {}

  bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  void include(double value) {
    const double inner = inside(value);
    low_ = std::min(low_, inner);
    high_ = std::max(high_, inner);
  }
  /// Gives a single value room around it.
  void settle() {
    if (low_ > high_) {
      low_ = 0;
      high_ = 1;
    }
    if (high_ - low_ < 1e-12 * std::max(1.0, std::abs(high_))) {
      const double room = logarithmic_ ? 0.5 : std::max(0.5, std::abs(high_) * 0.1);
      low_ -= room;
      high_ += room;
    }
  }
  double pixel(double value) const {
    return from_ + (inside(value) - low_) / (high_ - low_) * (to_ - from_);
  }
  std::vector<double> ticks() const {
    std::vector<double> ticks;
    if (logarithmic_ && high_ - low_ >= 1.0) {
      const double step = std::ceil((high_ - low_) / 6.0);
      for (double at = std::ceil(low_ - 1e-9); at <= high_ + 1e-9; at += step)
        ticks.push_back(std::pow(10.0, at));
      return ticks;
    }
    const double low = outside(low_), high = outside(high_);
    const double rough = (high - low) / 5.0;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    const double lead = rough / power;
    const double step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
    for (double at = std::ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at += 1.0)
      ticks.push_back(at * step);
    return ticks;
  }

 private:
  double inside(double value) const { return logarithmic_ ? std::log10(value) : value; }
  double outside(double value) const { return logarithmic_ ? std::pow(10.0, value) : value; }

  bool logarithmic_;
  double from_, to_;
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

void add_text(std::string& svg, double x, double y, const char* anchor, std::string_view text) {
  fmt::format_to(std::back_inserter(svg),
                 "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor,
                 escape_markup(text));
}

void add_line(std::string& svg, double x1, double y1, double x2, double y2, const char* name) {
  fmt::format_to(std::back_inserter(svg),
                 "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>",
                 name, x1, y1, x2, y2);
}

/// Draws one plot.
class Drawing {
 public:
  explicit Drawing(const SvgPlot& plot)
      : plot_(plot), x_(plot.x, kLeft, kWidth - kRight), y_(plot.y, kHeight - kBottom, kTop) {
    for (const PlotSeries& series : plot.series) {
      for (const PlotPoint& point : series.points) {
        if (!shows(point)) continue;
        x_.include(point.x);
        y_.include(point.y);
        ++points_;
      }
    }
    x_.settle();
    y_.settle();
  }

  std::string run() {
    const double needed = kTop + kLegendLine * static_cast<double>(plot_.series.size()) + 20;
    svg_ = fmt::format(
        "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 "
        "{:.0f} {:.0f}\" "
        "font-family=\"sans-serif\" font-size=\"11\">",
        kWidth, std::max(kHeight, needed));
    svg_ +=
        "<style>.plot text{fill:currentColor}.plot .axis{stroke:currentColor}"
        ".plot .grid{stroke:currentColor;stroke-opacity:.13}</style>";
    svg_ += "<title>" + escape_markup(plot_.title) + "</title>";
    add_text(svg_, kLeft, 20, "start", plot_.title);
    add_axes();
    if (points_ == 0) {
      add_text(svg_, (kLeft + kWidth - kRight) / 2, kHeight / 2, "middle", "nothing was measured");
    }
    for (std::size_t i = 0; i < plot_.series.size(); ++i) add_series(i);
    return svg_ + "</svg>";
  }

 private:
  bool shows(const PlotPoint& point) const { return x_.shows(point.x) && y_.shows(point.y); }

  void add_axes() {
    const double bottom = kHeight - kBottom, right = kWidth - kRight;
    for (const double tick : points_ == 0 ? std::vector<double>() : x_.ticks()) {
      add_line(svg_, x_.pixel(tick), kTop, x_.pixel(tick), bottom, "grid");
      add_text(svg_, x_.pixel(tick), bottom + 16, "middle", fmt::format("{:g}", tick));
    }
    for (const double tick : points_ == 0 ? std::vector<double>() : y_.ticks()) {
      add_line(svg_, kLeft, y_.pixel(tick), right, y_.pixel(tick), "grid");
      add_text(svg_, kLeft - 6, y_.pixel(tick) + 4, "end", fmt::format("{:g}", tick));
    }
    add_line(svg_, kLeft, bottom, right, bottom, "axis");
    add_line(svg_, kLeft, kTop, kLeft, bottom, "axis");
    add_text(svg_, (kLeft + right) / 2, kHeight - 14, "middle", plot_.x.label);
    fmt::format_to(
        std::back_inserter(svg_),
        "<text transform=\"translate(14 {:.1f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        (kTop + bottom) / 2, escape_markup(plot_.y.label));
  }

  void add_series(std::size_t number) {
    const PlotSeries& series = plot_.series[number];
    const char* colour = kColours[number % kColours.size()];
    const char* dash = kDashes[number / kColours.size() % kDashes.size()];
    std::string path, dots;
    for (const PlotPoint& point : series.points) {
      if (!shows(point)) continue;
      fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", path.empty() ? "M" : "L",
                     x_.pixel(point.x), y_.pixel(point.y));
      if (series.points.size() > 60) continue;  // a curve, not measurements
      fmt::format_to(std::back_inserter(dots),
                     "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}: {:g}, "
                     "{:g}</title></circle>",
                     x_.pixel(point.x), y_.pixel(point.y), colour, escape_markup(series.name),
                     point.x, point.y);
    }
    const std::string stroke = fmt::format(
        "fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" stroke-dasharray=\"{}\"", colour, dash);
    if (!path.empty()) svg_ += "<path d=\"" + path + "\" " + stroke + "/>" + dots;
    const double x = kWidth - kRight + 14;
    const double y = kTop + kLegendLine * static_cast<double>(number) + 6;
    fmt::format_to(std::back_inserter(svg_), "<path d=\"M{:.1f} {:.1f}h20\" {}/>", x, y, stroke);
    add_text(svg_, x + 26, y + 4, "start", series.name);
  }

  const SvgPlot& plot_;
  Scale x_, y_;
  std::size_t points_ = 0;
  std::string svg_;
};

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') safe += c;
    }
  }
  return safe;
}

std::string render_svg(const SvgPlot& plot) {
  return Drawing(plot).run();
}

}  // namespace memdecay
