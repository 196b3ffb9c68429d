// SPDX-License-Identifier: Apache-2.0
// fit's answer on a terminal: the peak with its range, what it holds and when it comes, memory
// against batch size, which cards it fits, what the answer rests on.
#include <algorithm>

#include "base/format.h"
#include "report/fit_curve.h"
#include "report/fit_plans.h"
#include "report/fit_ranks.h"
#include "report/terminal/fit_words.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr size_t k_fit_text_modules = 6;
// Of `--gpu all`: the largest cards that do not fit, the smallest that do.
constexpr size_t k_shown_small = 3, k_shown_large = 12;
constexpr int k_fit_text_size = 11;

class FitPainter : private TerminalWriter {
 public:
  FitPainter(const FitView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), prediction_(view.answer.prediction) {}

  std::string paint() {
    answer();
    breakdown();
    modules();
    out_ += fit_ranks(view_, style_);
    out_ += fit_curve(view_, style_);
    gpus();
    out_ += fit_plans_text(view_, style_);
    warnings();
    out_ += "\n";
    next(cut_commands(next_step()));
    return finish();
  }

 private:
  void answer() {
    flow(say("fit.title", {{"program", printable(view_.program)},
                           {"batch", fit_batch_text(view_, style_.lang)}}),
         "", "  ", "1");
    flow(fit_traced_text(view_, style_.lang), "  ", "  ");
    flow(fit_peak_text(view_, style_.lang), "  ", "  ", "1");
    flow(fit_outside_text(view_, style_.lang), "  ", "  ");
    flow(fit_when_text(view_, style_.lang), "  ", "  ");
    for (const std::string& line : fit_rank_lines(view_, style_.lang)) flow(line, "  ", "  ");
  }

  void row(const std::string& name, int first, uint64_t bytes, const std::string& rest) {
    out_ += "  " + pad(name, first) + right(gib(bytes), k_fit_text_size) + rest + "\n";
  }

  void breakdown() {
    const std::vector<std::pair<std::string, uint64_t>> parts = parts_of(prediction_);
    int first = 0;
    for (const auto& part : parts)
      if (part.second != 0) first = std::max(first, columns(say("fit.part." + part.first)));
    heading(say("fit.heading.peak"));
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint64_t bytes = parts[i].second;
      if (bytes == 0) continue;
      const bool beside = i + k_parts_beside >= parts.size();
      std::string share;
      if (!beside && prediction_.peak_allocated != 0) {
        const double part =
            static_cast<double>(bytes) / static_cast<double>(prediction_.peak_allocated) * 100;
        share = right(part < 0.5 ? "<1 %" : format("{:.0f} %", part), 7);
        if (part >= 2.5) share += "  " + std::string(static_cast<size_t>(part / 2.5), '#');
      }
      row(say("fit.part." + parts[i].first), first, bytes,
          beside ? "  " + coloured(say("fit.beside." + parts[i].first), "2") : share);
    }
  }

  void modules() {
    const std::vector<fit::ModuleBytes>& rows = prediction_.activations_by_module;
    if (rows.size() < 2) return;
    heading(say("fit.heading.modules"));
    int first = 0;
    const size_t shown = std::min(rows.size(), k_fit_text_modules);
    for (size_t i = 0; i < shown; ++i)
      first = std::max(first, std::min(columns(module_name(rows[i])), 48));
    for (size_t i = 0; i < shown; ++i) row(module_name(rows[i]), first, rows[i].bytes, "");
    if (shown == rows.size()) return;
    uint64_t rest = 0;
    for (size_t i = shown; i < rows.size(); ++i) rest += rows[i].bytes;
    const size_t more = rows.size() - shown;
    row(say(counted("fit.more_modules", more), {{"count", thousands(more)}}), first, rest, "");
  }

  std::string module_name(const fit::ModuleBytes& row) const {
    return fit_module_name(view_, row, style_.lang);
  }

  std::string name_of(const fit::CardAnswer& gpu) const {
    return fit_card_name(view_, gpu, style_.lang);
  }

  // Which of `--gpu all` are worth a line.
  std::vector<const fit::CardAnswer*> shown_gpus(size_t& small, size_t& large) const {
    std::vector<const fit::CardAnswer*> out, fitting, not_fitting;
    for (const fit::CardAnswer& gpu : view_.answer.cards) {
      if (gpu.asked)
        out.push_back(&gpu);
      else
        (gpu.fits ? fitting : not_fitting).push_back(&gpu);
    }
    small = not_fitting.size() - std::min(not_fitting.size(), k_shown_small);
    large = fitting.size() - std::min(fitting.size(), k_shown_large);
    out.insert(out.end(),
               not_fitting.end() - static_cast<std::ptrdiff_t>(not_fitting.size() - small),
               not_fitting.end());
    out.insert(out.end(), fitting.begin(),
               fitting.begin() + static_cast<std::ptrdiff_t>(fitting.size() - large));
    return out;
  }

  void gpus() {
    if (view_.answer.cards.empty()) return;
    size_t small = 0, large = 0;
    const std::vector<const fit::CardAnswer*> shown = shown_gpus(small, large);
    int first = columns(say("fit.column.gpu"));
    for (const fit::CardAnswer* gpu : shown) first = std::max(first, columns(name_of(*gpu)));
    const int outcome = std::max(columns(say("fit.fits")), columns(say("fit.fits_not")));
    const int largest = columns(say("fit.column.largest"));
    heading(say("fit.heading.gpus", {{"batch", fit_batch_text(view_, style_.lang)}}));
    std::string head = "  " + pad(say("fit.column.gpu"), first) +
                       right(say("fit.column.usable"), k_fit_text_size + 2) + "  " +
                       pad(say("fit.column.fits"), outcome) + "  " + say("fit.column.largest");
    const bool worlds = !view_.answer.distributed.worlds.empty();
    if (worlds) head += "  " + say("fit.column.least");
    out_ += coloured(head, "1") + "\n";
    if (small != 0)
      flow(say(counted("fit.more_small", small), {{"count", thousands(small)}}), "  ", "  ", "2");
    for (const fit::CardAnswer* gpu : shown) {
      out_ += "  " + pad(name_of(*gpu), first) + right(gib(gpu->usable), k_fit_text_size + 2) + "  ";
      out_ += coloured(pad(say(gpu->fits ? "fit.fits" : "fit.fits_not"), outcome),
                       gpu->fits ? "32" : "31");
      out_ += "  " + right(fit_largest_text(view_, *gpu), largest);
      if (worlds)
        out_ += "  " + right(gpu->least_world ? thousands(*gpu->least_world) : say("fit.no_world"),
                             columns(say("fit.column.least")));
      const std::string note = fit_gpu_note(view_, *gpu, style_.lang);
      if (!note.empty()) out_ += "  " + note;
      out_ += "\n";
    }
    if (large != 0)
      flow(say(counted("fit.more_large", large), {{"count", thousands(large)}}), "  ", "  ", "2");
    if (view_.answer.distributed.world > 1)
      flow(say("fit.each_card", {{"world", thousands(view_.answer.distributed.world)}}), "  ", "  ",
           "2");
    flow(say("fit.left_free"), "  ", "  ", "2");
  }

  void warnings() {
    if (view_.answer.warnings.empty()) return;
    heading(say("fit.heading.warnings"));
    for (const fit::Warning& warning : view_.answer.warnings)
      flow(fit_warning_text(warning, knowledge_, style_.lang), "  - ", "    ");
  }

  bool warned(const char* id) const {
    return std::any_of(view_.answer.warnings.begin(), view_.answer.warnings.end(),
                       [&](const fit::Warning& warning) { return warning.id == id; });
  }

  // The largest batch of each card that was asked for and is too small; empty unless there are
  // several, each with a batch that fits.
  std::string batch_for_each() const {
    std::vector<std::string> parts;
    for (const fit::CardAnswer& gpu : view_.answer.cards) {
      if (!gpu.asked || gpu.fits) continue;
      if (gpu.largest.batch == 0) return {};
      const bool whole = gpu.largest_whole != 0;
      parts.push_back(
          say(whole ? "fit.next.for_card" : "fit.next.for_card_retries",
              {{"batch", thousands(whole ? gpu.largest_whole : gpu.largest.batch)},
               {"card", gpu.name}}));
    }
    return parts.size() < 2 || parts.size() > 4 ? std::string() : join(parts, say("semicolon"));
  }

  // Where nothing has to be given back, if there is such a batch: the table has the largest of all.
  std::string smaller_batch(const fit::CardAnswer& card) const {
    const uint64_t most = card.largest.batch, whole = card.largest_whole;
    const char* key = most == 0                  ? "less"
                      : whole == 0               ? "smaller_retries"
                      : card.largest.only_traced ? "smaller_traced"
                      : whole < most             ? "smaller_whole"
                                                 : "smaller";
    return say(format("fit.next.{}", key), {{"batch", thousands(whole == 0 ? most : whole)},
                                            {"most", thousands(most)},
                                            {"card", card.name}});
  }

  std::string next_step() const {
    if (warned("option_default")) return say("fit.next.batch_number");
    if (warned("batch_unknown") || warned("batch_fixed") || warned("batch_without_effect"))
      return say("fit.next.batch_arg");
    const fit::CardAnswer* tight = nullptr;
    for (const fit::CardAnswer& gpu : view_.answer.cards)
      if (gpu.asked && !gpu.fits && (tight == nullptr || gpu.usable < tight->usable)) tight = &gpu;
    if (tight != nullptr) {
      if (tight->least_world && *tight->least_world != view_.answer.distributed.world)
        return say("fit.next.ranks",
                   {{"world", thousands(*tight->least_world)}, {"card", tight->name}});
      if (const size_t number = number_of_plan(view_, tight->name); number != 0)
        return say("fit.next.plan", {{"number", std::to_string(number)}, {"card", tight->name}});
      if (const std::string each = batch_for_each(); !each.empty())
        return say("fit.next.smaller_each", {{"list", each}});
      return smaller_batch(*tight);
    }
    if (view_.answer.cards.empty()) return say("fit.next.gpu");
    return {};
  }

  const FitView& view_;
  const fit::Prediction& prediction_;
};

}  // namespace

std::string fit_text(const FitView& view, const Style& style) {
  return FitPainter(view, style).paint();
}

}  // namespace cufit::report
