// SPDX-License-Identifier: Apache-2.0
// Metrics made by hand, and the alerts that a judge has told of.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/format.h"
#include "knowledge/knowledge.h"
#include "watch/alert_state.h"

namespace cufit::test {

inline const knowledge::MetricRow* metric_row(std::string_view name) {
  for (const knowledge::MetricRow& row : knowledge::Knowledge::builtin().metrics)
    if (row.name == name) return &row;
  return nullptr;
}

class MadeMetrics {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  MadeMetrics& add(std::string_view metric, Labels labels, double value) {
    for (watch::MetricFamily& family : families_)
      if (family.metric->name == metric) {
        family.points.push_back({std::move(labels), value});
        return *this;
      }
    families_.push_back({metric_row(metric), {{std::move(labels), value}}});
    return *this;
  }
  MadeMetrics& gpu(std::string_view metric, double value, const char* number = "0") {
    return add(metric, {{"gpu", number}, {"uuid", std::string("GPU-") + number}}, value);
  }
  const std::vector<watch::MetricFamily>& families() const { return families_; }

 private:
  std::vector<watch::MetricFamily> families_;
};

// "CufitGpuLost" of "gpu_lost", as Prometheus calls it.
inline std::string alert_name_of(std::string_view rule) {
  std::string out = "Cufit";
  bool begins = true;
  for (const char c : rule) {
    if (c != '_') out += begins ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '_';
  }
  return out;
}

// What was told and is not over.
class ToldAlerts {
 public:
  void take(const std::vector<watch::AlertEvent>& events,
            const std::vector<watch::WatchRule>& rules) {
    for (const watch::AlertEvent& event : events) {
      const std::pair<std::string, std::string> key{rules[event.rule].id,
                                                    watch::series_key(event.labels)};
      if (event.kind == watch::AlertEvent::Kind::resolved)
        firing.erase(key);
      else
        firing[key] = event;
      ++told[event.kind];
    }
  }
  std::map<std::pair<std::string, std::string>, watch::AlertEvent> firing;
  std::map<watch::AlertEvent::Kind, int> told;
};

}  // namespace cufit::test
