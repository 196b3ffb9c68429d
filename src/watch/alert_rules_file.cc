// SPDX-License-Identifier: Apache-2.0
// A user's alert rules (docs/watch.md).
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/duration.h"
#include "base/format.h"
#include "base/nearest.h"
#include "formats/prose/printable.h"
#include "watch/alert_words.h"

namespace cufit::watch {
namespace {

using formats::TomlDocument;
using formats::TomlValue;

constexpr size_t k_longest_text = 500;

class RuleReader {
 public:
  RuleReader(const knowledge::Knowledge& knowledge, const TomlDocument& document)
      : knowledge_(knowledge), document_(document) {}

  Result<std::vector<WatchRule>> read() {
    rules_ = alert_rules(knowledge_);
    for (const formats::TomlMember& member : document_.root.members)
      if (member.name != "rule")
        return wrong(member.value, format("`{}`: only [[rule]] tables are expected", member.name));
    const TomlValue* tables = document_.find("rule");
    if (tables == nullptr) return fail(Code::malformed, document_.file + ": no [[rule]] in it");
    if (tables->kind != TomlValue::Kind::array)
      return wrong(*tables, "`rule` is written as [[rule]]");
    std::vector<std::string> named;
    for (const TomlValue& table : tables->items) {
      if (!table.is_table()) return wrong(table, "`rule` is written as [[rule]]");
      CUFIT_TRY(id, text(table, "id", true));
      if (std::find(named.begin(), named.end(), id) != named.end())
        return wrong(table, format("rule `{}` stands here twice", id));
      named.push_back(id);
      if (Result<void> taken = take(table, id); !taken) return taken.error();
      if (rules_.size() > k_most_rules)
        return wrong(table, format("more than {} rules", k_most_rules));
    }
    return std::move(rules_);
  }

 private:
  Error wrong(const TomlValue& at, const std::string& what) const {
    return document_.wrong(at, what);
  }

  // Empty where it is not there.
  Result<std::string> text(const TomlValue& table, std::string_view key, bool needed) const {
    const TomlValue* value = table.find(key);
    if (value == nullptr && needed) return wrong(table, format("`{}` is missing", key));
    if (value == nullptr) return std::string();
    if (!value->is_text() || value->text.empty())
      return wrong(*value, format("`{}` is a text", key));
    if (value->text.size() > k_longest_text)
      return wrong(*value, format("`{}` is longer than {} bytes", key, k_longest_text));
    if (formats::printable(value->text, k_longest_text) != value->text)
      return wrong(*value, format("`{}` is one line without control characters", key));
    return value->text;
  }

  Result<std::string> word(const TomlValue& table, std::string_view key,
                           std::initializer_list<std::string_view> words, bool needed) const {
    CUFIT_TRY(out, text(table, key, needed));
    if (out.empty() || std::find(words.begin(), words.end(), out) != words.end()) return out;
    return wrong(*table.find(key), format("`{}`: `{}` is none of {}", key, out,
                                          join({words.begin(), words.end()}, ", ")));
  }

  Result<void> only(const TomlValue& table, std::initializer_list<std::string_view> keys) const {
    for (const formats::TomlMember& member : table.members)
      if (std::find(keys.begin(), keys.end(), member.name) == keys.end())
        return wrong(member.value, format("`{}`: no such key; there are {}", member.name,
                                          join({keys.begin(), keys.end()}, ", ")));
    return {};
  }

  Result<double> seconds(const TomlValue& table, std::string_view key) const {
    CUFIT_TRY(said, text(table, key, true));
    const std::optional<uint64_t> out = parse_duration(said);
    if (!out)
      return wrong(*table.find(key),
                   format("`{}`: `{}` is no time such as 90s, 5m, 1h", key, said));
    return static_cast<double>(*out);
  }

  Result<double> number(const TomlValue& table, std::string_view key) const {
    const TomlValue* value = table.find(key);
    if (value == nullptr) return wrong(table, format("`{}` is missing", key));
    double out = 0;
    if (value->kind == TomlValue::Kind::integer)
      out = static_cast<double>(value->integer);
    else if (value->kind == TomlValue::Kind::real)
      out = value->real;
    else
      return wrong(*value, format("`{}` is a number", key));
    if (!std::isfinite(out)) return wrong(*value, format("`{}` is a number", key));
    return out;
  }

  Result<void> take(const TomlValue& table, const std::string& id) {
    if (Result<void> known =
            only(table, {"id", "enabled", "severity", "for", "threshold", "show", "summary",
                         "description", "summary_zh", "description_zh", "runbook", "conditions"});
        !known)
      return known;
    const auto found = std::find_if(rules_.begin(), rules_.end(),
                                    [&](const WatchRule& rule) { return rule.id == id; });
    const bool is_new = found == rules_.end();
    if (is_new && id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != id.npos)
      return wrong(*table.find("id"), "`id`: lower-case letters, digits and _ are expected");
    if (const TomlValue* enabled = table.find("enabled"); enabled != nullptr) {
      if (enabled->kind != TomlValue::Kind::boolean)
        return wrong(*enabled, "`enabled` is true or false");
      if (enabled->integer == 0 && is_new) return unknown_rule(table, id);
      if (enabled->integer == 0) {
        rules_.erase(found);
        return {};
      }
    }
    if (is_new && table.find("conditions") == nullptr) return unknown_rule(table, id);
    WatchRule rule = is_new ? WatchRule{} : *found;
    rule.id = id;
    if (Result<void> filled = fill(table, is_new, rule); !filled) return filled;
    if (is_new)
      rules_.push_back(std::move(rule));
    else
      *found = std::move(rule);
    return {};
  }

  Error unknown_rule(const TomlValue& table, const std::string& id) const {
    std::vector<std::string> names;
    for (const knowledge::AlertRule& row : knowledge_.alert_rules) names.emplace_back(row.id);
    const std::vector<std::string> near = nearest(id, names, 1);
    return wrong(table, near.empty()
                            ? format("`{}` is no built-in rule, and has no `conditions`", id)
                            : format("`{}` is no built-in rule, and has no `conditions`; is `{}` "
                                     "meant?",
                                     id, near[0]));
  }

  Result<void> fill(const TomlValue& table, bool is_new, WatchRule& rule) {
    CUFIT_TRY(severity, word(table, "severity", {"critical", "warning", "info"}, is_new));
    if (!severity.empty()) rule.severity = severity;
    CUFIT_TRY(show,
              word(table, "show", {"count", "percent", "bytes", "duration", "number"}, false));
    if (!show.empty() || is_new) rule.show = show.empty() ? "number" : show;
    if (table.find("for") != nullptr) {
      CUFIT_TRY(hold, seconds(table, "for"));
      rule.hold_s = hold;
    }
    if (const TomlValue* conditions = table.find("conditions"); conditions != nullptr) {
      CUFIT_TRY(tests, read_tests(*conditions));
      rule.tests = std::move(tests);
    }
    if (table.find("threshold") != nullptr) {
      CUFIT_TRY(threshold, number(table, "threshold"));
      rule.tests[0].threshold = threshold;
    }
    CUFIT_TRY(runbook, text(table, "runbook", false));
    if (!runbook.empty() || is_new) rule.runbook = runbook.empty() ? "cufit top" : runbook;
    return fill_texts(table, is_new, rule);
  }

  Result<void> fill_texts(const TomlValue& table, bool is_new, WatchRule& rule) {
    struct Place {
      std::string_view key;
      std::string& en;
      std::string* zh;
    };
    const Place places[] = {{"summary", rule.en.summary, &rule.zh.summary},
                            {"description", rule.en.description, &rule.zh.description},
                            {"summary_zh", rule.zh.summary, nullptr},
                            {"description_zh", rule.zh.description, nullptr}};
    for (const Place& place : places) {
      CUFIT_TRY(said, text(table, place.key, is_new && place.key == "summary"));
      if (!said.empty()) {
        place.en = said;
        if (place.zh != nullptr) *place.zh = said;
      }
    }
    // Also where it is the conditions that changed: a name that is filled with nothing would be shown as it is.
    const std::pair<const char*, const std::string*> all[] = {
        {"summary", &rule.en.summary},
        {"description", &rule.en.description},
        {"summary_zh", &rule.zh.summary},
        {"description_zh", &rule.zh.description},
        {"runbook", &rule.runbook}};
    for (const auto& [key, said] : all) {
      const TomlValue* here = table.find(key);
      if (Result<void> good = check_names(here != nullptr ? *here : table, *said, rule); !good)
        return good;
    }
    return {};
  }

  Result<void> check_names(const TomlValue& at_value, std::string_view said,
                           const WatchRule& rule) const {
    const knowledge::MetricRow* metric = find_metric(knowledge_, rule.tests[0].term.metric);
    for (size_t at = said.find('{'); at != said.npos; at = said.find('{', at + 1)) {
      const size_t end = said.find('}', at);
      if (end == said.npos) return wrong(at_value, format("`{}`: a brace is not closed", said));
      const std::string_view name = said.substr(at + 1, end - at - 1);
      const bool known = name == "value" || has_label(*metric, name) ||
                         (name == "xid_why" && has_label(*metric, "xid"));
      if (!known)
        return wrong(
            at_value,
            format("`{{{}}}` is no label of {}; there are {}", name, metric->name,
                   metric->labels.empty() ? std::string("value")
                                          : join(names_of(metric->labels), ", ") + ", value"));
    }
    return {};
  }

  static std::vector<std::string> names_of(std::string_view labels) {
    std::vector<std::string> out;
    for (const std::string_view name : split(labels, ' ')) out.emplace_back(name);
    return out;
  }

  Result<std::vector<AlertTest>> read_tests(const TomlValue& list) const {
    if (list.kind != TomlValue::Kind::array || list.items.empty() ||
        list.items.size() > k_most_tests)
      return wrong(list, format("`conditions` is a list of 1 to {} tables", k_most_tests));
    std::vector<AlertTest> out;
    for (const TomlValue& table : list.items) {
      if (!table.is_table())
        return wrong(table, format("`conditions` is a list of 1 to {} tables", k_most_tests));
      CUFIT_TRY(test, read_test(table));
      out.push_back(std::move(test));
    }
    return out;
  }

  Result<AlertTest> read_test(const TomlValue& table) const {
    if (Result<void> known = only(table, {"metric", "label", "values", "take", "window", "over",
                                          "over_take", "over_window", "compare", "threshold"});
        !known)
      return known.error();
    AlertTest out;
    CUFIT_TRY(term, read_term(table, "metric", "take", "window"));
    out.term = std::move(term);
    if (table.find("over") != nullptr) {
      CUFIT_TRY(over, read_term(table, "over", "over_take", "over_window"));
      out.over = std::move(over);
    } else if (table.find("over_take") != nullptr || table.find("over_window") != nullptr) {
      return wrong(table, "`over` is missing");
    }
    CUFIT_TRY(compare, word(table, "compare", {">", "<"}, true));
    out.above = compare == ">";
    CUFIT_TRY(threshold, number(table, "threshold"));
    out.threshold = threshold;
    CUFIT_TRY(label, text(table, "label", false));
    const TomlValue* values = table.find("values");
    if (label.empty() != (values == nullptr))
      return wrong(table, "`label` and `values` go together");
    if (label.empty()) return out;
    if (!has_label(*find_metric(knowledge_, out.term.metric), label))
      return wrong(table, format("`{}` is no label of {}", label, out.term.metric));
    if (!values->is_texts() || values->items.empty() || values->items.size() > 100)
      return wrong(*values, "`values` is a list of 1 to 100 texts");
    out.label = label;
    for (const TomlValue& value : values->items) out.values.push_back(value.text);
    return out;
  }

  Result<AlertTerm> read_term(const TomlValue& table, std::string_view metric_key,
                              std::string_view take_key, std::string_view window_key) const {
    AlertTerm out;
    CUFIT_TRY(metric, text(table, metric_key, true));
    if (find_metric(knowledge_, metric) == nullptr) {
      std::vector<std::string> names;
      for (const knowledge::MetricRow& row : knowledge_.metrics) names.emplace_back(row.name);
      const std::vector<std::string> near = nearest(metric, names, 1);
      const std::string none = format("`{}` is no metric of cufit", metric);
      return wrong(*table.find(metric_key),
                   near.empty() ? none : format("{}; is `{}` meant?", none, near[0]));
    }
    out.metric = metric;
    CUFIT_TRY(taken,
              word(table, take_key, {"now", "increase", "rate", "avg", "min", "max"}, false));
    out.take = taken.empty() ? AlertTake::now : *alert_take(taken);
    if (out.take == AlertTake::now) {
      if (const TomlValue* window = table.find(window_key); window != nullptr)
        return wrong(*window, format("`{}` is for what is taken over a time", window_key));
      return out;
    }
    CUFIT_TRY(window, seconds(table, window_key));
    if (window < 10 || window > k_longest_window_s)
      return wrong(*table.find(window_key), format("`{}`: 10s to 1d", window_key));
    out.window_s = window;
    return out;
  }

  const knowledge::Knowledge& knowledge_;
  const TomlDocument& document_;
  std::vector<WatchRule> rules_;
};

}  // namespace

Result<std::vector<WatchRule>> alert_rules(const knowledge::Knowledge& knowledge,
                                           const TomlDocument& changes) {
  return RuleReader(knowledge, changes).read();
}

}  // namespace cufit::watch
