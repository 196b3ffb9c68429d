// SPDX-License-Identifier: Apache-2.0
// mem explain's answer on a terminal: the cause and how sure it is, the numbers that say so, the
// one next step; what held the memory, by what and by whom; the steps; what replay says would help.
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/terminal/state_symbols.h"
#include "report/mem_explain.h"
#include "report/terminal/mem_explain_words.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

using analysis::Advice;
using analysis::Cause;
using analysis::Confidence;
using analysis::Instant;

constexpr size_t k_mem_explain_text_places_shown = 6, k_mem_explain_text_evidence_shown = 3;
constexpr int k_size_columns = 10;

LinkState state_of_cause(Confidence confidence) {
  return confidence == Confidence::certain  ? LinkState::broken
         : confidence == Confidence::likely ? LinkState::limited
                                            : LinkState::unknown;
}

class MemExplainPainter : private TerminalWriter {
 public:
  MemExplainPainter(const MemExplainView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), diagnosis_(view.diagnosis) {}

  std::string paint() {
    if (diagnosis_.causes.empty()) {
      no_cause();
    } else {
      cause(diagnosis_.causes[0]);
    }
    held();
    places();
    steps();
    advice();
    also();
    notes();
    return finish();
  }

 private:
  std::string words(const std::string& key,
                    const std::map<std::string, std::string>& args = {}) const {
    return say("mem.explain." + key, args);
  }
  std::string text_of(const Cause& cause, const char* part, std::string_view lang) const {
    return mem_cause_text(cause, part, lang, knowledge_);
  }
  std::string settings_name(const std::string& settings) const {
    return settings.empty() ? say("mem.default") : printable(settings);
  }
  std::string confidence(const Cause& cause) const {
    return std::string(knowledge_.message(
        std::string("explain.confidence.") + to_string(cause.confidence), style_.lang));
  }

  void source() {
    flow(words("source",
               {{"file", printable(view_.file)},
                {"device", std::to_string(view_.verified.device)},
                {"events", thousands(view_.verified.event_count())},
                {"settings", recorded_settings_words(view_.verified, knowledge_, style_.lang)}}),
         "  ", "  ", "2");
    remarks(source_remarks(view_, style_.lang));
  }

  void remarks(const std::vector<Remark>& remarks) {
    for (const Remark& remark : remarks) flow(remark.text, "  ", "  ", remark.warns ? "33" : "2");
  }

  void title(const std::string& text, LinkState state, const std::string& before) {
    const std::string left = std::string(mark(state)) + " " + before;
    flow_at(text, coloured(left, std::string("1;") + colour_of(state)), columns(left), "  ", "1");
  }

  void cause(const Cause& cause) {
    title(text_of(cause, "title", style_.lang), state_of_cause(cause.confidence),
          confidence(cause) + say("colon"));
    source();
    const size_t shown = style_.verbose ? cause.evidence.size() : k_mem_explain_text_evidence_shown;
    for (size_t i = 0; i < cause.evidence.size() && i < shown; ++i)
      flow(evidence_words(cause.evidence[i], style_.lang, knowledge_), "  - ", "    ");
    remarks(end_remarks(view_, style_.lang));
    if (style_.verbose) part("why", text_of(cause, "why", style_.lang));
    next(next_pieces(text_of(cause, "next", style_.lang), text_of(cause, "next", "en"),
                     text_of(cause, "next", "zh")));
    if (style_.verbose && cause.confidence != Confidence::certain)
      labelled(std::string(knowledge_.message("explain.decide", style_.lang)) + say("colon"),
               text_of(cause, "decide", style_.lang));
  }

  // The settings that save most, if that is worth a word: a twentieth of what was reserved.
  const Advice* best_saving() const {
    const Advice* best = nullptr;
    for (const Advice& one : diagnosis_.advice) {
      if (one.remedy != analysis::Remedy::settings || one.saved_bytes <= 0) continue;
      if (best == nullptr || one.saved_bytes > best->saved_bytes) best = &one;
    }
    const auto least = static_cast<int64_t>(diagnosis_.peak_reserved_bytes / 20);
    return best != nullptr && best->saved_bytes >= least ? best : nullptr;
  }

  void no_cause() {
    if (diagnosis_.oom) {
      title(words("unexplained"), LinkState::unknown, "");
      source();
      const analysis::OomInstant& oom = *diagnosis_.oom;
      flow(words(oom.device_free ? "numbers" : "numbers_unknown",
                 {{"tried", gib(oom.request.tried)},
                  {"reserved", gib(oom.instant.moment.reserved_bytes)},
                  {"free", gib(oom.device_free.value_or(0))}}),
           "  - ", "    ");
      remarks(end_remarks(view_, style_.lang));
      next(cut_commands(words("next_unexplained", {{"file", printable(shell_word(view_.file))}})));
      return;
    }
    const bool trend = diagnosis_.history.trend != analysis::Trend::unknown;
    title(words(trend ? "lived" : "lived_unknown"), LinkState::ok, "");
    source();
    remarks(end_remarks(view_, style_.lang));
    const Advice* best = best_saving();
    const double reserved = double(diagnosis_.peak_reserved_bytes) / double(1u << 30);
    if (best != nullptr && !best->settings.empty()) {
      const bool estimated = !view_.verified.verification.exact() ||
                             !best->replay_limitations.empty() ||
                             !diagnosis_.advice[0].replay_limitations.empty();
      next(cut_commands(words(estimated ? "next_try" : "next_set",
                              {{"settings", printable(shell_word(best->settings))}})));
    } else {
      next(cut_commands(words("next_none", {{"file", printable(shell_word(view_.file))},
                                            {"limit", format("{:.2f}", reserved * 0.9)}})));
    }
  }

  std::string step_words(const Instant& instant) const {
    if (const auto after = step_before_evaluation(diagnosis_, instant))
      return words("after_step", {{"step", std::to_string(*after)}});
    if (instant.step) return words("in_step", {{"step", std::to_string(*instant.step)}});
    return diagnosis_.steps.known() ? words("in_setup") : "";
  }

  const Instant& shown_instant() const {
    return diagnosis_.oom ? diagnosis_.oom->instant : diagnosis_.peak;
  }

  void held() {
    const Instant& instant = shown_instant();
    std::map<std::string, std::string> args = {{"event", thousands(instant.moment.event)},
                                               {"step", step_words(instant)}};
    if (diagnosis_.oom) args["tried"] = gib(diagnosis_.oom->request.tried);
    heading(words(diagnosis_.oom ? "at_oom" : "at_peak", args));
    const analysis::Moment& at = instant.moment;
    // Two sizes of one request are only worth a word where they look different.
    if (diagnosis_.oom &&
        gib(diagnosis_.oom->request.tried) != gib(diagnosis_.oom->request.rounded))
      flow(words("segment", {{"request", gib(diagnosis_.oom->request.rounded)},
                             {"segment", gib(diagnosis_.oom->request.tried)}}),
           "  ", "  ");
    flow(words("totals", {{"allocated", gib(at.allocated_bytes)},
                          {"reserved", gib(at.reserved_bytes)},
                          {"peak", gib(diagnosis_.peak_reserved_bytes)}}),
         "  ", "  ");
    std::vector<std::pair<std::string, uint64_t>> rows;
    for (size_t i = 0; i < analysis::k_categories; ++i)
      rows.emplace_back(to_string(static_cast<analysis::Category>(i)), instant.by_category[i]);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    rows.emplace_back("pending", at.pending_bytes);
    rows.emplace_back("cached", at.cached_bytes());
    int width = 0;
    for (const auto& row : rows)
      if (row.second != 0) width = std::max(width, columns(say("mem.category." + row.first)));
    for (const auto& [name, size] : rows) {
      if (size == 0) continue;
      out_ +=
          "  " + pad(say("mem.category." + name), width) + "  " + right(gib(size), k_size_columns);
      // Shares of a trace that contradicts itself would say nothing.
      if (at.fits() && at.reserved_bytes > 0)
        out_ +=
            "  " + right(format("{:.1f} %", 100.0 * double(size) / double(at.reserved_bytes)), 7);
      out_ += "\n";
    }
    if (diagnosis_.highest_pending_bytes > diagnosis_.peak_reserved_bytes / 20)
      flow(words("pending", {{"pending", gib(diagnosis_.highest_pending_bytes)}}), "  ", "  ");
    // At the end only what the request could have used counts.
    const uint64_t largest =
        diagnosis_.oom ? diagnosis_.oom->request.largest_free_in_pool : at.largest_free_bytes;
    flow(
        words(diagnosis_.oom ? "cached_at_oom" : "cached", {{"cached", gib(at.cached_bytes())},
                                                            {"split", gib(at.inactive_split_bytes)},
                                                            {"largest", gib(largest)}}),
        "  ", "  ", "2");
  }

  std::string place_words(const analysis::Place& place) const {
    if (place.frame == analysis::k_no_frame) return words("no_frame");
    if (place.frame == analysis::k_not_python) return words("not_python");
    const std::string at = frame_text(view_.snapshot, place.frame);
    if (place.caller == analysis::k_no_frame) return at;
    return words("place", {{"place", at}, {"caller", frame_text(view_.snapshot, place.caller)}});
  }

  void list(const std::vector<analysis::Site>& sites) {
    const size_t shown =
        style_.verbose ? sites.size() : std::min(sites.size(), k_mem_explain_text_places_shown);
    for (size_t i = 0; i < shown; ++i) {
      const std::string left = "  " + right(gib(sites[i].bytes), k_size_columns) + "  ";
      flow_at(place_words(sites[i].place), left, columns(left), blanks(columns(left)));
    }
    if (shown < sites.size())
      flow(say("part.more", {{"count", std::to_string(sites.size() - shown)}}), "  ", "  ", "2");
  }

  void places() {
    const std::vector<analysis::Site>& sites = shown_instant().by_frame;
    heading(words("places"));
    if (sites.empty() || (sites.size() == 1 && sites[0].place.frame == analysis::k_no_frame)) {
      flow(words("no_stacks"), "  ", "  ", "2");
      return;
    }
    if (diagnosis_.oom && diagnosis_.oom->place.frame < analysis::k_not_python)
      flow(words("asked_by", {{"place", place_words(diagnosis_.oom->place)}}), "  ", "    ");
    list(sites);
    if (diagnosis_.growing.empty()) return;
    heading(words("grown_places"));
    list(diagnosis_.growing);
  }

  void steps() {
    heading(words("steps"));
    const analysis::History& history = diagnosis_.history;
    if (!diagnosis_.steps.known()) return flow(words("steps_unknown"), "  ", "  ");
    if (diagnosis_.steps.finished == 0 || history.steps.empty())
      return flow(words("steps_none"), "  ", "  ");
    // What evaluates after the last step is none.
    const auto end =
        history.steps.end() - (diagnosis_.evaluates && history.steps.size() > 1 ? 1 : 0);
    const auto highest =
        std::max_element(history.steps.begin(), end,
                         [](const auto& a, const auto& b) { return a.peak_bytes < b.peak_bytes; });
    flow(words("steps_known", {{"count", std::to_string(diagnosis_.steps.finished)},
                               {"trend", say(std::string("mem.trend.") + to_string(history.trend))},
                               {"usual", gib(history.usual_peak_bytes)},
                               {"highest", gib(highest->peak_bytes)},
                               {"step", std::to_string(highest->step)}}),
         "  ", "  ");
    if (history.trend == analysis::Trend::growing)
      flow(words("growth", {{"per_step", gib(history.growth_per_step_bytes)},
                            {"growth", gib(history.growth_bytes)}}),
           "  ", "  ");
  }

  void advice() {
    if (diagnosis_.advice.size() < 2) return;
    heading(words("help"));
    if (!diagnosis_.causes.empty() && diagnosis_.causes[0].id == "runaway_request")
      return flow(words("no_settings"), "  ", "  ");
    for (size_t i = 0; i < diagnosis_.advice.size(); ++i)
      flow(advice_words(view_, i, style_.lang), "  - ", "    ");
  }

  void also() {
    if (diagnosis_.causes.size() < 2) return;
    heading(words("also"));
    for (size_t i = 1; i < diagnosis_.causes.size(); ++i) {
      const Cause& one = diagnosis_.causes[i];
      const std::string left = "  " + std::string(mark(state_of_cause(one.confidence))) + " " +
                               confidence(one) + say("colon");
      std::string text = text_of(one, "title", style_.lang);
      if (!one.evidence.empty())
        text += say("semicolon") + evidence_words(one.evidence[0], style_.lang, knowledge_);
      flow_at(text, coloured(left, colour_of(state_of_cause(one.confidence))), columns(left),
              "    ");
    }
  }

  void notes() {
    if (!diagnosis_.replay_limitations.empty() && diagnosis_.causes.size() > 1) out_ += "\n";
    for (const std::string& reason : diagnosis_.replay_limitations) {
      const std::string key = "mem.not_modelled." + reason;
      const std::string text = say(key);
      labelled(say("mem.not_exact") + say("colon"), text == key ? printable(reason) : text);
    }
  }

  const MemExplainView& view_;
  const analysis::Diagnosis& diagnosis_;
};

}  // namespace

std::string mem_explain_text(const MemExplainView& view, const Style& style) {
  return MemExplainPainter(view, style).paint();
}

}  // namespace cufit::report
