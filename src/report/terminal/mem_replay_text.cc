// SPDX-License-Identifier: Apache-2.0
// mem replay's answer on a terminal: what was recorded and how exactly the model repeats it, one
// row for each settings string, the one next step.
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "report/mem_replay.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_settings_columns = 30;  // longer ones have a line of their own
constexpr int k_narrow = 96;            // below this the counts of calls are left out

class ReplayPainter : private TerminalWriter {
 public:
  ReplayPainter(const MemReplayView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view), verified_(view.verified) {}

  std::string paint() {
    recorded();
    table();
    notes();
    next(cut_commands(next_step()));
    return finish();
  }

 private:
  std::string settings_name(const std::string& settings) const {
    return settings.empty() ? say("mem.default") : printable(settings);
  }

  // "event 4,428, step 1"
  std::string where(uint64_t event) const {
    const std::optional<uint32_t> step = view_.steps.at(static_cast<uint32_t>(event));
    return say(step ? "mem.at_step" : "mem.at_event",
               {{"event", thousands(event)}, {"step", step ? thousands(*step) : ""}});
  }

  void recorded() {
    const memory::Verification& check = verified_.verification;
    flow(say("mem.recorded",
             {{"file", printable(view_.file)},
              {"device", std::to_string(verified_.device)},
              {"events", thousands(verified_.event_count())},
              {"settings", recorded_settings_words(verified_, knowledge_, style_.lang)}}),
         "", "  ", "1");
    flow(say("mem.peaks", {{"allocated", gib(verified_.peak_allocated)},
                           {"reserved", gib(verified_.peak_reserved)}}),
         "  ", "  ");
    const std::map<std::string, std::string> counts = {
        {"matched", thousands(check.segment_events_matched)},
        {"all", thousands(check.segment_events)},
        {"same", thousands(check.addresses_matched)},
        {"blocks", thousands(check.allocations)},
        {"event", thousands(check.first_difference.value_or(0))}};
    flow(say(check.exact() ? "mem.exact" : "mem.inexact", counts), "  ", "  ",
         check.exact() ? "" : "33");
    if (!verified_.program->initial.empty()) flow(say("mem.began_late"), "  ", "  ");
    if (verified_.limit)
      flow(say(verified_.limit->card_full ? "mem.died_full" : "mem.died_limit",
               {{"where", where(check.result.oom->event)},
                {"tried", gib(check.result.oom->tried)},
                {"least", gib(verified_.limit->at_least)},
                {"below", gib(verified_.limit->below)}}),
           "  ", "  ");
    const memory::Question& first = view_.answers[0].question;
    if (verified_.met_limit && !first.allowed && !first.capacity)
      flow(met_limit_words(verified_, knowledge_, style_.lang), "  ", "  ");
    if (!view_.card.empty())
      flow(say(view_.card_measured ? "mem.card" : "mem.card_nominal",
               {{"card", view_.card},
                {"usable", gib(view_.answers[0].question.capacity.value_or(0))}}),
           "  ", "  ");
  }

  void table() {
    const bool narrow = width_ < k_narrow;
    int first = columns(say("mem.column.settings"));
    for (const memory::Answer& answer : view_.answers)
      first = std::max(first, columns(settings_name(answer.question.settings)));
    first = std::min(first, k_settings_columns);
    std::string head = "  " + pad(say("mem.column.settings"), first);
    const auto column = [&](const char* key, int width) {
      head += "  " + right(say(format("mem.column.{}", key)), width);
    };
    column("allocated", k_size);
    column("reserved", k_size);
    if (!narrow) {
      column("segments", k_count);
      column("calls", k_count);
      column("retries", k_count);
    }
    out_ += "\n" + coloured(head + "  " + say("mem.column.outcome"), "1") + "\n";
    for (const memory::Answer& answer : view_.answers) row(answer, first, narrow);
  }

  void row(const memory::Answer& answer, int first, bool narrow) {
    const memory::DeviceStats& stats = answer.result.stats;
    std::string name = settings_name(answer.question.settings);
    if (columns(name) > first) {
      out_ += "  " + name + "\n";
      name.clear();
    }
    std::string line = "  " + pad(name, first);
    line += "  " + right(gib(stats.allocated_bytes.peak), k_size);
    line += "  " + right(gib(stats.reserved_bytes.peak), k_size);
    if (!narrow) {
      line += "  " + right(thousands(stats.segments.peak), k_count);
      line += "  " + right(thousands(stats.cuda_mallocs + stats.maps), k_count);
      line += "  " + right(thousands(stats.num_alloc_retries), k_count);
    }
    const std::optional<memory::OutOfMemory>& oom = answer.result.oom;
    std::string outcome = say(verified_.limit && !bounded() ? "mem.no_limit" : "mem.survives");
    if (oom) outcome = say("mem.dies", {{"where", where(oom->event)}, {"tried", gib(oom->tried)}});
    if (!answer.result.replay_limitations.empty()) outcome += " " + say("mem.not_exact");
    out_ += line + "  " + coloured(outcome, oom ? "31" : "32") + "\n";
    if (!oom || !style_.verbose) return;
    flow(say("mem.oom_detail", {{"requested", gib(oom->requested)},
                                {"allocated", gib(oom->allocated)},
                                {"reserved", gib(oom->reserved)},
                                {"free", gib(oom->largest_free_in_pool)}}),
         "      ", "      ");
  }

  void notes() {
    std::vector<std::string> reasons;
    for (const memory::Answer& answer : view_.answers)
      for (const std::string& reason : answer.result.replay_limitations)
        if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
          reasons.push_back(reason);
    if (!reasons.empty()) out_ += "\n";
    for (const std::string& reason : reasons) {
      const std::string key = "mem.not_modelled." + reason;
      const std::string text = say(key);
      labelled(say("mem.not_exact") + say("colon"), text == key ? printable(reason) : text);
    }
    out_ += "\n";
  }

  // The first settings of a ranked list that do better than the recorded ones.
  const memory::Answer* best() const {
    const memory::Answer* found = nullptr;
    for (const memory::Answer& answer : view_.answers) {
      const auto& reasons = answer.result.replay_limitations;
      const bool faked =
          std::find(reasons.begin(), reasons.end(), "cuda_malloc_async") != reasons.end();
      if (found == nullptr || (!faked && memory::better(answer, *found))) found = &answer;
    }
    return found;
  }

  bool bounded() const {
    return view_.answers[0].question.allowed || view_.answers[0].question.capacity;
  }

  const memory::Answer* as_recorded() const {
    for (const memory::Answer& answer : view_.answers)
      if (answer.question.settings == verified_.settings) return &answer;
    return nullptr;
  }

  // A change of settings is worth its trouble where it saves the run or a noticeable part.
  bool worth_it(const memory::Answer& answer) const {
    const memory::Answer* recorded = as_recorded();
    if (recorded == nullptr || !recorded->survives()) return true;
    const uint64_t before = recorded->result.stats.reserved_bytes.peak;
    return answer.result.stats.reserved_bytes.peak <= before - before / 32;
  }

  std::string next_step() const {
    const memory::Answer* answer = best();
    std::map<std::string, std::string> args = {{"file", file_word()}, {"bounds", bounds_text()}};
    if (verified_.limit && !bounded()) {
      // Rounded up to the next 0.001: rounded down it would be less than what it had.
      const double least = double(verified_.limit->at_least) / double(1u << 30);
      args["limit"] = format("{:.3f}", least + 0.0005);
      return say(verified_.limit->card_full ? "mem.next.limit_full" : "mem.next.limit", args);
    }
    if (view_.answers.size() == 1) return say("mem.next.all", args);
    if (!answer->survives()) return say("mem.next.none_survives", args);
    if (!verified_.verification.exact()) return say("mem.next.estimate", args);
    if (answer->question.settings == verified_.settings || !worth_it(*answer))
      return say("mem.next.keep");
    if (answer->question.settings.empty()) return say("mem.next.unset");
    args["settings"] = printable(shell_word(answer->question.settings));
    return say("mem.next.set", args);
  }

  // As it stands in a command, with the device where the default would be another.
  std::string file_word() const {
    std::string out = printable(shell_word(view_.file));
    if (view_.device_named) out += format(" --device {}", verified_.device);
    return out;
  }

  std::string bounds_text() const {
    const memory::Question& question = view_.answers[0].question;
    std::string out;
    if (question.allowed)
      out += format(" --limit {:.3f}", double(*question.allowed) / double(1u << 30));
    if (!view_.card.empty()) out += format(" --gpu \"{}\"", view_.card);
    return out;
  }

  static constexpr int k_size = 10, k_count = 9;
  const MemReplayView& view_;
  const memory::VerifiedRecording& verified_;
};

}  // namespace

std::string mem_replay_text(const MemReplayView& view, const Style& style) {
  return ReplayPainter(view, style).paint();
}

}  // namespace cufit::report
