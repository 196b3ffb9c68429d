// SPDX-License-Identifier: Apache-2.0
#include "checks/doctor.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>

#include "checks/install/after_step.h"
#include "base/format.h"
#include "base/number.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/report_sections.h"
#include "checks/torch_env.h"

namespace cufit::checks {

namespace {

// All GPUs of one environment together: fine if all are, broken if none works, limited in between.
LinkState together(const std::vector<LinkState>& states) {
  if (states.empty()) return LinkState::unknown;
  auto all = [&](LinkState wanted) {
    return std::all_of(states.begin(), states.end(),
                       [&](LinkState state) { return state == wanted; });
  };
  auto any = [&](LinkState wanted) {
    return std::find(states.begin(), states.end(), wanted) != states.end();
  };
  if (all(LinkState::ok)) return LinkState::ok;
  if (all(LinkState::broken)) return LinkState::broken;
  if (any(LinkState::unknown) && !any(LinkState::broken)) return LinkState::unknown;
  return LinkState::limited;
}

LinkState judge(const Input& input, const Report& report) {
  const facts::PythonEnv* main = main_env(input.facts);
  std::vector<LinkState> states;
  for (const Chain& chain : report.chains)
    if (main == nullptr || chain.env == main->path) states.push_back(judge_chain(chain));
  return together(states);
}

// Among findings of one severity the lower layer first: it has to be mended first.
void order_by_layer(std::vector<Finding>& findings, const knowledge::Knowledge& knowledge) {
  static constexpr std::string_view k_layers[] = {
      "hardware",    "wsl",       "kernel-driver", "container", "driver-runtime", "environment",
      "torch-build", "libraries", "extension",     "multi-gpu", "build",          "application"};
  auto layer = [&](const Finding& finding) {
    const knowledge::FindingTexts* texts = knowledge.find_texts(finding.id);
    return std::find(std::begin(k_layers), std::end(k_layers), texts ? texts->category : "") -
           std::begin(k_layers);
  };
  // keep_root_causes has put equal severities together; each run is ordered by itself.
  for (auto run = findings.begin(); run != findings.end();) {
    auto end = std::find_if(run, findings.end(), [&](const Finding& finding) {
      return finding.severity != run->severity;
    });
    std::stable_sort(run, end,
                     [&](const Finding& a, const Finding& b) { return layer(a) < layer(b); });
    run = end;
  }
}

// "0-3,5" of ascending numbers.
std::string ranges_of(const std::vector<uint32_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    out += (out.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end > i) out += (end == i + 1 ? "," : "-") + std::to_string(numbers[end]);
    i = end + 1;
  }
  return out;
}

std::optional<uint32_t> gpu_of(const Finding& finding) {
  if (!starts_with(finding.subject, "GPU ")) return std::nullopt;
  const std::optional<uint64_t> index = parse_uint(std::string_view(finding.subject).substr(4));
  if (!index) return std::nullopt;
  return static_cast<uint32_t>(*index);
}

struct SameOnEach {
  Finding finding;
  std::vector<uint32_t> gpus;
  std::map<std::string, std::vector<std::string>> values;  // of the args that differ, distinct
};

// Eight GPUs with the same finding are one finding. Numbers that differ are listed; what names a
// single GPU says which ones.
void put_together(const SameOnEach& same, const Input& input, Finding& out) {
  out = same.finding;
  if (same.gpus.size() < 2) return;
  std::vector<std::string> indices;
  for (uint32_t gpu : same.gpus) indices.push_back(std::to_string(gpu));
  const std::string range = ranges_of(same.gpus);
  out.subject = "GPU " + range;
  for (const auto& [name, values] : same.values) out.args[name] = short_list(values, 4);
  std::string label = "GPU " + range;
  for (const GpuView& gpu : input.gpus)
    if (gpu.index == same.gpus.front())
      label += in_sentence(gpu).substr(std::string("GPU " + std::to_string(gpu.index)).size());
  out.args["gpu"] = label;
  if (out.args.count("index") > 0) out.args["index"] = join(indices, ",");
}

std::string name_of(const Input& input, uint32_t index) {
  for (const GpuView& gpu : input.gpus)
    if (gpu.index == index) return gpu.name;
  return {};
}

bool is_same(const SameOnEach& same, const Finding& finding, const Input& input) {
  const Finding& first = same.finding;
  return first.id == finding.id && first.variant == finding.variant &&
         first.severity == finding.severity && first.unknown_because == finding.unknown_because &&
         name_of(input, same.gpus.front()) == name_of(input, *gpu_of(finding));
}

std::vector<Finding> merge_equal_gpus(std::vector<Finding> findings, const Input& input) {
  std::vector<SameOnEach> groups;
  for (Finding& finding : findings) {
    const std::optional<uint32_t> gpu = gpu_of(finding);
    auto same = std::find_if(groups.begin(), groups.end(), [&](const SameOnEach& group) {
      return gpu && !group.gpus.empty() && is_same(group, finding, input);
    });
    if (same == groups.end()) {
      groups.push_back({std::move(finding), {}, {}});
      if (!gpu) continue;
      groups.back().gpus = {*gpu};
      for (const auto& [name, value] : groups.back().finding.args)
        groups.back().values[name] = {value};
      continue;
    }
    same->gpus.push_back(*gpu);
    for (const auto& [name, value] : finding.args) {
      std::vector<std::string>& values = same->values[name];
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    for (Evidence& one : finding.evidence) same->finding.evidence.push_back(std::move(one));
    for (std::string& id : finding.consequences)
      if (std::find(same->finding.consequences.begin(), same->finding.consequences.end(), id) ==
          same->finding.consequences.end())
        same->finding.consequences.push_back(std::move(id));
  }
  std::vector<Finding> out(groups.size());
  for (size_t i = 0; i < groups.size(); ++i) put_together(groups[i], input, out[i]);
  return out;
}

}  // namespace

namespace {

Report examine_once(const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  Input input = make_input(facts, knowledge);
  Report report;
  std::vector<Finding> all;
  for (const CheckRow& row : check_table()) {
    if (input.what_if && row.asks_machine) continue;
    for (Finding& finding : row.run(input)) all.push_back(std::move(finding));
  }
  all = causes_first(std::move(all));
  report.chains = build_chains(input, all);
  report.findings = keep_root_causes(std::move(all));
  order_by_layer(report.findings, knowledge);
  report.findings = merge_equal_gpus(std::move(report.findings), input);
  report.abilities = list_abilities(input);
  report.host_limits = list_host_limits(input);
  report.verdict = judge(input, report);
  return report;
}

bool finds(const Report& report, const Finding& wanted) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const Finding& one) {
    return one.id == wanted.id && one.subject == wanted.subject && one.severity == wanted.severity;
  });
}

}  // namespace

Report examine(const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  Report report = examine_once(facts, knowledge);
  // A step after which the engine says the same is none.
  for (Finding& one : report.findings)
    if (one.change && one.severity == Severity::error)
      one.step_fails =
          finds(examine_once(after_step(facts, *one.change, knowledge), knowledge), one);
  return report;
}

}  // namespace cufit::checks
