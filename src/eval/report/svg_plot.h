// SvgPlot: a line plot as SVG text, for reports that need nothing from outside.
//
// Series of points over one or two logarithmic axes, with ticks, a legend and a title on every
// point. Points that are not finite, or not positive on a logarithmic axis, are left out; a plot
// without points says so. All text is escaped. Colours and dashes tell series apart, and follow
// the page's light or dark scheme. Pure, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace memdecay {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  ///< drawn in order
};

struct PlotAxis {
  std::string label;
  bool logarithmic = false;
};

struct SvgPlot {
  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
};

/// "<", "&" and quotes as entities; control characters left out: safe in HTML and SVG.
std::string escape_markup(std::string_view text);

/// An <svg> element.
std::string render_svg(const SvgPlot& plot);

}  // namespace memdecay
