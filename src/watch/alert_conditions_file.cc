// SPDX-License-Identifier: Apache-2.0
#include "watch/alert_conditions_file.h"

#include <string>

#include "base/format.h"
#include "base/nearest.h"
#include "watch/alert_words.h"

namespace cufit::watch {
namespace {

using formats::TomlValue;

class ConditionReader {
 public:
  ConditionReader(const knowledge::Knowledge& knowledge, const RuleFields& fields)
      : knowledge_(knowledge), fields_(fields) {}

  Result<std::vector<AlertTest>> read(const TomlValue& list) const {
    if (list.kind != TomlValue::Kind::array || list.items.empty() ||
        list.items.size() > k_most_tests)
      return fields_.wrong(list, format("`conditions` is a list of 1 to {} tables", k_most_tests));
    std::vector<AlertTest> out;
    for (const TomlValue& table : list.items) {
      if (!table.is_table())
        return fields_.wrong(table,
                             format("`conditions` is a list of 1 to {} tables", k_most_tests));
      CUFIT_TRY(test, read_test(table));
      out.push_back(std::move(test));
    }
    return out;
  }

 private:
  Result<AlertTest> read_test(const TomlValue& table) const {
    if (Result<void> known =
            fields_.only(table, {"metric", "label", "values", "take", "window", "over", "over_take",
                                 "over_window", "compare", "threshold"});
        !known)
      return known.error();
    AlertTest out;
    CUFIT_TRY(term, read_term(table, "metric", "take", "window"));
    out.term = std::move(term);
    if (table.find("over") != nullptr) {
      CUFIT_TRY(over, read_term(table, "over", "over_take", "over_window"));
      out.over = std::move(over);
    } else if (table.find("over_take") != nullptr || table.find("over_window") != nullptr) {
      return fields_.wrong(table, "`over` is missing");
    }
    CUFIT_TRY(compare, fields_.word(table, "compare", {">", "<"}, true));
    out.above = compare == ">";
    CUFIT_TRY(threshold, fields_.number(table, "threshold"));
    out.threshold = threshold;
    CUFIT_TRY(label, fields_.text(table, "label", false));
    const TomlValue* values = table.find("values");
    if (label.empty() != (values == nullptr))
      return fields_.wrong(table, "`label` and `values` go together");
    if (label.empty()) return out;
    if (!has_label(*find_metric(knowledge_, out.term.metric), label))
      return fields_.wrong(table, format("`{}` is no label of {}", label, out.term.metric));
    if (!values->is_texts() || values->items.empty() || values->items.size() > 100)
      return fields_.wrong(*values, "`values` is a list of 1 to 100 texts");
    out.label = label;
    for (const TomlValue& value : values->items) out.values.push_back(value.text);
    return out;
  }

  Result<AlertTerm> read_term(const TomlValue& table, std::string_view metric_key,
                              std::string_view take_key, std::string_view window_key) const {
    AlertTerm out;
    CUFIT_TRY(metric, fields_.text(table, metric_key, true));
    if (find_metric(knowledge_, metric) == nullptr) {
      std::vector<std::string> names;
      for (const knowledge::MetricRow& row : knowledge_.metrics) names.emplace_back(row.name);
      const std::vector<std::string> near = nearest(metric, names, 1);
      const std::string none = format("`{}` is no metric of cufit", metric);
      return fields_.wrong(*table.find(metric_key),
                           near.empty() ? none : format("{}; is `{}` meant?", none, near[0]));
    }
    out.metric = metric;
    CUFIT_TRY(taken, fields_.word(table, take_key, {"now", "increase", "rate", "avg", "min", "max"},
                                  false));
    out.take = taken.empty() ? AlertTake::now : *alert_take(taken);
    if (out.take == AlertTake::now) {
      if (const TomlValue* window = table.find(window_key); window != nullptr)
        return fields_.wrong(*window, format("`{}` is for what is taken over a time", window_key));
      return out;
    }
    CUFIT_TRY(window, fields_.seconds(table, window_key));
    if (window < 10 || window > k_longest_window_s)
      return fields_.wrong(*table.find(window_key), format("`{}`: 10s to 1d", window_key));
    out.window_s = window;
    return out;
  }

  const knowledge::Knowledge& knowledge_;
  const RuleFields& fields_;
};

}  // namespace

Result<std::vector<AlertTest>> read_conditions(const knowledge::Knowledge& knowledge,
                                               const RuleFields& fields, const TomlValue& list) {
  return ConditionReader(knowledge, fields).read(list);
}

}  // namespace cufit::watch
