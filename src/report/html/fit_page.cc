// SPDX-License-Identifier: Apache-2.0
// fit's answer as one page: no script, readable on a telephone and on paper. What the terminal
// says, the pictures beside it.
#include <algorithm>

#include "base/format.h"
#include "report/html/fit_charts.h"
#include "report/html/fit_page_style.h"
#include "report/fit_plans.h"
#include "report/fit_ranks.h"
#include "report/terminal/fit_words.h"
#include "report/html/html_text.h"
#include "report/terminal/state_symbols.h"
#include "report/terminal/mem_words.h"
#include "report/doctor_content.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_fit_page_modules = 16;
constexpr size_t k_open_cards = 16;  // longer tables are folded

class FitPage {
 public:
  FitPage(const FitView& view, const fit::StepTimeline& timeline, const std::string& lang)
      : view_(view), timeline_(timeline), lang_(lang) {
    for (const fit::CardAnswer& gpu : view.answer.cards) {
      if (!gpu.asked) continue;
      asked_.push_back(&gpu);
      fitting_ += gpu.fits ? 1 : 0;
    }
  }

  std::string write() {
    out_ = html_head(verdict() + say_("colon") + sentence(), lang_, k_fit_page_style);
    answer();
    cards();
    curve();
    parts();
    modules();
    timeline();
    plans();
    all_cards();
    warnings();
    out_ += "<footer>" + escape_html(say_("fit.page.made_by", {{"version", CUFIT_VERSION}})) +
            "</footer>\n</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  static const char* tone(bool fits) { return fits ? "ok" : "broken"; }

  std::string verdict() const {
    if (asked_.empty())
      return say_("fit.page.needs", {{"bytes", gib(view_.answer.prediction.peak_reserved_upper)}});
    const bool one = asked_.size() == 1;
    const char* key = fitting_ == asked_.size() ? (one ? "fits_one" : "fits_many")
                      : fitting_ == 0           ? (one ? "fits_not_one" : "fits_not_many")
                                                : "fits_some";
    return say_(std::string("fit.page.") + key, {{"card", asked_.front()->name},
                                                 {"count", thousands(asked_.size())},
                                                 {"fitting", thousands(fitting_)}});
  }
  std::string sentence() const {
    return say_("fit.page.sentence",
                {{"program", printable(view_.program)}, {"batch", fit_batch_text(view_, lang_)}});
  }

  void answer() {
    const LinkState state = asked_.empty()              ? LinkState::ok
                            : fitting_ == asked_.size() ? LinkState::ok
                            : fitting_ == 0             ? LinkState::broken
                                                        : LinkState::limited;
    out_ += format("<header class=\"{}\">\n", to_string(state));
    out_ += "<p class=\"question\">" + escape_html(say_("fit.page.question")) + "</p>\n";
    out_ += format("<h1><span class=\"disc\" aria-hidden=\"true\">{}</span><span>{}</span></h1>\n",
                   asked_.empty() ? "i" : mark(state), escape_html(verdict()));
    out_ += "<p class=\"sentence\"><code>" + escape_html(printable(view_.program)) + "</code>" +
            escape_html(say_("colon") + fit_batch_text(view_, lang_)) + "</p>\n";
    out_ += "<p><b>" + rich_html(fit_peak_text(view_, lang_)) + "</b></p>\n";
    for (const std::string& text : {fit_outside_text(view_, lang_), fit_when_text(view_, lang_),
                                    fit_traced_text(view_, lang_)})
      out_ += "<p class=\"machine\">" + rich_html(text) + "</p>\n";
    for (const std::string& text : fit_rank_lines(view_, lang_))
      out_ += "<p class=\"machine\">" + rich_html(text) + "</p>\n";
    out_ += "</header>\n";
  }

  void section(const std::string& heading) {
    out_ += "<section><h2>" + escape_html(heading) + "</h2>\n";
  }

  void cards() {
    if (asked_.empty()) return;
    section(say_("fit.page.cards"));
    out_ += "<div class=\"cards\">\n";
    for (const fit::CardAnswer* gpu : asked_) {
      out_ += format("<article class=\"card {}\"><h3>{}</h3><span class=\"word\">{} {}</span>\n",
                     tone(gpu->fits), escape_html(fit_card_name(view_, *gpu, lang_)),
                     mark(gpu->fits ? LinkState::ok : LinkState::broken),
                     escape_html(say_(gpu->fits ? "fit.fits" : "fit.fits_not")));
      const uint64_t reserved = view_.answer.prediction.peak_reserved;
      const uint64_t upper = view_.answer.prediction.peak_reserved_upper;
      out_ += format(
          "<div class=\"meter\" role=\"img\" aria-label=\"{}\">"
          "<i class=\"more\" style=\"width:{:.1f}%\"></i><i style=\"width:{:.1f}%\"></i>"
          "</div>\n",
          escape_html(say_("fit.page.meter_alt")), share(upper, gpu->usable),
          share(reserved, gpu->usable));
      out_ += "<p class=\"detail\">" +
              escape_html(say_("fit.page.meter", {{"reserved", gib(reserved)},
                                                  {"upper", gib(upper)},
                                                  {"usable", gib(gpu->usable)}})) +
              "</p>\n<p class=\"detail\">" +
              escape_html(say_("fit.page.largest", {{"batch", fit_largest_text(view_, *gpu)}})) +
              "</p>\n";
      const std::string note = fit_gpu_note(view_, *gpu, lang_);
      if (!note.empty()) out_ += "<p class=\"detail\">" + escape_html(note) + "</p>\n";
      out_ += "</article>\n";
    }
    out_ += "</div></section>\n";
  }

  static double share(uint64_t bytes, uint64_t of) {
    if (of == 0) return 100;
    return std::min(static_cast<double>(bytes) / static_cast<double>(of) * 100, 100.0);
  }

  void key(const char* classes, const std::string& text) {
    out_ += format("<li><i class=\"{}\"></i>{}</li>", classes, escape_html(text));
  }

  void curve() {
    const std::string chart = fit_curve_chart(view_, lang_);
    if (chart.empty()) return;
    section(say_("fit.page.curve"));
    out_ += "<div class=\"card\">\n" + chart + "<ul class=\"key\">";
    key("k_point", say_("fit.column.reserved"));
    key("k_upper", say_("fit.column.upper"));
    if (!asked_.empty()) key("k_limit", say_("fit.page.limit"));
    out_ += "</ul>\n<details><summary>" + escape_html(say_("fit.page.numbers")) +
            "</summary><div class=\"scroll\"><table class=\"numbers\"><thead><tr>";
    for (const char* column : {"batch", "reserved", "upper"})
      out_ += "<th class=\"n\">" + escape_html(say_(std::string("fit.column.") + column)) + "</th>";
    out_ += "</tr></thead><tbody>\n";
    for (const fit::CurvePoint& point : view_.answer.curve)
      out_ +=
          format("<tr><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                 thousands(point.batch), gib(point.peak_reserved), gib(point.peak_reserved_upper));
    out_ += "</tbody></table></div></details></div></section>\n";
  }

  void parts() {
    const std::string chart = fit_parts_chart(view_, lang_);
    if (chart.empty()) return;
    section(say_("fit.heading.peak"));
    out_ += "<div class=\"card\">\n" + chart + "</div></section>\n";
  }

  void modules() {
    const std::vector<fit::ModuleBytes>& rows = view_.answer.prediction.activations_by_module;
    if (rows.size() < 2) return;
    section(say_("fit.heading.modules"));
    out_ += "<div class=\"card scroll\"><table class=\"numbers\"><tbody>\n";
    const size_t shown = std::min(rows.size(), k_fit_page_modules);
    for (size_t i = 0; i < shown; ++i)
      module_row(fit_module_name(view_, rows[i], lang_), rows[i].bytes, rows[0].bytes);
    uint64_t rest = 0;
    for (size_t i = shown; i < rows.size(); ++i) rest += rows[i].bytes;
    const size_t more = rows.size() - shown;
    if (rest != 0)
      module_row(say_(counted("fit.more_modules", more), {{"count", thousands(more)}}), rest,
                 rows[0].bytes);
    out_ += "</tbody></table></div></section>\n";
  }

  void module_row(const std::string& name, uint64_t bytes, uint64_t most) {
    out_ += format(
        "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"wide\"><span class=\"bar\" "
        "style=\"width:{:.1f}%\"></span></td></tr>\n",
        escape_html(name), gib(bytes), share(bytes, most));
  }

  void timeline() {
    const std::string chart = fit_timeline_chart(view_, timeline_, lang_);
    if (chart.empty()) return;
    section(say_("fit.page.timeline"));
    out_ += "<div class=\"card\">\n" + chart + "<ul class=\"key\">";
    key("k_allocated", say_("fit.page.allocated"));
    key("k_reserved", say_("fit.column.reserved"));
    for (const fit::TracePhase phase :
         {fit::TracePhase::setup, fit::TracePhase::forward, fit::TracePhase::backward,
          fit::TracePhase::optimizer, fit::TracePhase::validation, fit::TracePhase::other}) {
      const bool there =
          std::any_of(timeline_.ranges.begin(), timeline_.ranges.end(),
                      [phase](const fit::TimelineRange& range) { return range.phase == phase; });
      if (!there) continue;
      key(phase_name(phase), say_(format("fit.page.mark.{}", phase_name(phase))) + " " +
                                 say_(format("fit.phase.{}", phase_name(phase))));
    }
    out_ += "</ul>\n<p class=\"detail\">" +
            escape_html(say_("fit.page.timeline_note", {{"events", thousands(timeline_.events)}})) +
            "</p></div></section>\n";
  }

  // As on a terminal: the lines are there to be copied.
  void plans() {
    Style style;
    style.lang = lang_;
    style.width = 100;
    const std::string text = fit_plans_text(view_, style);
    if (text.empty()) return;
    section(say_("fit.page.plans"));
    out_ += "<div class=\"card\"><pre class=\"plans\"><code>" +
            escape_html(text.substr(text.find_first_not_of('\n'))) +
            "</code></pre></div></section>\n";
  }

  void all_cards() {
    if (view_.answer.cards.size() <= asked_.size()) return;
    section(say_("fit.heading.gpus", {{"batch", fit_batch_text(view_, lang_)}}));
    const auto fitting = std::count_if(view_.answer.cards.begin(), view_.answer.cards.end(),
                                       [](const fit::CardAnswer& gpu) { return gpu.fits; });
    out_ += format("<div class=\"card\"><details{}><summary>{}</summary><div class=\"scroll\">",
                   view_.answer.cards.size() > k_open_cards ? "" : " open",
                   escape_html(say_("fit.page.fits_some",
                                    {{"count", thousands(view_.answer.cards.size())},
                                     {"fitting", thousands(static_cast<uint64_t>(fitting))}})));
    out_ += "<table class=\"numbers\"><thead><tr>";
    for (const char* column : {"gpu", "usable", "fits", "largest"})
      out_ += format("<th{}>", std::string(column) == "usable" || std::string(column) == "largest"
                                   ? " class=\"n\""
                                   : "") +
              escape_html(say_(std::string("fit.column.") + column)) + "</th>";
    out_ += "<th></th></tr></thead><tbody>\n";
    for (const fit::CardAnswer& gpu : view_.answer.cards)
      out_ += format(
          "<tr><td>{}</td><td class=\"n\">{}</td><td><span class=\"word {}\">{} {}</span>"
          "</td><td class=\"n\">{}</td><td class=\"note\">{}</td></tr>\n",
          escape_html(fit_card_name(view_, gpu, lang_)), gib(gpu.usable), tone(gpu.fits),
          mark(gpu.fits ? LinkState::ok : LinkState::broken),
          escape_html(say_(gpu.fits ? "fit.fits" : "fit.fits_not")),
          escape_html(fit_largest_text(view_, gpu)), escape_html(fit_gpu_note(view_, gpu, lang_)));
    out_ += "</tbody></table></div></details><p class=\"detail\">" +
            rich_html(say_("fit.left_free")) + "</p></div></section>\n";
  }

  void warnings() {
    if (view_.answer.warnings.empty()) return;
    section(say_("fit.heading.warnings"));
    out_ += "<div class=\"card\"><ul class=\"warnings\">";
    for (const fit::Warning& warning : view_.answer.warnings)
      out_ += "<li>" + rich_html(fit_warning_text(warning, view_.knowledge, lang_)) + "</li>\n";
    out_ += "</ul></div></section>\n";
  }

  const FitView& view_;
  const fit::StepTimeline& timeline_;
  const std::string& lang_;
  const Labels say_{view_.knowledge, lang_};
  std::vector<const fit::CardAnswer*> asked_;
  size_t fitting_ = 0;
  std::string out_;
};

}  // namespace

std::string fit_html(const FitView& view, const fit::StepTimeline& timeline,
                     const std::string& lang) {
  return FitPage(view, timeline, lang).write();
}

}  // namespace cufit::report
