// SPDX-License-Identifier: Apache-2.0
#include "report/metric_page.h"

#include <deque>
#include <vector>

#include "base/format.h"

namespace cufit::report {
namespace {

// Names as C has them. A deque: pointers to its members stay.
class Texts {
 public:
  const char* keep(std::string_view text) { return kept_.emplace_back(text).c_str(); }

 private:
  std::deque<std::string> kept_;
};

void append(const char* bytes, size_t size, void* place) {
  static_cast<std::string*>(place)->append(bytes, size);
}

}  // namespace

Result<std::string> metric_page(std::span<const watch::MetricFamily> families,
                                cufit_metric_page_function write) {
  Texts texts;
  std::deque<std::vector<cufit_metric_label>> labels;
  std::deque<std::vector<cufit_metric_point>> points;
  std::vector<cufit_metric_family> all;
  for (const watch::MetricFamily& family : families) {
    std::vector<cufit_metric_point>& of_family = points.emplace_back();
    for (const watch::MetricPoint& point : family.points) {
      std::vector<cufit_metric_label>& of_point = labels.emplace_back();
      for (const auto& [name, value] : point.labels)
        of_point.push_back({texts.keep(name), value.c_str()});
      of_family.push_back({of_point.data(), of_point.size(), point.value});
    }
    all.push_back({texts.keep(family.metric->name), texts.keep(family.metric->help),
                   family.metric->type == "counter" ? 1 : 0, of_family.data(), of_family.size()});
  }
  std::string page;
  if (write(all.data(), all.size(), append, &page) == 0)
    return fail(Code::io, "there is no memory for the metrics page");
  return page;
}

std::string exporter_home_page() {
  return format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>cufit "
      "exporter</title></head>\n"
      "<body><h1>cufit exporter {}</h1>\n<p>GPUs, their processes and the driver of this machine "
      "for Prometheus.</p>\n"
      "<ul><li><a href=\"metrics\">metrics</a></li><li><a href=\"-/healthy\">health of the "
      "exporter itself</a></li></ul>\n"
      "</body></html>\n",
      CUFIT_VERSION);
}

}  // namespace cufit::report
