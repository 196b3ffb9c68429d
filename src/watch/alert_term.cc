// SPDX-License-Identifier: Apache-2.0
#include "watch/alert_term.h"

#include <algorithm>

namespace cufit::watch {
namespace {

constexpr size_t k_most_term_series = 4096;

AlertLabels labels_of(const MetricPoint& point) {
  AlertLabels out;
  for (const auto& [name, value] : point.labels) out.emplace_back(name, value);
  return out;
}

}  // namespace

std::string_view label_of(const AlertLabels& labels, std::string_view name) {
  for (const auto& [key, value] : labels)
    if (key == name) return value;
  return {};
}

std::string series_key(const AlertLabels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    out.append(name).push_back('\0');
    out.append(value).push_back('\0');
  }
  return out;
}

std::string gpu_key(const AlertLabels& labels) {
  std::string out(label_of(labels, "gpu"));
  out.push_back('\0');
  return out.append(label_of(labels, "uuid"));
}

TermSeries::TermSeries(const AlertTerm& term, std::string label, std::vector<std::string> values)
    : term_(term), label_(std::move(label)), values_(std::move(values)) {}

bool TermSeries::is_wanted(const MetricPoint& point) const {
  if (label_.empty()) return true;
  for (const auto& [name, value] : point.labels)
    if (name == label_) return std::find(values_.begin(), values_.end(), value) != values_.end();
  return true;
}

void TermSeries::add(const MetricFamily* family, double now) {
  now_.clear();
  for (auto at = series_.begin(); at != series_.end();)
    at = now - at->second.window.newest() > term_.window_s ? series_.erase(at) : std::next(at);
  if (family == nullptr) return;
  for (const MetricPoint& point : family->points) {
    if (!is_wanted(point)) continue;
    if (term_.take == AlertTake::now) {
      now_.push_back({labels_of(point), point.value, true});
      continue;
    }
    AlertLabels labels = labels_of(point);
    std::string key = series_key(labels);
    auto found = series_.find(key);
    if (found == series_.end()) {
      if (series_.size() == k_most_term_series) continue;
      found = series_
                  .emplace(std::move(key),
                           Series{std::move(labels), AlertWindow(term_.take, term_.window_s)})
                  .first;
    }
    found->second.window.add(now, point.value);
  }
}

std::vector<TermValue> TermSeries::values(double now) const {
  if (term_.take == AlertTake::now) return now_;
  std::vector<TermValue> out;
  for (const auto& [key, series] : series_)
    if (const std::optional<double> value = series.window.value(now))
      out.push_back({series.labels, *value, series.window.is_covered(now)});
  return out;
}

}  // namespace cufit::watch
