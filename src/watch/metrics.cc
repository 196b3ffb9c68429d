// SPDX-License-Identifier: Apache-2.0
#include "watch/metrics.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/path.h"
#include "formats/prose/printable.h"
#include "watch/metric_table.h"

namespace cufit::watch {
namespace {

constexpr size_t k_most_domains = 256, k_most_label = 96;

// "team-a" of --share, else the launch's file without its ending.
std::string name_of(const facts::LiveDomain& domain) {
  if (!domain.domain.name.empty()) return domain.domain.name;
  const std::string_view file = file_name(domain.path);
  return std::string(file.substr(0, file.rfind('.')));
}

void add_quotas(const WatchedMachine& machine, const MachineState& state, MetricTable& table) {
  size_t count = 0;
  std::map<std::string, size_t> names;
  for (const facts::LiveDomain& domain : state.quotas.domains) ++names[name_of(domain)];
  for (const facts::LiveDomain& domain : state.quotas.domains) {
    if (++count > k_most_domains) return;
    for (const formats::QuotaDevice& device : domain.domain.devices) {
      // Two users may have a domain of one name each.
      std::string name = name_of(domain);
      if (names[name] > 1) name += format("@{}", domain.owner);
      MetricLabels labels{{"quota", std::move(name)}, {"gpu", ""}, {"uuid", device.uuid}};
      for (const WatchedGpu& gpu : machine.gpus)
        if (gpu.now.uuid == device.uuid) labels[1].second = std::to_string(gpu.now.index);
      const auto add = [&](std::string_view metric, uint64_t value) {
        table.add(metric, labels, static_cast<double>(value));
      };
      if (device.limit_bytes != formats::k_no_quota)
        add("cufit_quota_limit_bytes", device.limit_bytes);
      add("cufit_quota_used_bytes", device.used_bytes);
      add("cufit_quota_peak_bytes", device.peak_bytes);
      add("cufit_quota_refusals_total", device.refusals);
      add("cufit_host_spill_bytes", device.spilled_bytes);
    }
  }
}

void add_machine(const WatchedMachine& machine, const MachineState& state, double now,
                 MetricTable& table) {
  const bool answered = machine.time > 0;
  if (answered) {
    const auto cards =
        std::count_if(machine.gpus.begin(), machine.gpus.end(),
                      [](const WatchedGpu& gpu) { return gpu.now.parent_uuid.empty(); });
    table.add("cufit_gpus", {}, static_cast<double>(cards));
    table.add("cufit_sample_age_seconds", {}, std::max(0.0, now - machine.time));
  }
  table.add("cufit_gpus_on_bus", {}, as_number(state.gpus_on_bus));
  if (!state.kernel_driver.empty() || !state.library_version.empty())
    table.add("cufit_driver_info",
              {{"kernel", state.kernel_driver}, {"library", state.library_version}}, 1);
  if (!state.kernel_driver.empty() && !state.library_version.empty())
    table.add("cufit_driver_mismatch", {}, state.kernel_driver != state.library_version ? 1 : 0);
  table.add("cufit_driver_stalled", {}, machine.stalled_seconds ? 1 : 0);
  table.add("cufit_driver_stalled_seconds", {}, machine.stalled_seconds.value_or(0));
}

}  // namespace

std::string_view MetricPoint::label(std::string_view name) const {
  for (const auto& [label, text] : labels)
    if (label == name) return text;
  return {};
}

MetricTable::MetricTable(const knowledge::Knowledge& knowledge) {
  families_.reserve(knowledge.metrics.size());
  for (const knowledge::MetricRow& row : knowledge.metrics) families_.push_back({&row, {}});
}

void MetricTable::add(std::string_view name, MetricLabels labels, std::optional<double> value) {
  if (!value) return;
  const auto family =
      std::find_if(families_.begin(), families_.end(),
                   [&](const MetricFamily& one) { return one.metric->name == name; });
  if (family == families_.end()) return;
  std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
  // A page with a letter that is none is refused as a whole.
  for (auto& [label, text] : labels) text = formats::printable(text, k_most_label);
  family->points.push_back({std::move(labels), *value});
}

// Two series of one name and labels make a page that is refused as a whole: the driver may list a process twice.
std::vector<MetricFamily> MetricTable::take() {
  for (MetricFamily& family : families_) {
    std::set<std::string> seen;
    std::erase_if(family.points, [&](const MetricPoint& point) {
      std::string key;
      for (const auto& [label, text] : point.labels) key += format("{}={}\n", label, text);
      return !seen.insert(std::move(key)).second;
    });
  }
  std::erase_if(families_, [](const MetricFamily& family) { return family.points.empty(); });
  return std::move(families_);
}

std::vector<MetricFamily> machine_metrics(const WatchedMachine& machine, const MachineState& state,
                                          double now, const MetricLimits& limits,
                                          const knowledge::Knowledge& knowledge) {
  MetricTable table(knowledge);
  add_gpu_metrics(machine, table, knowledge);
  add_process_metrics(machine, state, limits, table);
  add_quotas(machine, state, table);
  add_machine(machine, state, now, table);
  return table.take();
}

}  // namespace cufit::watch
