// SPDX-License-Identifier: Apache-2.0
// What trials of a quota proved, on a terminal: one line a way, then what was not tried.
#include <algorithm>

#include "base/format.h"
#include "report/quota.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/terminal_writer.h"
#include "report/terminal/width.h"

namespace cufit::report {
namespace {

constexpr int k_way_columns = 58;

class QuotaVerifyPainter : private TerminalWriter {
 public:
  QuotaVerifyPainter(const QuotaVerifyView& view, const Style& style)
      : TerminalWriter(view.knowledge, style), view_(view) {}

  std::string paint() {
    summary();
    for (const VerifiedGpu& gpu : view_.gpus) one_gpu(gpu);
    if (view_.gpus.empty())
      for (const resolve::Trial& trial : view_.trials)
        if (trial.proof != resolve::Proof::missing) one(trial);
    program();
    not_tried();
    steps();
    return finish();
  }

 private:
  size_t count(resolve::Proof proof) const {
    return static_cast<size_t>(
        std::count_if(view_.trials.begin(), view_.trials.end(),
                      [&](const resolve::Trial& trial) { return trial.proof == proof; }));
  }

  void summary() {
    const size_t missing = count(resolve::Proof::missing), tried = view_.trials.size() - missing;
    const bool holds = all_verified(view_);
    const bool small = std::any_of(
        view_.gpus.begin(), view_.gpus.end(),
        [](const VerifiedGpu& gpu) { return gpu.skipped == VerifiedGpu::Skipped::no_room; });
    const char* key = tried == 0 ? (small ? "quota.verify_small" : "quota.verify_nothing")
                      : holds    ? "quota.verify_holds"
                                 : "quota.verify_fails";
    flow(say(key, {{"tried", thousands(tried)},
                   {"held", thousands(count(resolve::Proof::holds))},
                   {"gpus", thousands(view_.gpus.size())}}),
         "", "  ", holds ? "1;32" : "1;31");
  }

  // A GPU and its trials; what is not here is told once, at the end.
  void one_gpu(const VerifiedGpu& gpu) {
    using Skipped = VerifiedGpu::Skipped;
    std::map<std::string, std::string> args{
        {"gpu", printable(format("GPU {} {}", gpu.number, gpu.name))},
        {"limit", gib(gpu.limit_bytes.value_or(0))},
        {"room", gib(gpu.room_bytes)},
        {"below", gib(gpu.sizes.below)},
        {"above", gib(gpu.sizes.above)}};
    flow(say(gpu.skipped == Skipped::no         ? "quota.verify_gpu"
             : gpu.skipped == Skipped::no_limit ? "quota.verify_no_limit"
                                                : "quota.verify_no_room",
             args),
         "", "  ", gpu.skipped == Skipped::no ? "" : "33");
    for (const resolve::Trial& trial : view_.trials)
      if (trial.gpu == gpu.number && trial.proof != resolve::Proof::missing) one(trial);
  }

  std::string way_name(const resolve::TrialWay& way) const {
    const std::string name = say("quota.way." + way.way);
    if (way.way == "devices") return name;
    if (way.way == "runtime") return name + " (" + way.route + ")";
    if (way.way == "torch")
      return name + " (" + (way.route.empty() ? say("quota.route.plain") : way.route) + ")";
    return name + " " + say("quota.route." + way.route);
  }

  void one(const resolve::Trial& trial) {
    const bool holds = trial.proof == resolve::Proof::holds;
    std::string text = pad(way_name(trial.way), k_way_columns) + "  " +
                       say(trial.proof == resolve::Proof::failed && trial.answer.phase == "done"
                               ? std::string("quota.proof.failed_cuda")
                               : format("quota.proof.{}", resolve::to_string(trial.proof)),
                           {{"call", printable(trial.answer.phase)},
                            {"code", std::to_string(trial.answer.below)}});
    if (!holds && !trial.answer.note.empty()) text += ": " + printable(trial.answer.note);
    // Only what went through the limit, or was refused below it, is a failure; the rest is not known.
    const bool fails =
        trial.proof == resolve::Proof::leaks || trial.proof == resolve::Proof::blocks;
    const std::string sign = holds   ? coloured("  ✓ ", "32")
                             : fails ? coloured("  ✗ ", "31")
                                     : coloured("  ? ", "33");
    out_ += sign + text + "\n";
  }

  void program() {
    if (!view_.command) return;
    flow(say("quota.verify_command", {{"code", std::to_string(view_.command->code)},
                                      {"peak", gib(view_.command->peak_bytes)},
                                      {"refusals", thousands(view_.command->refusals)}}),
         "", "  ", view_.command->went_over ? "31" : "");
  }

  // What this machine could not be asked, then what no trial covers.
  void not_tried() {
    out_ += "\n";
    std::vector<std::string> names;
    std::string torch_note;
    bool torch = false;
    for (const resolve::Trial& trial : view_.trials) {
      const bool missing = trial.proof == resolve::Proof::missing;
      if (trial.way.way == "torch") {
        torch = torch || !missing;
        if (missing) torch_note = trial.answer.note;
      } else if (missing && trial.way.way != "devices") {
        const std::string name = way_name(trial.way);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
    if (!names.empty())
      flow(say("quota.verify_missing", {{"ways", join(names, say("quota.semicolon"))}}), "", "  ");
    if (!torch && torch_note.empty()) flow(say("quota.verify_no_torch"), "", "  ");
    if (!torch && !torch_note.empty())
      flow(say("quota.verify_bad_torch", {{"why", printable(torch_note)}}), "", "  ");
    if (view_.others > 0)
      flow(say("quota.verify_others", {{"count", thousands(view_.others)}}), "", "  ");
    flow(say("quota.verify_uncovered"), "", "  ");
  }

  void steps() {
    if (count(resolve::Proof::leaks) + count(resolve::Proof::blocks) > 0)
      next({{true, "cufit quota plan"}});
    else if (count(resolve::Proof::no_room) + count(resolve::Proof::unproved) > 0)
      next({{true, "nvidia-smi --query-compute-apps=pid,used_memory,name --format=csv"}});
    else if (!resolve::all_hold(view_.trials))
      next({{true, "cufit doctor"}});
  }

  const QuotaVerifyView& view_;
};

}  // namespace

bool all_verified(const QuotaVerifyView& view) {
  return resolve::all_hold(view.trials) && !(view.command && view.command->went_over);
}

std::string quota_verify_text(const QuotaVerifyView& view, const Style& style) {
  return QuotaVerifyPainter(view, style).paint();
}

}  // namespace cufit::report
