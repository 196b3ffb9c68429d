// SPDX-License-Identifier: Apache-2.0
#include "watch/watcher.h"

#include <algorithm>
#include <set>

#include "base/format.h"

namespace cufit::watch {
namespace {

// A process that NVML does not list for a moment (it is in the midst of an exec, the driver was busy) keeps its series.
constexpr double k_kept_seconds = 60;
constexpr size_t k_most_series = 20000;
constexpr size_t k_most_known_gpus = 256;
// A longer gap was a driver that hung or a machine that slept: nothing is known of it.
constexpr double k_most_gap_seconds = 120;
// Backwards, as memory_series.cc has it: the clock was set, and samples are newer than their times say.
constexpr double k_clock_was_set_seconds = 60;

float part_of(std::optional<uint64_t> some, std::optional<uint64_t> all) {
  if (!some || !all || *all == 0) return -1;
  return static_cast<float>(std::min(1.0, static_cast<double>(*some) / static_cast<double>(*all)));
}

void push(std::vector<float>& values, float value) {
  if (values.size() >= GpuHistory::k_most) values.erase(values.begin());
  values.push_back(value);
}

std::string key_of(const facts::SampledGpu& gpu, const facts::SampledProcess& process) {
  return format("{} {} {:.2f}", gpu.uuid, process.pid, process.owner.started.value_or(0));
}

std::optional<uint64_t> unowned(const facts::GpuSample& sample, uint32_t place) {
  const facts::SampledGpu& gpu = sample.gpus[place];
  if (!gpu.memory_used_bytes) return std::nullopt;
  const std::string asked = gpu.profile.empty() ? format("gpu {}: processes", gpu.index) : "";
  for (const facts::MissingValue& missing : sample.missing)
    if (missing.what == asked) return std::nullopt;
  uint64_t sum = 0;
  for (const facts::SampledProcess& process : sample.processes) {
    if (process.gpu != place) continue;
    if (!process.memory_bytes) return std::nullopt;
    sum += std::min(*process.memory_bytes, UINT64_MAX - sum);
  }
  return *gpu.memory_used_bytes - std::min(sum, *gpu.memory_used_bytes);
}

}  // namespace

const facts::MissingValue* nvml_problem(const std::vector<facts::MissingValue>& missing) {
  for (const facts::MissingValue& one : missing)
    if (one.what == "NVML" || one.what == "GPUs") return &one;
  return nullptr;
}

void Watcher::add(const facts::GpuSample& sample) {
  now_.stalled_seconds = sample.stalled_seconds;
  now_.stalled_call = sample.stalled_call;
  now_.stalled_end = sample.stalled_end;
  const double gap = sample.time - now_.time;
  if (gap <= 0 && gap > -k_clock_was_set_seconds && !now_.gpus.empty()) return;
  const bool is_first = now_.time == 0;
  now_.time = sample.time;
  now_.driver_version = sample.driver_version;
  now_.missing = sample.missing;
  now_.driver_seconds = sample.driver_seconds;
  add_gpus(sample);
  for (WatchedGpu& gpu : now_.gpus)
    add_throttle(gpu, gap > 0 && gap <= k_most_gap_seconds ? gap : 0);
  remember_gpus(sample);
  remember_xids(sample, is_first);
  add_processes(sample);
  forget_the_gone(sample.time);
}

void Watcher::add_gpus(const facts::GpuSample& sample) {
  now_.gpus.clear();
  for (size_t i = 0; i < sample.gpus.size(); ++i) {
    const facts::SampledGpu& gpu = sample.gpus[i];
    GpuHistory& history = histories_[gpu.uuid];
    push(history.memory, part_of(gpu.memory_used_bytes, gpu.memory_total_bytes));
    push(history.utilization, gpu.utilization ? static_cast<float>(*gpu.utilization) : -1.0f);
    WatchedGpu watched;
    watched.now = gpu;
    watched.history = history;
    const bool divided = i + 1 < sample.gpus.size() && !gpu.uuid.empty() &&
                         sample.gpus[i + 1].parent_uuid == gpu.uuid;
    if (!divided) watched.unowned_bytes = unowned(sample, static_cast<uint32_t>(i));
    now_.gpus.push_back(std::move(watched));
  }
}

void Watcher::add_throttle(WatchedGpu& gpu, double seconds) {
  if (!gpu.now.throttle) return;
  Throttle& of_gpu = throttles_[gpu.now.uuid];
  for (const auto* reasons : {&of_gpu.before, &*gpu.now.throttle})
    for (const std::string& reason : *reasons) of_gpu.seconds[reason] += seconds / 2;
  of_gpu.before = *gpu.now.throttle;
  gpu.throttle_seconds = of_gpu.seconds;
}

void Watcher::remember_gpus(const facts::GpuSample& sample) {
  // Where NVML itself does not answer, nothing is known of the GPUs: none is lost for that.
  const bool told = nvml_problem(sample.missing) == nullptr;
  for (KnownGpu& known : now_.known_gpus) known.listed = known.listed && !told;
  for (const facts::SampledGpu& gpu : sample.gpus) {
    if (!gpu.parent_uuid.empty() || gpu.pci.empty()) continue;
    auto& all = now_.known_gpus;
    auto place =
        std::lower_bound(all.begin(), all.end(), gpu.pci,
                         [](const KnownGpu& a, const std::string& b) { return a.pci < b; });
    if (place == all.end() || place->pci != gpu.pci) {
      if (all.size() >= k_most_known_gpus) continue;
      place = all.insert(place, KnownGpu{.pci = gpu.pci});
    }
    place->uuid = gpu.uuid;
    place->name = gpu.name;
    place->index = gpu.index;
    place->listed = true;
  }
}

// The first counts may be of weeks ago: they are where counting begins.
void Watcher::remember_xids(const facts::GpuSample& sample, bool is_first) {
  std::map<std::pair<std::string, uint32_t>, uint64_t> before;
  for (const facts::SampledXid& xid : now_.xids) before[{xid.pci, xid.number}] = xid.count;
  std::map<std::string, uint32_t> last;  // by PCI address
  for (const facts::SampledXid& xid : sample.xids)
    if (!is_first && xid.count > before[{xid.pci, xid.number}] && !xid.pci.empty())
      last[xid.pci] = std::max(last[xid.pci], xid.number);
  for (KnownGpu& known : now_.known_gpus)
    for (const auto& [pci, number] : last)
      if (starts_with(known.pci, pci)) known.last_xid = number;
  now_.xids = sample.xids;
}

void Watcher::add_processes(const facts::GpuSample& sample) {
  now_.processes.clear();
  for (const facts::SampledProcess& process : sample.processes) {
    if (process.gpu >= sample.gpus.size()) continue;
    const facts::SampledGpu& gpu = sample.gpus[process.gpu];
    WatchedProcess watched;
    watched.now = process;
    const std::string key = key_of(gpu, process);
    if (process.memory_bytes && (series_.size() < k_most_series || series_.count(key) > 0)) {
      Series& series = series_[key];
      series.memory.add(sample.time, *process.memory_bytes);
      series.seen = sample.time;
      watched.trend = memory_trend(series.memory, gpu.memory_free_bytes.value_or(0));
    }
    now_.processes.push_back(std::move(watched));
  }
  std::stable_sort(now_.processes.begin(), now_.processes.end(),
                   [](const WatchedProcess& a, const WatchedProcess& b) {
                     if (a.now.gpu != b.now.gpu) return a.now.gpu < b.now.gpu;
                     return a.now.memory_bytes.value_or(0) > b.now.memory_bytes.value_or(0);
                   });
}

void Watcher::forget_the_gone(double time) {
  std::erase_if(series_, [&](const auto& entry) {
    return entry.second.seen + k_kept_seconds < time || entry.second.seen > time + k_kept_seconds;
  });
  std::set<std::string> there;
  for (const WatchedGpu& gpu : now_.gpus) there.insert(gpu.now.uuid);
  std::erase_if(histories_, [&](const auto& entry) { return there.count(entry.first) == 0; });
  // Counters do not begin anew where a GPU is gone for a sample.
  if (throttles_.size() > k_most_known_gpus)
    std::erase_if(throttles_, [&](const auto& entry) { return there.count(entry.first) == 0; });
}

}  // namespace cufit::watch
