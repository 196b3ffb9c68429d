// SPDX-License-Identifier: Apache-2.0
#include "report/html/svg.h"

#include "base/format.h"
#include "report/html/html_text.h"

namespace cufit::report {
namespace {

std::string list_of(const Svg::Points& points) {
  std::string out;
  for (const auto& [x, y] : points) out += format("{:.1f},{:.1f} ", x, y);
  return out;
}

}  // namespace

Svg::Svg(std::string_view classes, int width, int height, std::string_view label) {
  out_ = format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                classes, width, height, escape_html(label));
}

void Svg::close(const char* element, std::string_view title) {
  if (title.empty())
    out_ += "/>\n";
  else
    out_ += format("><title>{}</title></{}>\n", escape_html(title), element);
}

void Svg::line(const char* classes, double x1, double y1, double x2, double y2) {
  out_ += format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                 classes, x1, y1, x2, y2);
}

void Svg::rect(const char* classes, double x, double y, double width, double height,
               std::string_view title) {
  out_ += format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"",
                 classes, x, y, width, height);
  close("rect", title);
}

void Svg::text(const char* classes, double x, double y, std::string_view text) {
  out_ += format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", classes, x, y,
                 escape_html(text));
}

void Svg::polyline(const char* classes, const Points& points) {
  out_ += format("<polyline class=\"{}\" points=\"{}\"/>\n", classes, list_of(points));
}

void Svg::area(const char* classes, const Points& points) {
  out_ += format("<polygon class=\"{}\" points=\"{}\"/>\n", classes, list_of(points));
}

void Svg::disc(const char* classes, double x, double y, double radius, std::string_view title) {
  out_ += format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"", classes, x, y,
                 radius);
  close("circle", title);
}

void Svg::triangle(const char* classes, double x, double y, double radius, std::string_view title) {
  out_ += format(
      "<polygon class=\"{}\" points=\"{}\"", classes,
      list_of({{x - radius, y + radius * 0.8}, {x + radius, y + radius * 0.8}, {x, y - radius}}));
  close("polygon", title);
}

std::string Svg::finish() { return out_ + "</svg>\n"; }

}  // namespace cufit::report
