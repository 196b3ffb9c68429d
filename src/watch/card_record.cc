// SPDX-License-Identifier: Apache-2.0
#include "watch/card_record.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::watch {
namespace {

// Somebody has set them: no loss that comes and goes.
constexpr std::string_view k_harmless[] = {"applications_clocks_setting", "display_clock_setting"};

std::string bare_uuid(std::string_view text) {
  std::string out = lower(text);
  for (const char* head : {"gpu-", "mig-"})
    if (starts_with(out, head)) return out.substr(4);
  return out;
}

}  // namespace

CardRecord::CardRecord(std::string uuid) : uuid_(bare_uuid(uuid)) {}

void CardRecord::add(const facts::GpuSample& sample) {
  if (sample.stalled_seconds || uuid_.empty()) return;
  for (size_t place = 0; place < sample.gpus.size(); ++place) {
    const facts::SampledGpu& gpu = sample.gpus[place];
    if (bare_uuid(gpu.uuid) != uuid_) continue;
    found_ = true;
    const facts::SampledGpu* card = &gpu;
    for (const facts::SampledGpu& other : sample.gpus)
      if (!gpu.parent_uuid.empty() && other.uuid == gpu.parent_uuid) card = &other;
    points_.push_back({sample.time, card->energy_joules, card->sm_clock_mhz,
                       card->throttle.value_or(std::vector<std::string>())});
    for (const facts::SampledProcess& process : sample.processes) {
      if (process.gpu != place) continue;
      if (process.memory_bytes)
        memory_[process.pid] = std::max(memory_[process.pid], *process.memory_bytes);
      others_[process.pid] = process;
      if (first_) there_before_.insert(process.pid);
    }
  }
  first_ = false;
}

// Between two samples the counter is taken to rise evenly.
std::optional<double> CardRecord::joules_at(double time) const {
  const Point* before = nullptr;
  for (const Point& point : points_) {
    if (!point.joules) continue;
    if (point.time >= time) {
      if (point.time == time) return point.joules;
      if (before == nullptr) return std::nullopt;
      const double part = (time - before->time) / (point.time - before->time);
      return *before->joules + part * (*point.joules - *before->joules);
    }
    before = &point;
  }
  return std::nullopt;
}

CardLoad CardRecord::load_in(const std::vector<TimeSpan>& spans) const {
  CardLoad out;
  double joules = 0;
  bool known = !spans.empty();
  std::set<std::string> reasons;
  for (const TimeSpan& span : spans) {
    const std::optional<double> begin = joules_at(span.begin), end = joules_at(span.end);
    known = known && begin && end;
    if (known) joules += *end - *begin;
    for (const Point& point : points_) {
      if (point.time < span.begin || point.time > span.end) continue;
      for (const std::string& reason : point.throttle)
        if (std::find(std::begin(k_harmless), std::end(k_harmless), reason) == std::end(k_harmless))
          reasons.insert(reason);
      if (!point.sm_clock_mhz) continue;
      const uint32_t clock = *point.sm_clock_mhz;
      out.sm_clock_min_mhz = std::min(out.sm_clock_min_mhz.value_or(clock), clock);
      out.sm_clock_max_mhz = std::max(out.sm_clock_max_mhz.value_or(clock), clock);
    }
  }
  if (known && joules >= 0) out.joules = joules;
  out.throttle.assign(reasons.begin(), reasons.end());
  return out;
}

std::optional<uint64_t> CardRecord::process_bytes(uint32_t pid) const {
  const auto at = memory_.find(pid);
  return at == memory_.end() ? std::nullopt : std::optional(at->second);
}

std::vector<facts::SampledProcess> CardRecord::neighbours() const {
  std::vector<facts::SampledProcess> out;
  for (const auto& [pid, process] : others_)
    if (own_.count(pid) == 0 && (process.owner.visible || there_before_.count(pid) > 0))
      out.push_back(process);
  return out;
}

}  // namespace cufit::watch
