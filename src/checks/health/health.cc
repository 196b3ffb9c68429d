// SPDX-License-Identifier: Apache-2.0
#include "checks/health/health.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/format.h"
#include "base/number.h"
#include "checks/doctor.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/health/expectations.h"
#include "checks/health/looked_at.h"
#include "checks/health/xid_health.h"
#include "checks/report_sections.h"

namespace cufit::checks {
namespace {

constexpr std::string_view k_actions[] = {"ok", "watch", "drain", "reboot", "replace"};

size_t rank_of(std::string_view action) {
  return static_cast<size_t>(std::find(std::begin(k_actions), std::end(k_actions), action) -
                             std::begin(k_actions));
}

// Findings of these layers keep a GPU from working, whatever data/health.toml says of them.
bool below_programs(std::string_view layer) {
  for (const std::string_view one :
       {"hardware", "kernel-driver", "driver-runtime", "container", "wsl"})
    if (layer == one) return true;
  return false;
}

struct JudgedHealth {
  Finding finding;
  std::string rule, action;
};

class HealthJudge {
 public:
  HealthJudge(const Input& input, const HealthRules& rules, const std::vector<uint32_t>& gpus)
      : input_(input), rules_(rules), gpus_(gpus) {}

  HealthReport run() {
    for (Finding& one : doctor_findings()) of_doctor(std::move(one));
    for (RuleFinding& one : check_expectations(input_, rules_)) {
      std::string action = one.action.empty() ? action_of(one.rule) : one.action;
      take(std::move(one.finding), one.rule, std::move(action));
    }
    for (XidFinding& one : judge_xids(input_, rules_, gpus_))
      take(std::move(one.finding), "xid", std::move(one.action));
    asked_gpus();
    missing_facts();
    summarise();
    return std::move(report_);
  }

 private:
  // Xids are judged by their numbers, in xid_health.cc. Here they would stand for what follows from
  // them, such as a fabric manager that is down, and be passed over with it.
  std::vector<Finding> doctor_findings() const {
    facts::Facts now = input_.facts;
    now.kernel.xids.clear();
    return root_findings(make_input(now, input_.knowledge));
  }
  const knowledge::HealthRule* rule_of(std::string_view id) const {
    for (const knowledge::HealthRule& rule : input_.knowledge.health_rules)
      if (rule.id == id) return &rule;
    return nullptr;
  }
  std::string action_of(std::string_view rule) const {
    const knowledge::HealthRule* row = rule_of(rule);
    return row == nullptr ? "drain" : std::string(row->action);
  }

  const knowledge::HealthFinding* row_of(const Finding& finding) const {
    for (const knowledge::HealthFinding& row : input_.knowledge.health_findings)
      if (row.finding == finding.id && (row.variant.empty() || row.variant == finding.variant))
        return &row;
    return nullptr;
  }

  // Of a machine that is to have no GPU nothing is asked that a driver answers.
  bool wants_none() const { return rules_.gpus && *rules_.gpus == 0; }

  // Under a device cgroup (a job's step) the bus has GPUs that this process may not open.
  bool sees_part() const {
    for (const facts::DeviceNode& node : input_.facts.kernel.nodes)
      if (is_kept_from_this_job(input_.facts, node)) return true;
    return false;
  }

  void of_doctor(Finding finding) {
    if (wants_none()) return;
    if (finding.id == "gpu_missing_in_driver" && sees_part()) {
      note_missing("GPUs of other jobs", "their device nodes may not be opened here");
      return;
    }
    // That CUDA has none follows from the driver's having none, and the Xid says why it has not.
    if (finding.id == "no_cuda_device" && input_.facts.nvml.gpus.empty() && xid_counts()) return;
    if (const knowledge::HealthFinding* row = row_of(finding)) {
      if (row->as == "error" && finding.severity != Severity::unknown)
        finding.severity = Severity::error;
      // A note of doctor's that a rule is about is worth a warning here.
      if (finding.severity == Severity::note) finding.severity = Severity::warning;
      take(std::move(finding), std::string(row->rule), std::string(row->action));
      return;
    }
    const knowledge::FindingTexts* texts = input_.knowledge.find_texts(finding.id);
    // What doctor cannot tell without CUDA, which is not asked here, keeps nobody from telling.
    if (finding.severity == Severity::error && texts != nullptr && below_programs(texts->category))
      take(std::move(finding), "driver", "drain");
  }

  bool xid_counts() const {
    const std::vector<XidFinding> xids = judge_xids(input_, rules_, gpus_);
    return std::any_of(xids.begin(), xids.end(), [](const XidFinding& one) {
      return one.finding.severity == Severity::error;
    });
  }

  bool is_judged(const Finding& finding) const {
    if (gpus_.empty() || !starts_with(finding.subject, "GPU ")) return true;
    // "GPU 0000:41:00" is none of those that were asked for.
    const std::optional<uint64_t> index = parse_uint(std::string_view(finding.subject).substr(4));
    return index && std::find(gpus_.begin(), gpus_.end(), *index) != gpus_.end();
  }

  void take(Finding finding, const std::string& rule, std::string action) {
    if (!is_judged(finding)) return;
    const knowledge::HealthRule* row = rule_of(rule);
    const HealthLevel level = row == nullptr ? HealthLevel::error : level_of(rules_, *row);
    if (level == HealthLevel::off) return;
    if (level == HealthLevel::unknown && finding.severity != Severity::unknown) {
      finding.severity = Severity::unknown;
      if (finding.unknown_because.empty() && !finding.evidence.empty())
        finding.unknown_because = finding.evidence.front().value;
    }
    if (finding.severity == Severity::error && level == HealthLevel::warning)
      finding.severity = Severity::warning;
    // What a site calls an error is one, where doctor only warns.
    if (finding.severity == Severity::warning && row != nullptr && row->level != "error" &&
        std::find(rules_.errors.begin(), rules_.errors.end(), rule) != rules_.errors.end())
      finding.severity = Severity::error;
    judged_.push_back({std::move(finding), rule, std::move(action)});
  }

  void note_missing(std::string what, const std::string& why) {
    for (const HealthReport::Missing& known : report_.missing)
      if (known.what == what) return;
    report_.missing.push_back({std::move(what), why});
  }

  void missing_facts() {
    const facts::Facts& facts = input_.facts;
    if (!facts.kernel.log && failed(facts.kernel.log))
      note_missing("kernel log (Xid)", why_missing(facts.kernel.log));
    if (failed(facts.nvml.init_result)) note_missing("NVML", why_missing(facts.nvml.init_result));
    for (const GpuView& gpu : input_.gpus) {
      if (gpu.nvml == nullptr) continue;
      if (failed(gpu.nvml->ecc_uncorrected_volatile))
        note_missing("ECC counters", why_missing(gpu.nvml->ecc_uncorrected_volatile));
      if (failed(gpu.nvml->remap_failed))
        note_missing("row remapping", why_missing(gpu.nvml->remap_failed));
    }
    // The site's own question about Xids needs the log.
    if (asks_for(rules_, "xid") && failed(facts.kernel.log))
      take(cannot_tell("xid_seen", k_machine, why_missing(facts.kernel.log)), "xid", "drain");
  }

  // A GPU that was asked for and is not there passes no look.
  void asked_gpus() {
    const facts::NvmlFacts& nvml = input_.facts.nvml;
    if (!nvml.gpu_count && nvml.gpus.empty()) return;
    for (const uint32_t index : gpus_) {
      const bool there = std::any_of(nvml.gpus.begin(), nvml.gpus.end(),
                                     [&](const facts::NvmlGpu& gpu) { return gpu.index == index; });
      if (there) continue;
      // Slurm numbers instances in a row, beyond the GPUs: what such a number is cannot be told.
      if (has_instances()) {
        take(cannot_tell("gpu_not_listed", k_machine,
                         "a GPU is divided by MIG, and its instances have numbers of their own"),
             "gpu_count", "drain");
        continue;
      }
      Finding made = finding("gpu_not_listed", Severity::error, k_machine);
      const std::string have =
          std::to_string(nvml.gpu_count ? *nvml.gpu_count : nvml.gpus.size());
      made.args = {{"have", have},
                   {"gpu", index == k_no_such_gpu ? "a GPU" : "GPU " + std::to_string(index)}};
      made.evidence = {{"nvml", "nvmlDeviceGetCount", have}};
      take(std::move(made), "gpu_count", "drain");
    }
  }

  bool has_instances() const {
    return std::any_of(input_.facts.nvml.gpus.begin(), input_.facts.nvml.gpus.end(),
                       [](const facts::NvmlGpu& gpu) { return gpu.mig_current.value_or(false); });
  }

  bool is_gpu_judged(uint32_t index) const {
    return gpus_.empty() || std::find(gpus_.begin(), gpus_.end(), index) != gpus_.end();
  }

  void count_gpus() {
    bool one_kind = true;
    for (const facts::NvmlGpu& gpu : input_.facts.nvml.gpus) {
      if (gpu.state_code.value_or(0) != 0 || !gpu.name || !is_gpu_judged(gpu.index)) continue;
      if (report_.gpus > 0 && report_.gpu_name != *gpu.name) one_kind = false;
      report_.gpu_name = *gpu.name;
      ++report_.gpus;
    }
    if (!one_kind) report_.gpu_name.clear();
    report_.driver =
        input_.facts.kernel.version.value_or(input_.facts.nvml.driver_version.value_or(""));
  }

  void summarise() {
    count_gpus();
    bool error = false, unknown = false;
    for (const JudgedHealth& one : judged_) {
      error = error || one.finding.severity == Severity::error;
      unknown = unknown || one.finding.severity == Severity::unknown;
      const std::string_view action =
          one.finding.severity == Severity::error ? std::string_view(one.action) : "watch";
      // Of what nobody can tell, too: "ok" would be a word that nobody gave.
      if (rank_of(action) > rank_of(report_.action)) report_.action = action;
      if (one.finding.severity == Severity::unknown && report_.unknown_because.empty())
        report_.unknown_because = one.finding.unknown_because;
    }
    if (!error && !unknown && report_.gpus == 0 && !wants_none()) {
      unknown = true;
      report_.unknown_because = why_no_gpu();
      report_.action = "watch";
    }
    report_.usable = error ? Usable::no : unknown ? Usable::unknown : Usable::yes;
    rule_states();
    put_findings();
  }

  std::string why_no_gpu() const {
    const facts::NvmlFacts& nvml = input_.facts.nvml;
    if (!nvml.init_result) return why_missing(nvml.init_result);
    if (!nvml.library) return why_missing(nvml.library);
    return "NVML lists no GPU that is asked for";
  }

  void rule_states() {
    for (const knowledge::HealthRule& row : input_.knowledge.health_rules) {
      HealthReport::Rule rule;
      rule.id = row.id;
      rule.level = level_of(rules_, row);
      rule.source = row.source;
      for (const JudgedHealth& one : judged_)
        if (one.rule == row.id && seriousness(one.finding.severity) > seriousness(rule.state))
          rule.state = one.finding.severity;
      if (rule.state == Severity::ok && !was_looked_at(row.id, input_, gpus_))
        rule.state = Severity::unknown;
      report_.rules.push_back(std::move(rule));
    }
  }

  void put_findings() {
    // The first one gives the report's action its reason.
    std::stable_sort(judged_.begin(), judged_.end(), [](const auto& a, const auto& b) {
      if (a.finding.severity != b.finding.severity)
        return seriousness(a.finding.severity) > seriousness(b.finding.severity);
      return rank_of(a.action) > rank_of(b.action);
    });
    std::vector<Finding> all;
    for (JudgedHealth& one : judged_) all.push_back(std::move(one.finding));
    report_.findings = merge_equal_gpus(std::move(all), input_);
  }

  const Input& input_;
  const HealthRules& rules_;
  const std::vector<uint32_t>& gpus_;
  std::vector<JudgedHealth> judged_;
  HealthReport report_;
};

}  // namespace

HealthReport judge_health(const facts::Facts& facts, const knowledge::Knowledge& knowledge,
                          const HealthRules& rules, const std::vector<uint32_t>& gpus) {
  // An environment that lacks a driver is no fault of the machine.
  if (!facts.envs.empty()) {
    facts::Facts machine = facts;
    machine.envs.clear();
    return judge_health(machine, knowledge, rules, gpus);
  }
  const Input input = make_input(facts, knowledge);
  return HealthJudge(input, rules, gpus).run();
}

}  // namespace cufit::checks
