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
    const bool holds = resolve::all_hold(view_.trials) && !went_over(view_);
    const char* key = tried == 0 ? "quota.verify_nothing"
                      : holds    ? "quota.verify_holds"
                                 : "quota.verify_fails";
    flow(say(key, {{"limit", gib(view_.limit_bytes)},
                   {"tried", thousands(tried)},
                   {"held", thousands(count(resolve::Proof::holds))}}),
         "", "  ", holds ? "1;32" : "1;31");
    if (tried == 0) return;
    const resolve::TrialSizes sizes = resolve::trial_sizes(view_.limit_bytes);
    flow(say("quota.verify_sizes", {{"below", gib(sizes.below)}, {"above", gib(sizes.above)}}),
         "  ", "  ");
  }

  std::string way_name(const resolve::TrialWay& way) const {
    const std::string name = say("quota.way." + way.way);
    if (way.way == "runtime") return name + " (" + way.route + ")";
    if (way.way == "torch")
      return name + " (" + (way.route.empty() ? say("quota.route.plain") : way.route) + ")";
    return name + " " + say("quota.route." + way.route);
  }

  void one(const resolve::Trial& trial) {
    const bool holds = trial.proof == resolve::Proof::holds;
    std::string text =
        pad(way_name(trial.way), k_way_columns) + "  " +
        say(format("quota.proof.{}", resolve::to_string(trial.proof)),
            {{"call", printable(trial.facts.phase)}, {"code", std::to_string(trial.facts.below)}});
    if (!holds && !trial.facts.note.empty()) text += ": " + printable(trial.facts.note);
    out_ += (holds ? coloured("  ✓ ", "32") : coloured("  ✗ ", "31")) + text + "\n";
  }

  void program() {
    if (!view_.command_code) return;
    uint64_t peak = 0, refusals = 0;
    for (const formats::QuotaDevice& device : view_.after.devices) {
      peak = std::max(peak, device.peak_bytes);
      refusals += device.refusals;
    }
    flow(say("quota.verify_command", {{"code", std::to_string(*view_.command_code)},
                                      {"peak", gib(peak)},
                                      {"refusals", thousands(refusals)}}),
         "", "  ", went_over(view_) ? "31" : "");
  }

  // What this machine could not be asked, then what no trial covers.
  void not_tried() {
    out_ += "\n";
    std::vector<std::string> names;
    for (const resolve::Trial& trial : view_.trials)
      if (trial.proof == resolve::Proof::missing) names.push_back(way_name(trial.way));
    if (!names.empty())
      flow(say("quota.verify_missing", {{"ways", join(names, say("quota.semicolon"))}}), "", "  ");
    const bool torch =
        std::any_of(view_.trials.begin(), view_.trials.end(), [](const resolve::Trial& trial) {
          return trial.way.way == "torch" && trial.proof != resolve::Proof::missing;
        });
    if (!torch) flow(say("quota.verify_no_torch"), "", "  ");
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

bool went_over(const QuotaVerifyView& view) {
  return view.command_code && std::any_of(view.after.devices.begin(), view.after.devices.end(),
                                          [](const formats::QuotaDevice& device) {
                                            return device.limit_bytes != formats::k_no_quota &&
                                                   device.peak_bytes > device.limit_bytes;
                                          });
}

std::string quota_verify_text(const QuotaVerifyView& view, const Style& style) {
  return QuotaVerifyPainter(view, style).paint();
}

}  // namespace cufit::report
