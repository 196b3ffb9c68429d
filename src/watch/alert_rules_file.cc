// SPDX-License-Identifier: Apache-2.0
// A user's alert rules (docs/watch.md).
#include <algorithm>

#include "base/format.h"
#include "base/nearest.h"
#include "watch/alert_conditions_file.h"
#include "watch/alert_words.h"
#include "watch/rule_fields.h"

namespace cufit::watch {
namespace {

using formats::TomlDocument;
using formats::TomlValue;

class RuleReader : private RuleFields {
 public:
  RuleReader(const knowledge::Knowledge& knowledge, const TomlDocument& document)
      : RuleFields(document), knowledge_(knowledge) {}

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
      CUFIT_TRY(tests, read_conditions(knowledge_, *this, *conditions));
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

  const knowledge::Knowledge& knowledge_;
  std::vector<WatchRule> rules_;
};

}  // namespace

Result<std::vector<WatchRule>> alert_rules(const knowledge::Knowledge& knowledge,
                                           const TomlDocument& changes) {
  return RuleReader(knowledge, changes).read();
}

}  // namespace cufit::watch
