// SPDX-License-Identifier: Apache-2.0
#include "report/html/fit_charts.h"

#include <algorithm>

#include "base/format.h"
#include "report/html/axis.h"
#include "report/terminal/fit_words.h"
#include "report/html/html_text.h"
#include "report/terminal/mem_words.h"
#include "report/message.h"
#include "report/html/svg.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_most_cards = 4;  // lines in one picture

struct Frame {
  const char* name;
  int width, height;
  unsigned ticks;
};
constexpr Frame k_fit_charts_wide{"wide", 900, 340, 8}, k_narrow{"narrow", 400, 320, 5};
constexpr double k_left = 76, k_right = 16, k_top = 18, k_bottom = 44;

// Units of the picture from values; y grows downwards.
class Plot {
 public:
  Plot(const Frame& frame, double most_x, double most_y)
      : right_(frame.width - k_right),
        bottom_(frame.height - k_bottom),
        most_x_(std::max(most_x, 1.0)),
        most_y_(std::max(most_y, 1.0)) {}
  double x(double value) const { return k_left + (right_ - k_left) * value / most_x_; }
  double y(double value) const { return bottom_ - (bottom_ - k_top) * value / most_y_; }
  double right() const { return right_; }
  double bottom() const { return bottom_; }

 private:
  double right_, bottom_, most_x_, most_y_;
};

double number(uint64_t value) { return static_cast<double>(value); }

void memory_axis(Svg& svg, const Plot& plot, uint64_t most) {
  for (const uint64_t tick : byte_ticks(most, 6)) {
    svg.line("grid", k_left, plot.y(number(tick)), plot.right(), plot.y(number(tick)));
    svg.text("tick end", k_left - 8, plot.y(number(tick)) + 4, byte_tick_text(tick));
  }
}

class CurveChart {
 public:
  CurveChart(const FitView& view, const std::string& lang) : view_(view), lang_(lang) {
    for (const fit::CurvePoint& point : view.answer.curve) {
      most_ = std::max(most_, point.peak_reserved_upper);
      most_batch_ = std::max(most_batch_, point.batch);
    }
    for (const fit::CardAnswer& gpu : view.answer.cards)
      if (gpu.asked && gpu.usable <= most_ * 2 && cards_.size() < k_most_cards)
        cards_.push_back(&gpu);
    for (const fit::CardAnswer* card : cards_)
      most_ = std::max(most_, card->usable + card->usable / 20);
  }

  std::string draw(const Frame& frame) const {
    const Plot plot(frame, number(most_batch_), number(most_));
    Svg svg(frame.name, frame.width, frame.height, say_("fit.page.curve_alt"));
    memory_axis(svg, plot, most_);
    for (const uint64_t tick : count_ticks(most_batch_, frame.ticks))
      svg.text("tick middle", plot.x(number(tick)), plot.bottom() + 18, thousands(tick));
    svg.text("axis middle", (k_left + plot.right()) / 2, plot.bottom() + 38,
             say_("fit.column.batch"));
    Svg::Points point, upper, between;
    for (const fit::CurvePoint& at : view_.answer.curve) {
      point.emplace_back(plot.x(number(at.batch)), plot.y(number(at.peak_reserved)));
      upper.emplace_back(plot.x(number(at.batch)), plot.y(number(at.peak_reserved_upper)));
    }
    between = upper;
    between.insert(between.end(), point.rbegin(), point.rend());
    svg.area("band", between);
    if (view_.answer.batch != 0 && view_.answer.batch <= most_batch_)
      svg.line("chosen", plot.x(number(view_.answer.batch)), k_top,
               plot.x(number(view_.answer.batch)), plot.bottom());
    svg.polyline("upper", upper);
    svg.polyline("point", point);
    limits(svg, plot);
    for (size_t i = 0; i < view_.answer.curve.size(); ++i) {
      const fit::CurvePoint& at = view_.answer.curve[i];
      const std::string title = say_("fit.page.point", {{"batch", thousands(at.batch)},
                                                        {"reserved", gib(at.peak_reserved)},
                                                        {"upper", gib(at.peak_reserved_upper)}});
      svg.triangle("upper mark", upper[i].first, upper[i].second, 5, title);
      svg.disc("point mark", point[i].first, point[i].second, 4, title);
    }
    return svg.finish();
  }

 private:
  // Names of lines that lie close together go below one another.
  void limits(Svg& svg, const Plot& plot) const {
    std::vector<const fit::CardAnswer*> cards = cards_;
    std::sort(cards.begin(), cards.end(), [](const fit::CardAnswer* a, const fit::CardAnswer* b) {
      return a->usable > b->usable;
    });
    double free = 0;
    for (const fit::CardAnswer* card : cards) {
      const double y = plot.y(number(card->usable));
      svg.line("limit", k_left, y, plot.right(), y);
      const double at = std::max(y - 5, free);
      svg.text("limit_name", k_left + 6, at, card->name + say_("colon") + gib(card->usable));
      free = at + 15;
    }
  }

  const FitView& view_;
  const std::string& lang_;
  const Labels say_{view_.knowledge, lang_};
  std::vector<const fit::CardAnswer*> cards_;
  uint64_t most_ = 1, most_batch_ = 1;
};

class TimelineChart {
 public:
  TimelineChart(const FitView& view, const fit::StepTimeline& timeline, const std::string& lang)
      : view_(view), timeline_(timeline), lang_(lang) {
    for (const fit::TimelinePoint& point : timeline.points) most_ = std::max(most_, point.reserved);
  }

  std::string draw(const Frame& frame) const {
    const Plot plot(frame, static_cast<double>(timeline_.points.size()), number(most_) * 1.06);
    Svg svg(frame.name, frame.width, frame.height, say_("fit.page.timeline_alt"));
    memory_axis(svg, plot, most_);
    Svg::Points allocated{{plot.x(0), plot.bottom()}}, reserved;
    for (size_t i = 0; i < timeline_.points.size(); ++i) {
      const fit::TimelinePoint& point = timeline_.points[i];
      for (const size_t x : {i, i + 1}) {
        allocated.emplace_back(plot.x(static_cast<double>(x)), plot.y(number(point.allocated)));
        reserved.emplace_back(plot.x(static_cast<double>(x)), plot.y(number(point.reserved)));
      }
    }
    allocated.emplace_back(plot.right(), plot.bottom());
    svg.area("allocated", allocated);
    svg.polyline("reserved", reserved);
    phases(svg, plot);
    peak(svg, plot);
    return svg.finish();
  }

 private:
  // A strip below the picture; steps are parted by lines.
  void phases(Svg& svg, const Plot& plot) const {
    uint32_t step = 0;
    double free = 0;
    for (const fit::TimelineRange& range : timeline_.ranges) {
      const double from = plot.x(range.first), to = plot.x(range.end);
      const std::string name = say_(format("fit.phase.{}", phase_name(range.phase)));
      const std::string classes = format("phase {}", phase_name(range.phase));
      svg.rect(classes.c_str(), from, plot.bottom() + 3, to - from, 14, name);
      const std::string mark = say_(format("fit.page.mark.{}", phase_name(range.phase)));
      if (to - from > 8 * columns(mark) + 4)
        svg.text("phase_name middle", (from + to) / 2, plot.bottom() + 14, mark);
      if (range.step == step && range.first != 0) continue;
      step = range.step;
      if (range.first != 0) svg.line("step", from, k_top, from, plot.bottom() + 17);
      const std::string text =
          step == 0 ? say_("fit.phase.setup") : say_("fit.page.step", {{"step", thousands(step)}});
      const bool narrow = step == 0 && to - from < 8 * columns(text);
      if (from < free || narrow) continue;
      svg.text("tick", from + 2, plot.bottom() + 32, text);
      free = from + 8 * columns(text) + 8;
    }
  }

  void peak(Svg& svg, const Plot& plot) const {
    const double x = plot.x(timeline_.peak + 0.5);
    const double y = plot.y(number(timeline_.points[timeline_.peak].allocated));
    svg.line("peak", x, y, x, plot.bottom());
    svg.disc("peak mark", x, y, 5);
    const bool left = x > (k_left + plot.right()) / 2;
    svg.text(left ? "peak_name end" : "peak_name", left ? x - 9 : x + 9,
             std::max(y + 18, k_top + 12),
             say_("fit.page.peak", {{"bytes", gib(view_.answer.prediction.peak_allocated)}}));
  }

  const FitView& view_;
  const fit::StepTimeline& timeline_;
  const std::string& lang_;
  const Labels say_{view_.knowledge, lang_};
  uint64_t most_ = 1;
};

}  // namespace

std::string fit_curve_chart(const FitView& view, const std::string& lang) {
  if (view.answer.curve.size() < 2) return {};
  const CurveChart chart(view, lang);
  return chart.draw(k_fit_charts_wide) + chart.draw(k_narrow);
}

std::string fit_timeline_chart(const FitView& view, const fit::StepTimeline& timeline,
                               const std::string& lang) {
  if (timeline.points.empty()) return {};
  const TimelineChart chart(view, timeline, lang);
  return chart.draw(k_fit_charts_wide) + chart.draw(k_narrow);
}

std::string fit_parts_chart(const FitView& view, const std::string& lang) {
  const std::vector<std::pair<std::string, uint64_t>> parts = parts_of(view.answer.prediction);
  uint64_t all = 0;
  for (const auto& part : parts) all += part.second;
  if (all == 0) return {};
  Svg svg("parts", 900, 40, label(view.knowledge, lang, "fit.heading.peak"));
  std::string legend = "<ol class=\"legend\">\n";
  double from = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint64_t bytes = parts[i].second;
    if (bytes == 0) continue;
    const std::string name = label(view.knowledge, lang, "fit.part." + parts[i].first);
    const double width = 900 * number(bytes) / number(all);
    const std::string classes = format("part p{}", i);
    svg.rect(classes.c_str(), from, 0, width, 40, name + " " + gib(bytes));
    const std::string mark = std::to_string(i + 1);
    if (width > 26) svg.text("part_name middle", from + width / 2, 27, mark);
    from += width;
    const bool beside = i + k_parts_beside >= parts.size();
    legend += format(
        "<li><span class=\"swatch p{}\">{}</span><span>{}</span><b>{}</b><span "
        "class=\"share\">{:.1f} %</span>",
        i, mark, escape_html(name), gib(bytes), number(bytes) / number(all) * 100);
    if (beside)
      legend += "<span class=\"beside\">" +
                escape_html(label(view.knowledge, lang, "fit.beside." + parts[i].first)) +
                "</span>";
    legend += "</li>\n";
  }
  return svg.finish() + legend + "</ol>\n";
}

}  // namespace cufit::report
