// SPDX-License-Identifier: Apache-2.0
// All series of one term of a rule, and what the term says of each at a moment.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watch/alert_window.h"
#include "watch/metrics.h"

namespace cufit::watch {

using AlertLabels = std::vector<std::pair<std::string, std::string>>;

// Empty: it has none.
std::string_view label_of(const AlertLabels& labels, std::string_view name);
// What tells series apart, and what joins the tests of a rule: a GPU or an instance.
std::string series_key(const AlertLabels& labels);
std::string gpu_key(const AlertLabels& labels);

struct TermValue {
  AlertLabels labels;
  double value = 0;
  bool covered = true;  // its window is full
};

class TermSeries {
 public:
  // Series whose `label` is none of `values` are left out, where the metric has that label.
  TermSeries(const AlertTerm& term, std::string label, std::vector<std::string> values);

  // `family`: null where the metric has no values now. A window remembers a series that is gone until it is empty, as
  // PromQL does; `now` does not. At most 4096 series are remembered.
  void add(const MetricFamily* family, double now);
  std::vector<TermValue> values(double now) const;

 private:
  struct Series {
    AlertLabels labels;
    AlertWindow window;
  };
  bool is_wanted(const MetricPoint& point) const;

  AlertTerm term_;
  std::string label_;
  std::vector<std::string> values_;
  std::vector<TermValue> now_;            // of a term without a window
  std::map<std::string, Series> series_;  // of one with
};

}  // namespace cufit::watch
