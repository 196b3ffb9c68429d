// SPDX-License-Identifier: Apache-2.0
// mem compare's answer on a terminal: both runs, what the difference is made of by category and by
// place, the one next step.
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/terminal/state_symbols.h"
#include "report/mem_compare.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_mem_compare_text_places_shown = 8;
constexpr uint64_t k_least_change = 64 << 10;  // bytes; less is noise on a screen
constexpr int k_mem_compare_text_size = 10;

class MemComparePainter : private TerminalWriter {
 public:
  MemComparePainter(const MemCompareView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    verdict();
    run("A", view_.a);
    run("B", view_.b);
    categories();
    places();
    out_ += "\n";
    next_step();
    return finish();
  }

 private:
  std::string words(const std::string& key,
                    const std::map<std::string, std::string>& args = {}) const {
    return say("mem.compare." + key, args);
  }
  uint64_t peak(const MemRun& run) const { return run.seen.peak.moment.allocated_bytes; }

  static std::string change(uint64_t a, uint64_t b) {
    if (a == b) return "=";
    return (b > a ? "+" : "-") + gib(b > a ? b - a : a - b);
  }

  void verdict() {
    const uint64_t a = peak(view_.a), b = peak(view_.b);
    const double percent =
        a == 0 ? 0 : 100.0 * (static_cast<double>(b) - static_cast<double>(a)) / double(a);
    const char* key = b > a ? "more" : b < a ? "less" : "same";
    flow(words(key, {{"bytes", gib(b > a ? b - a : a - b)},
                     {"percent", format("{:.1f}", percent < 0 ? -percent : percent)}}),
         "", "  ", "1");
  }

  void run(const char* name, const MemRun& run) {
    flow(words("run",
               {{"name", name},
                {"file", printable(run.file)},
                {"allocated", gib(peak(run))},
                {"reserved", gib(run.seen.peak_reserved_bytes)},
                {"settings", recorded_settings_words(run.verified, knowledge_, style_.lang)}}),
         "  ", "     ");
    if (!run.seen.steps.known()) return;
    flow(words(run.seen.oom ? "run_steps_died" : "run_steps",
               {{"count", std::to_string(run.seen.steps.finished)},
                {"trend", say(std::string("mem.trend.") + to_string(run.seen.history.trend))}}),
         "     ", "     ", "2");
  }

  void head(const std::string& title, int width) {
    heading(title);
    out_ += "  " +
            coloured(pad("", width) + "  " + right("A", k_mem_compare_text_size) + "  " +
                         right("B", k_mem_compare_text_size) + "  " +
                         right(words("change"), k_mem_compare_text_size + 1),
                     "2") +
            "\n";
  }

  void row(const std::string& name, int width, uint64_t a, uint64_t b) {
    out_ += "  " + pad(name, width) + "  " + right(gib(a), k_mem_compare_text_size) + "  " +
            right(gib(b), k_mem_compare_text_size) + "  " +
            coloured(right(change(a, b), k_mem_compare_text_size + 1), b > a ? "33" : "") + "\n";
  }

  void categories() {
    const auto &a = view_.a.seen.peak.by_category, &b = view_.b.seen.peak.by_category;
    const auto name = [&](size_t i) {
      return say(std::string("mem.category.") + to_string(static_cast<analysis::Category>(i)));
    };
    int width = 0;
    for (size_t i = 0; i < analysis::k_categories; ++i)
      if (a[i] + b[i] > 0) width = std::max(width, columns(name(i)));
    head(words("at_peaks"), width);
    for (size_t i = 0; i < analysis::k_categories; ++i)
      if (a[i] + b[i] > 0) row(name(i), width, a[i], b[i]);
  }

  std::string place_name(const analysis::PlaceChange& change) const {
    const analysis::Place& place = change.has_b ? change.in_b : change.in_a;
    if (place.frame == analysis::k_no_frame) return say("mem.explain.no_frame");
    if (place.frame == analysis::k_not_python) return say("mem.explain.not_python");
    return frame_text(change.has_b ? view_.b.snapshot : view_.a.snapshot, place.frame);
  }

  void places() {
    heading(say("mem.explain.places"));
    const auto& all = view_.places;
    if (all.empty() || (all.size() == 1 && all[0].in_b.frame == analysis::k_no_frame)) {
      flow(say("mem.explain.no_stacks"), "  ", "  ", "2");
      return;
    }
    size_t shown = 0;
    for (const analysis::PlaceChange& one : all) {
      const int64_t grew = one.grew_bytes();
      const bool large = static_cast<uint64_t>(grew < 0 ? -grew : grew) >= k_least_change;
      if (!style_.verbose && (!large || shown == k_mem_compare_text_places_shown)) break;
      ++shown;
      const std::string left =
          "  " + right(change(one.a_bytes, one.b_bytes), k_mem_compare_text_size + 1) + "  ";
      flow_at(words("place",
                    {{"place", place_name(one)}, {"a", gib(one.a_bytes)}, {"b", gib(one.b_bytes)}}),
              left, columns(left), blanks(columns(left)));
    }
    if (shown < all.size())
      flow(say("part.more", {{"count", std::to_string(all.size() - shown)}}), "  ", "  ", "2");
  }

  void next_step() {
    if (peak(view_.b) == peak(view_.a)) {
      next(cut_commands(words("next_same", {{"file", printable(shell_word(view_.b.file))}})));
      return;
    }
    const bool b_is_larger = peak(view_.b) >= peak(view_.a);
    const MemRun& larger = b_is_larger ? view_.b : view_.a;
    next(cut_commands(words("next", {{"file", printable(shell_word(larger.file))}})));
  }

  const MemCompareView& view_;
};

}  // namespace

std::string mem_compare_text(const MemCompareView& view, const Style& style) {
  return MemComparePainter(view, style).paint();
}

}  // namespace cufit::report
