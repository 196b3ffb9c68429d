// SPDX-License-Identifier: Apache-2.0
// The side of prometheus-cpp: compiled into a shared object of its own, in a release into the program (CMakeLists.txt).
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/abi/metric_page.h"

namespace {

prometheus::ClientMetric metric_of(const cufit_metric_point& point, bool is_counter) {
  prometheus::ClientMetric out;
  for (size_t i = 0; i < point.label_count; ++i)
    out.label.push_back({point.labels[i].name, point.labels[i].value});
  if (is_counter)
    out.counter.value = point.value;
  else
    out.gauge.value = point.value;
  return out;
}

std::string page_of(const cufit_metric_family* families, size_t count) {
  std::vector<prometheus::MetricFamily> all(count);
  for (size_t i = 0; i < count; ++i) {
    const cufit_metric_family& family = families[i];
    all[i].name = family.name;
    all[i].help = family.help;
    all[i].type =
        family.is_counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
    for (size_t k = 0; k < family.point_count; ++k)
      all[i].metric.push_back(metric_of(family.points[k], family.is_counter));
  }
  // Serializer::Serialize(families) gives a text.
  const prometheus::TextSerializer serializer;
  return static_cast<const prometheus::Serializer&>(serializer).Serialize(all);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int cufit_metric_page(
    const cufit_metric_family* families, size_t count,
    void (*put)(const char* bytes, size_t size, void* place), void* place) {
  try {
    const std::string page = page_of(families, count);
    put(page.data(), page.size(), place);
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}
