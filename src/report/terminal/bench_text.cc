// SPDX-License-Identifier: Apache-2.0
// What `cufit bench` measured, on a terminal: a table a case, what it says, why to take it with care, one step.
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/bench.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"
#include "resolve/bench/bench_step.h"

namespace cufit::report {
namespace {

using resolve::BenchCase;
using resolve::BenchRun;

class BenchPainter : private TerminalWriter {
 public:
  BenchPainter(const BenchView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    flow(bench_device(view_, style_.lang), "", "  ", "1");
    for (const resolve::BenchEnvironment& env : view_.result.environments) environment(env);
    for (const BenchCase& one : view_.result.cases) show(one);
    const std::vector<std::string> marks = bench_marks(view_, style_.lang);
    if (!marks.empty()) out_ += "\n";
    for (const std::string& mark : marks) flow(mark, "  ! ", "    ", "33");
    out_ += "\n";
    step();
    return finish();
  }

 private:
  void environment(const resolve::BenchEnvironment& env) {
    const std::string name = printable(env.name) + say("colon");
    if (!env.trouble.kind.empty()) {
      flow(name + bench_trouble(env.trouble, view_, style_.lang), "  ✗ ", "    ", "31");
      return;
    }
    flow(name + say(env.hello.cudnn ? "bench.environment" : "bench.environment_bare",
                    {{"torch", env.hello.torch},
                     {"cudnn", std::to_string(env.hello.cudnn.value_or(0))},
                     {"python", env.hello.python}}),
         "  ", "    ");
  }

  using Row = std::vector<std::string>;

  Row heads(const BenchCase& one) const {
    std::string unit = "?";
    for (const BenchRun& run : one.runs)
      if (!run.loaded.unit.empty()) unit = printable(run.loaded.unit);
    Row out = {"", unit + "/s", say("bench.column.interval")};
    if (has_memory(one)) out.push_back(say("bench.column.memory"));
    if (has_energy(one)) out.push_back("J/" + singular(unit));
    if (has_clock(one)) out.push_back("SM MHz");
    if (first(one) != nullptr && one.runs.size() > 1)
      out.push_back(say("bench.column.against", {{"name", side_name(one, *first(one), view_)}}));
    return out;
  }

  static std::string singular(const std::string& unit) {
    return ends_with(unit, "s") ? unit.substr(0, unit.size() - 1) : unit;
  }

  static const BenchRun* first(const BenchCase& one) {
    for (const BenchRun& run : one.runs)
      if (run.rate) return &run;
    return nullptr;
  }
  static bool has_memory(const BenchCase& one) {
    return std::any_of(one.runs.begin(), one.runs.end(), [](const BenchRun& run) {
      return resolve::reserved_bytes(run).has_value();
    });
  }
  static bool has_energy(const BenchCase& one) {
    return std::any_of(one.runs.begin(), one.runs.end(),
                       [](const BenchRun& run) { return run.joules_per_item.has_value(); });
  }
  static bool has_clock(const BenchCase& one) {
    return std::any_of(one.runs.begin(), one.runs.end(),
                       [](const BenchRun& run) { return run.sm_clock_min_mhz.has_value(); });
  }

  std::string against(const BenchCase& one, const BenchRun& run) const {
    const auto place = [&](const BenchRun* of) {
      return static_cast<size_t>(of - one.runs.data());
    };
    const auto two = resolve::comparison_of(one, place(first(one)), place(&run));
    if (!two) return "-";
    return format("{:.3f} ({:.3f} - {:.3f})", two->ratio.middle, two->ratio.low, two->ratio.high);
  }

  Row row(const BenchCase& one, const BenchRun& run) const {
    Row out = {side_name(one, run, view_), four_digits(run.rate->middle),
               four_digits(run.rate->low) + " - " + four_digits(run.rate->high)};
    const std::optional<uint64_t> reserved = resolve::reserved_bytes(run);
    if (has_memory(one)) out.push_back(reserved ? gib(*reserved) : "");
    if (has_energy(one))
      out.push_back(run.joules_per_item ? four_digits(*run.joules_per_item) : "");
    if (has_clock(one))
      out.push_back(run.sm_clock_min_mhz
                        ? format("{} - {}", *run.sm_clock_min_mhz, run.sm_clock_max_mhz.value_or(0))
                        : "");
    if (one.runs.size() > 1) out.push_back(against(one, run));
    return out;
  }

  void show(const BenchCase& one) {
    heading(bench_heading(one, view_, style_.lang));
    std::vector<Row> rows;
    for (const BenchRun& run : one.runs)
      if (run.rate) rows.push_back(row(one, run));
    if (!rows.empty()) rows.insert(rows.begin(), heads(one));
    table(rows);
    for (const BenchRun& run : one.runs)
      if (!run.trouble.kind.empty())
        flow(side_name(one, run, view_) + say("colon") +
                 bench_trouble(run.trouble, view_, style_.lang),
             "  ✗ ", "    ", "31");
    const std::string verdict = bench_verdict(one, view_, style_.lang);
    if (!verdict.empty()) flow(verdict, "  ", "  ", "1");
  }

  // Never wrapped: a row that is cut in two cannot be compared.
  void table(const std::vector<Row>& rows) {
    std::vector<int> widths;
    for (const Row& row : rows)
      for (size_t i = 0; i < row.size(); ++i) {
        if (widths.size() <= i) widths.push_back(0);
        widths[i] = std::max(widths[i], columns(row[i]));
      }
    for (const Row& row : rows) {
      std::string line = " ";
      for (size_t i = 0; i < row.size(); ++i)
        line += " " + (i == 0 ? pad(row[i], widths[i])
                              : " " + blanks(widths[i] - columns(row[i])) + row[i]);
      out_ += line + "\n";
    }
  }

  void step() {
    using Kind = resolve::BenchStep::Kind;
    const resolve::BenchStep step = resolve::next_step(view_.result, !view_.file.empty());
    const resolve::BenchEnvironment& env = view_.result.environments[step.environment];
    switch (step.kind) {
      case Kind::create:
        return next({{true, env.trouble.why}});
      case Kind::doctor:
        return next({{true, "cufit doctor --env " + shell_word(env.folder)}});
      case Kind::mend_file:
        return next({{false, say("bench.mend_file", {{"file", printable(step.workload)}})}});
      case Kind::smaller_batch:
        return next({{false, say("bench.smaller_batch", {{"name", printable(env.name)}})}});
      case Kind::neighbours:
        return next({{true, "cufit top"}});
      case Kind::rank:
        return next({{true, "cufit resolve --measured " + shell_word(view_.file) + " torch"}});
      case Kind::use:
        return next(
            {{false, say("bench.use", {{"name", printable(env.name)}})},
             {true, env.is_class ? "cufit run --env " + shell_word(env.name) + " -- python train.py"
                                 : shell_word(env.interpreter) + " train.py"}});
      case Kind::use_precision:
        return next({{false, say("bench.use_precision", {{"precision", step.precision}})}});
      case Kind::other:
        return next({{false, say("bench.other")}, {true, "cufit resolve torch"}});
      case Kind::depends:
        return next({{false, say("bench.depends")}});
      case Kind::longer:
        return next(
            {{false, say("bench.longer", {{"percent", format("{:.0f}", step.hidden * 100)}})}});
      case Kind::none:
        return next({{false, say("bench.no_choice")}});
    }
  }

  const BenchView& view_;
};

}  // namespace

std::string bench_text(const BenchView& view, const Style& style) {
  return BenchPainter(view, style).paint();
}

}  // namespace cufit::report
