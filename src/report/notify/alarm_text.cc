// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/json.h"
#include "base/number.h"
#include "base/shell_word.h"
#include "formats/prose/printable.h"
#include "report/notify/alarm.h"
#include "report/top.h"

namespace cufit::report {
namespace {

constexpr size_t k_longest_name = 200;  // of what comes from outside, in bytes

std::string shown_alarm_value(double value, std::string_view show, std::string_view lang) {
  if (show == "percent") return format("{:.{}f}%", value * 100, std::abs(value) < 0.1 ? 1 : 0);
  if (show == "bytes")
    return format_bytes(value > 0 && value < 1e18 ? static_cast<unsigned long long>(value) : 0);
  if (show == "duration") return rough_time(value, lang);
  if (show == "count") return format("{:.0f}", value);
  return format("{:.6g}", value);
}

// "Xid 79: The GPU fell off the PCIe bus ..."; empty where the tables have no reason.
std::string xid_reason(const Alarm& alarm, const AlarmView& view) {
  const std::string_view number = watch::label_of(alarm.event.labels, "xid");
  for (const knowledge::AlertXid& row : view.knowledge.alert_xids)
    if (std::to_string(row.number) == number)
      return view.lang == "zh" ? format("Xid {}：{}", row.number, row.zh)
                               : format("Xid {}: {}", row.number, row.why);
  return {};
}

std::string filled_text(std::string_view text, const Alarm& alarm, const AlarmView& view,
                        const QuoteName& quoted) {
  std::string out;
  while (!text.empty()) {
    const size_t begin = std::min(text.find('{'), text.size());
    out += text.substr(0, begin);
    text.remove_prefix(begin);
    const size_t end = text.find('}');
    if (text.empty() || end == text.npos) return out.append(text);
    const std::string_view name = text.substr(1, end - 1);
    const std::string_view label = watch::label_of(alarm.event.labels, name);
    if (name == "value")
      out += shown_alarm_value(alarm.event.value, alarm.rule.show, view.lang);
    else if (name == "xid_why")
      out += xid_reason(alarm, view);
    else
      out += label.empty() ? "?" : quoted(formats::printable(label, k_longest_name));
    text.remove_prefix(end + 1);
  }
  return out;
}

std::string plain(std::string_view name) { return std::string(name); }

// Days since 1970-01-01 as a date of the Gregorian calendar (the era of 400 years has 146097 days).
std::string date_text(int64_t days) {
  days += 719468;  // since 0000-03-01
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const int64_t day_of_era = days - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;  // from March on
  const int64_t year = year_of_era + era * 400 + (month >= 10 ? 1 : 0);
  return format("{:04}-{:02}-{:02}", year, month < 10 ? month + 3 : month - 9,
                day_of_year - (153 * month + 2) / 5 + 1);
}

std::string time_text(double time, int64_t offset, std::string_view between) {
  const int64_t seconds = std::isfinite(time) && std::abs(time) < 1e11
                              ? static_cast<int64_t>(std::floor(time)) + offset
                              : 0;
  const int64_t days = (seconds >= 0 ? seconds : seconds - 86399) / 86400;
  const int64_t in_day = seconds - days * 86400;
  return format("{}{}{:02}:{:02}:{:02}", date_text(days), between, in_day / 3600, in_day / 60 % 60,
                in_day % 60);
}

std::string_view state_word(const Alarm& alarm) {
  return alarm.is_resolved() ? "resolved" : "firing";
}

}  // namespace

AlarmText alarm_text(const Alarm& alarm, const AlarmView& view, const QuoteName& quoted) {
  const watch::AlertTexts& texts = alarm.rule.texts(view.lang);
  return {filled_text(texts.summary, alarm, view, quoted),
          filled_text(texts.description, alarm, view, quoted),
          filled_text(alarm.rule.runbook, alarm, view, shell_word)};
}

std::string alarm_time(double time, int64_t utc_offset_s) {
  return time_text(time, utc_offset_s, " ");
}

std::string alarm_time_utc(double time) { return time_text(time, 0, "T") + "Z"; }

std::string alarm_line(const Alarm& alarm, const AlarmView& view) {
  AlarmText text = alarm_text(alarm, view, plain);
  constexpr std::string_view k_sudo = "sudo ";
  if (view.as_root && starts_with(text.runbook, k_sudo)) text.runbook.erase(0, k_sudo.size());
  const Labels words(view.knowledge, view.lang);
  std::map<std::string, std::string> args = {
      {"summary", text.summary},
      {"step", text.runbook},
      {"time", rough_time(alarm.event.until - alarm.event.since, view.lang)}};
  const std::string severity = words("watch." + alarm.rule.severity);
  std::string_view form = "watch.line_firing";
  if (alarm.is_resolved()) form = "watch.line_resolved";
  if (alarm.event.kind == watch::AlertEvent::Kind::reminder) form = "watch.line_reminder";
  return format("{}  {}  {}\n", alarm_time(alarm.event.until, view.utc_offset_s),
                alarm.is_resolved() ? words("watch.resolved") : severity,
                words(std::string(form), args));
}

std::string alarm_json(const Alarm& alarm, const AlarmView& view) {
  const AlarmText text = alarm_text(alarm, view, plain);
  Json out;
  out["schema"] = "cufit.watch/1";
  out["time"] = alarm_time_utc(alarm.event.until);
  out["machine"] = view.machine;
  out["state"] = state_word(alarm);
  out["reminder"] = alarm.event.kind == watch::AlertEvent::Kind::reminder;
  out["test"] = alarm.is_test;
  out["alert"] = alarm.rule.id;
  out["severity"] = alarm.rule.severity;
  out["summary"] = text.summary;
  out["description"] = text.description;
  out["runbook"] = text.runbook;
  out["value"] = std::isfinite(alarm.event.value) ? Json(alarm.event.value) : Json();
  out["since"] = alarm_time_utc(alarm.event.since);
  out["seconds"] = std::floor(std::max(alarm.event.until - alarm.event.since, 0.0));
  Json labels = Json::object();
  for (const auto& [name, value] : alarm.event.labels) labels[name] = value;
  out["labels"] = std::move(labels);
  return out.dump() + "\n";
}

std::vector<std::pair<std::string, std::string>> alarm_variables(const Alarm& alarm,
                                                                 const AlarmView& view) {
  const AlarmText text = alarm_text(alarm, view, plain);
  const auto label = [&](std::string_view name) {
    return formats::printable(watch::label_of(alarm.event.labels, name), k_longest_name);
  };
  return {
      {"CUFIT_ALERT", alarm.rule.id},
      {"CUFIT_STATE", std::string(state_word(alarm))},
      {"CUFIT_SEVERITY", alarm.rule.severity},
      {"CUFIT_REMINDER", alarm.event.kind == watch::AlertEvent::Kind::reminder ? "1" : "0"},
      {"CUFIT_TEST", alarm.is_test ? "1" : "0"},
      {"CUFIT_MACHINE", view.machine},
      {"CUFIT_GPU", label("gpu")},
      {"CUFIT_UUID", label("uuid")},
      {"CUFIT_PID", label("pid")},
      {"CUFIT_USER", label("user")},
      {"CUFIT_SUMMARY", text.summary},
      {"CUFIT_DESCRIPTION", text.description},
      {"CUFIT_RUNBOOK", text.runbook},
      {"CUFIT_VALUE", format("{:.12g}", alarm.event.value)},
      {"CUFIT_SINCE", alarm_time_utc(alarm.event.since)},
      {"CUFIT_SECONDS", format("{:.0f}", std::max(alarm.event.until - alarm.event.since, 0.0))}};
}

}  // namespace cufit::report
