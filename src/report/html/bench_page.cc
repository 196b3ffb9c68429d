// SPDX-License-Identifier: Apache-2.0
// The same as one page: a table and a picture of the intervals a case. No script.
#include <algorithm>

#include "base/format.h"
#include "report/bench.h"
#include "report/html/html_text.h"
#include "report/html/svg.h"
#include "report/message.h"
#include "report/terminal/mem_words.h"

namespace cufit::report {
namespace {

using resolve::BenchCase;
using resolve::BenchRun;

constexpr const char* k_bench_style = R"css(
td.n,th.n{text-align:right}svg{display:block;width:100%;height:auto;margin-top:12px}
.axis{stroke:var(--line)}.range{stroke:var(--note);stroke-width:6}.middle{fill:var(--ink)}
svg text{fill:var(--soft);font-size:12px}.marks{margin:0;padding-left:20px}
)css";

constexpr int k_bench_left = 180, k_bench_width = 800, k_bench_row = 26;

class BenchPage {
 public:
  BenchPage(const BenchView& view, const std::string& lang) : view_(view), lang_(lang) {}

  std::string write() {
    const std::string device = bench_device(view_, lang_);
    out_ = html_head(say_("bench.page.title") + say_("colon") + device, lang_, k_bench_style);
    out_ += "<header class=\"note\"><p class=\"question\">" +
            escape_html(say_("bench.page.title")) + "</p>\n<p class=\"sentence\">" +
            escape_html(device) + "</p>\n";
    for (const resolve::BenchEnvironment& env : view_.result.environments)
      out_ += "<p class=\"machine\">" +
              rich_html(env.name + say_("colon") +
                        (env.trouble.kind.empty() ? "torch " + env.hello.torch
                                                  : bench_trouble(env.trouble, view_, lang_))) +
              "</p>\n";
    out_ += "</header>\n";
    for (const BenchCase& one : view_.result.cases) section(one);
    const std::vector<std::string> marks = bench_marks(view_, lang_);
    if (!marks.empty()) {
      out_ += "<section><h2>" + escape_html(say_("bench.page.marks")) +
              "</h2><div class=\"card limited\"><ul class=\"marks\">";
      for (const std::string& mark : marks) out_ += "<li>" + rich_html(mark) + "</li>\n";
      out_ += "</ul></div></section>\n";
    }
    out_ += "<footer>" + escape_html(say_("fit.page.made_by", {{"version", CUFIT_VERSION}})) +
            "</footer>\n</main>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  void cell(const std::string& text, bool number) {
    out_ += format("<td{}>{}</td>", number ? " class=\"n\"" : "", escape_html(text));
  }

  void section(const BenchCase& one) {
    out_ += "<section><h2>" + escape_html(bench_heading(one, view_, lang_)) + "</h2>\n";
    const std::string verdict = bench_verdict(one, view_, lang_);
    if (!verdict.empty()) out_ += "<p class=\"sentence\">" + rich_html(verdict) + "</p>\n";
    std::string unit = "?";
    for (const BenchRun& run : one.runs)
      if (!run.loaded.unit.empty()) unit = run.loaded.unit;
    out_ +=
        "<div class=\"card\"><div class=\"scroll\"><table><thead><tr><th></th><th class=\"n\">" +
        escape_html(unit + "/s") + "</th><th class=\"n\">" +
        escape_html(say_("bench.column.interval")) + "</th><th class=\"n\">" +
        escape_html(say_("bench.column.memory")) +
        "</th><th class=\"n\">J</th><th class=\"n\">SM MHz</th></tr></thead><tbody>\n";
    for (const BenchRun& run : one.runs) row(one, run);
    out_ += "</tbody></table></div>" + picture(one) + "</div></section>\n";
  }

  void row(const BenchCase& one, const BenchRun& run) {
    out_ += "<tr>";
    cell(side_name(one, run, view_), false);
    if (!run.rate) {
      out_ += "<td colspan=\"5\">" + rich_html(bench_trouble(run.trouble, view_, lang_)) + "</td>";
    } else {
      const std::optional<uint64_t> reserved = resolve::reserved_bytes(run);
      cell(four_digits(run.rate->middle), true);
      cell(four_digits(run.rate->low) + " - " + four_digits(run.rate->high), true);
      cell(reserved ? gib(*reserved) : "", true);
      cell(run.joules_per_item ? four_digits(*run.joules_per_item) : "", true);
      cell(run.sm_clock_min_mhz
               ? format("{} - {}", *run.sm_clock_min_mhz, run.sm_clock_max_mhz.value_or(0))
               : "",
           true);
    }
    out_ += "</tr>\n";
  }

  // The intervals on one axis, from a little below the lowest.
  std::string picture(const BenchCase& one) const {
    double low = 0, high = 0;
    int count = 0;
    for (const BenchRun& run : one.runs) {
      if (!run.rate) continue;
      low = count == 0 ? run.rate->low : std::min(low, run.rate->low);
      high = std::max(high, run.rate->high);
      ++count;
    }
    if (count < 2 || high <= low) return {};
    const double margin = (high - low) * 0.1;
    const auto x = [&](double rate) {
      return k_bench_left +
             (rate - low + margin) / (high - low + 2 * margin) * (k_bench_width - k_bench_left);
    };
    Svg svg("intervals", k_bench_width, k_bench_row * (count + 1), say_("bench.page.picture"));
    int row = 0;
    for (const BenchRun& run : one.runs) {
      if (!run.rate) continue;
      const double y = k_bench_row * (row++ + 0.5);
      svg.text("name", 0, y + 4, side_name(one, run, view_));
      svg.line("axis", k_bench_left, y, k_bench_width, y);
      svg.line("range", x(run.rate->low), y, x(run.rate->high), y);
      svg.disc("middle", x(run.rate->middle), y, 5, four_digits(run.rate->middle));
    }
    svg.text("end", k_bench_left, k_bench_row * (count + 0.6), four_digits(low - margin));
    svg.text("end", k_bench_width - 60, k_bench_row * (count + 0.6), four_digits(high + margin));
    return svg.finish();
  }

  const BenchView& view_;
  const std::string& lang_;
  const Labels say_{view_.knowledge, lang_};
  std::string out_;
};

}  // namespace

std::string bench_html(const BenchView& view, const std::string& lang) {
  return BenchPage(view, lang).write();
}

}  // namespace cufit::report
