// SPDX-License-Identifier: Apache-2.0
#include "watch/alert_state.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace cufit::watch {
namespace {

// With less than its window the value may be over the threshold that all of the window would not reach: an average always, a
// maximum or a growing count where little is alarmed on, a minimum where much is.
bool needs_full_window(const AlertTest& test) {
  switch (test.term.take) {
    case AlertTake::now:
      return false;
    case AlertTake::avg:
      return true;
    case AlertTake::min:
      return test.above;
    default:
      return !test.above;
  }
}

bool agree(const AlertLabels& a, const AlertLabels& b) {
  for (const auto& [name, value] : a)
    for (const auto& [other_name, other] : b)
      if (name == other_name && value != other) return false;
  return true;
}

// `value` / the one of `over` whose labels agree; nothing where there is none.
class Divisors {
 public:
  explicit Divisors(std::vector<TermValue> all) : all_(std::move(all)) {
    for (size_t i = 0; i < all_.size(); ++i) by_gpu_[gpu_key(all_[i].labels)].push_back(i);
  }
  const TermValue* find(const TermValue& value) const {
    const auto here = by_gpu_.find(gpu_key(value.labels));
    if (here != by_gpu_.end())
      for (const size_t i : here->second)
        if (agree(value.labels, all_[i].labels)) return &all_[i];
    const auto machine = by_gpu_.find(gpu_key({}));  // of the machine, without a GPU
    if (machine != by_gpu_.end())
      for (const size_t i : machine->second)
        if (agree(value.labels, all_[i].labels)) return &all_[i];
    return nullptr;
  }

 private:
  std::vector<TermValue> all_;
  std::unordered_map<std::string, std::vector<size_t>> by_gpu_;
};

// Those of `values` for which the test holds, divided where it divides.
std::vector<TermValue> passing(const AlertTest& test, std::vector<TermValue> values,
                               const Divisors& over) {
  std::vector<TermValue> out;
  for (TermValue& value : values) {
    if (!value.covered && needs_full_window(test)) continue;
    if (test.over) {
      const TermValue* divisor = over.find(value);
      if (divisor == nullptr) continue;
      value.value /= divisor->value;  // 0/0 compares false, as in PromQL
    }
    if (test.above ? value.value > test.threshold : value.value < test.threshold)
      out.push_back(std::move(value));
  }
  return out;
}

std::string_view take_digits(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  std::string_view out = text.substr(0, end);
  text.remove_prefix(end);
  while (out.size() > 1 && out[0] == '0') out.remove_prefix(1);
  return out;
}

// Runs of digits count as numbers: GPU 2 comes before GPU 10.
bool numbers_before(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const std::string_view left = take_digits(a), right = take_digits(b);
    if (left.size() != right.size()) return left.size() < right.size();
    if (left != right) return left < right;
    if (a.empty() || b.empty()) break;
    if (a[0] != b[0]) return a[0] < b[0];
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  return a.size() < b.size();
}

void sort_by_numbers(std::vector<AlertEvent>& events, size_t first) {
  std::stable_sort(events.begin() + static_cast<std::ptrdiff_t>(first), events.end(),
                   [](const AlertEvent& a, const AlertEvent& b) {
                     if (a.rule != b.rule) return a.rule < b.rule;
                     return numbers_before(series_key(a.labels), series_key(b.labels));
                   });
}

}  // namespace

AlertJudge::AlertJudge(std::vector<WatchRule> rules, const AlertTimes& times)
    : rules_(std::move(rules)), times_(times) {
  for (const WatchRule& rule : rules_) {
    std::vector<JudgedTest>& tests = tests_.emplace_back();
    for (const AlertTest& test : rule.tests) {
      JudgedTest& judged =
          tests.emplace_back(JudgedTest{TermSeries(test.term, test.label, test.values), {}});
      if (test.over) judged.over.emplace_back(*test.over, test.label, test.values);
    }
  }
}

std::vector<TermValue> AlertJudge::holding(size_t rule, double now) const {
  std::vector<TermValue> out;
  for (size_t i = 0; i < tests_[rule].size(); ++i) {
    const JudgedTest& judged = tests_[rule][i];
    const Divisors over(judged.over.empty() ? std::vector<TermValue>()
                                            : judged.over[0].values(now));
    std::vector<TermValue> passed = passing(rules_[rule].tests[i], judged.term.values(now), over);
    if (i == 0) {
      out = std::move(passed);
      continue;
    }
    std::set<std::string> gpus;
    for (const TermValue& value : passed) gpus.insert(gpu_key(value.labels));
    // What is true of the machine is true of each GPU.
    if (gpus.count(gpu_key({})) > 0) continue;
    std::erase_if(out,
                  [&](const TermValue& value) { return gpus.count(gpu_key(value.labels)) == 0; });
  }
  return out;
}

void AlertJudge::hold(size_t rule, TermValue found, double now, std::vector<AlertEvent>& out) {
  std::pair<size_t, std::string> key{rule, series_key(found.labels)};
  auto at = alerts_.find(key);
  if (at == alerts_.end()) {
    // Of each rule: hundreds of processes must not hide a lost GPU.
    const auto first = alerts_.lower_bound({rule, {}}), last = alerts_.lower_bound({rule + 1, {}});
    if (static_cast<size_t>(std::distance(first, last)) >= k_most_alerts) return;
    at = alerts_.emplace(std::move(key), Alert{found.labels, found.value, now, 0, 0}).first;
  }
  Alert& alert = at->second;
  alert.holds = true;
  alert.value = found.value;
  const bool fires = !alert.firing && now - alert.since >= rules_[rule].hold_s;
  const bool repeats = alert.firing && times_.repeat_s > 0 && now - alert.told >= times_.repeat_s;
  if (!fires && !repeats) return;
  alert.firing = true;
  alert.told = now;
  out.push_back({fires ? AlertEvent::Kind::firing : AlertEvent::Kind::reminder, rule, alert.labels,
                 alert.value, alert.since, now});
}

std::vector<AlertEvent> AlertJudge::judge(const std::vector<MetricFamily>& families, double now) {
  now_ = std::max(now_, now);
  std::unordered_map<std::string_view, const MetricFamily*> by_name;
  for (const MetricFamily& family : families) by_name[family.metric->name] = &family;
  const auto family_of = [&](const std::string& name) -> const MetricFamily* {
    const auto found = by_name.find(name);
    return found == by_name.end() ? nullptr : found->second;
  };
  std::vector<AlertEvent> out;
  for (auto& [key, alert] : alerts_) {
    if (alert.holds) alert.false_since = now_;
    alert.holds = false;
  }
  for (size_t rule = 0; rule < rules_.size(); ++rule) {
    for (size_t i = 0; i < tests_[rule].size(); ++i) {
      const AlertTest& test = rules_[rule].tests[i];
      tests_[rule][i].term.add(family_of(test.term.metric), now_);
      if (test.over) tests_[rule][i].over[0].add(family_of(test.over->metric), now_);
    }
    for (TermValue& found : holding(rule, now_)) hold(rule, std::move(found), now_, out);
  }
  sort_by_numbers(out, 0);
  const size_t begun = out.size();
  for (auto at = alerts_.begin(); at != alerts_.end();) {
    const Alert& alert = at->second;
    const bool over = !alert.holds && (!alert.firing || now_ - alert.false_since >= times_.quiet_s);
    if (over && alert.firing)
      out.push_back({AlertEvent::Kind::resolved, at->first.first, alert.labels, alert.value,
                     alert.since, alert.false_since});
    at = over ? alerts_.erase(at) : std::next(at);
  }
  sort_by_numbers(out, begun);
  return out;
}

size_t AlertJudge::firing() const {
  return static_cast<size_t>(std::count_if(alerts_.begin(), alerts_.end(),
                                           [](const auto& one) { return one.second.firing; }));
}

}  // namespace cufit::watch
