// SPDX-License-Identifier: Apache-2.0
// The bodies that receivers take. Forms: Slack's incoming webhooks, Feishu's and DingTalk's custom bots, WeCom's group bots,
// ntfy's JSON, Alertmanager's webhook of version 4.
#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "base/sha256.h"
#include "report/export/export_template.h"
#include "report/export/monitoring.h"
#include "report/notify/alarm.h"
#include "report/notify/chat_markup.h"
#include "report/notify/notify_template.h"
#include "report/top.h"

namespace cufit::report {
namespace {

constexpr size_t k_most_told = 8;  // alarms of one message; the rest is a number
// WeCom takes 4096 bytes, ntfy makes a file of what is longer.
constexpr size_t k_most_text_bytes = 3600;

std::string in_json(std::string_view text) { return Json(text).dump(); }

std::string_view worst(const std::vector<Alarm>& alarms) {
  for (const std::string_view severity : {"critical", "warning"})
    for (const Alarm& alarm : alarms)
      if (alarm.rule.severity == severity) return severity;
  return "info";
}

class ChatText {
 public:
  ChatText(ReceiverKind kind, const std::vector<Alarm>& alarms, const AlarmView& view)
      : markup_(markup_of(kind)), view_(view), words_(view.knowledge, view.lang) {
    const bool several = alarms.size() > 1;
    const AlarmText first = text_of(alarms[0]);
    std::string what = several ? words_("watch.several", {{"count", std::to_string(alarms.size())}})
                               : first.summary;
    std::string state = words_("watch." + std::string(worst(alarms)));
    if (alarms[0].is_resolved()) state = words_("watch.resolved");
    if (alarms[0].is_test) state = words_("watch.test");
    title = words_(
        "watch.title",
        {{"state", state}, {"machine", with_wide(view.machine, markup_.wide)}, {"what", what}});
    size_t bytes = title.size();
    for (size_t i = 0; i < alarms.size(); ++i) {
      const std::vector<std::string> one = lines_of(alarms[i], several);
      for (const std::string& line : one) bytes += line.size() + markup_.end.size();
      if (i > 0 && (i == k_most_told || bytes > k_most_text_bytes)) {
        lines.push_back(words_("watch.more", {{"count", std::to_string(alarms.size() - i)}}));
        break;
      }
      lines.insert(lines.end(), one.begin(), one.end());
    }
    lines.push_back(
        words_("watch.sender", {{"time", alarm_time(alarms[0].event.until, view.utc_offset_s)}}));
  }

  std::string joined() const { return join(lines, markup_.end); }

  std::string title;
  std::vector<std::string> lines;

 private:
  AlarmText text_of(const Alarm& alarm) const {
    AlarmText out = alarm_text(
        alarm, view_, [&](std::string_view name) { return with_wide(name, markup_.wide); });
    out.summary = without_calls(out.summary, markup_.wide);
    out.description = without_calls(out.description, markup_.wide);
    out.runbook = in_code(out.runbook, markup_);
    return out;
  }
  std::string marked(std::string_view mark, const std::string& text) const {
    return format("{}{}{}", mark, text, mark);
  }
  std::vector<std::string> lines_of(const Alarm& alarm, bool several) const {
    const AlarmText text = text_of(alarm);
    std::vector<std::string> out;
    if (several) out.push_back(marked(markup_.bold, text.summary));
    const std::string time = rough_time(alarm.event.until - alarm.event.since, view_.lang);
    if (alarm.is_resolved()) {
      out.push_back(words_("watch.lasted", {{"time", time}}));
      return out;
    }
    if (!text.description.empty()) out.push_back(text.description);
    if (alarm.event.kind == watch::AlertEvent::Kind::reminder)
      out.push_back(words_("watch.still", {{"time", time}}));
    if (!text.runbook.empty())
      out.push_back(words_("watch.next", {{"step", marked(markup_.code, text.runbook)}}));
    return out;
  }

  ChatMarkup markup_;
  const AlarmView& view_;
  Labels words_;
};

std::string chat_text(ReceiverKind kind, const ChatText& chat) {
  switch (kind) {
    case ReceiverKind::slack:
      return slack_text(format("*{}*\n{}", chat.title, chat.joined()));
    case ReceiverKind::dingtalk:
      return format("#### {}\n\n{}", chat.title, chat.joined());
    case ReceiverKind::wecom:
      return format("**{}**\n{}", chat.title, chat.joined());
    default:
      return chat.joined();
  }
}

std::string_view template_of(ReceiverKind kind) {
  switch (kind) {
    case ReceiverKind::slack:
      return "slack.json";
    case ReceiverKind::feishu:
      return "feishu.json";
    case ReceiverKind::dingtalk:
      return "dingtalk.json";
    case ReceiverKind::wecom:
      return "wecom.json";
    case ReceiverKind::ntfy:
      return "ntfy.json";
    default:
      return "webhook.json";
  }
}

Scope chat_scope(const Receiver& receiver, const std::vector<Alarm>& alarms, const AlarmView& view,
                 int64_t now) {
  const ChatText chat(receiver.kind, alarms, view);
  const std::string_view severity = worst(alarms);
  const bool resolved = alarms[0].is_resolved();
  Scope out;
  out.values["title"] = in_json(chat.title);
  out.values["text"] = in_json(chat_text(receiver.kind, chat));
  out.values["locale"] = view.lang == "zh" ? "\"zh_cn\"" : "\"en_us\"";
  out.values["timestamp"] = format("\"{}\"", now);
  out.values["sign"] =
      receiver.secret.empty() ? "" : in_json(feishu_signature(receiver.secret, now));
  out.values["topic"] = in_json(receiver.topic);
  // ntfy: 5 rings, 3 is its default; tags are names of emoji.
  out.values["priority"] = resolved || severity == "info" ? "3"
                           : severity == "critical"       ? "5"
                                                          : "4";
  out.values["tag"] = resolved                 ? "\"white_check_mark\""
                      : severity == "critical" ? "\"rotating_light\""
                      : severity == "warning"  ? "\"warning\""
                                               : "\"information_source\"";
  for (const std::string& line : chat.lines)
    out.lists["lines"].push_back({{{"line", in_json(line)}, {"comma", ","}}, {}});
  out.lists["lines"].back().values["comma"] = "";
  return out;
}

using LabelMap = std::map<std::string, std::string>;

LabelMap labels_of(const Alarm& alarm, const AlarmView& view) {
  LabelMap out;
  for (const auto& [name, value] : alarm.event.labels)
    out[name == "job" ? "exported_job" : name] = value;  // as Prometheus calls Slurm's
  out["alertname"] = alert_name(alarm.rule.id);
  out["instance"] = view.machine;
  out["job"] = "cufit";
  out["rule"] = alarm.rule.id;
  out["severity"] = alarm.rule.severity;
  if (alarm.is_test) out["test"] = "true";
  return out;
}

void keep_common(LabelMap& common, const LabelMap& other) {
  std::erase_if(common, [&](const auto& one) {
    const auto found = other.find(one.first);
    return found == other.end() || found->second != one.second;
  });
}

Scope webhook_scope(const std::vector<Alarm>& alarms, const AlarmView& view) {
  Scope out;
  LabelMap common, common_annotations;
  for (size_t i = 0; i < alarms.size(); ++i) {
    const Alarm& alarm = alarms[i];
    const AlarmText text =
        alarm_text(alarm, view, [](std::string_view name) { return std::string(name); });
    const LabelMap labels = labels_of(alarm, view);
    const LabelMap annotations = {
        {"summary", view.machine + (view.lang == "zh" ? "：" : ": ") + text.summary},
        {"description", text.description},
        {"runbook", text.runbook}};
    const std::string shown = Json(labels).dump();
    Scope one;
    one.values["labels"] = shown;
    one.values["annotations"] = Json(annotations).dump();
    one.values["status"] = alarm.is_resolved() ? "resolved" : "firing";
    one.values["starts_at"] = alarm_time_utc(alarm.event.since);
    one.values["ends_at"] =
        alarm.is_resolved() ? alarm_time_utc(alarm.event.until) : "0001-01-01T00:00:00Z";
    one.values["fingerprint"] = sha256(shown).substr(0, 16);
    one.values["comma"] = i + 1 < alarms.size() ? "," : "";
    out.lists["alerts"].push_back(std::move(one));
    if (i == 0) {
      common = labels;
      common_annotations = annotations;
    }
    keep_common(common, labels);
    keep_common(common_annotations, annotations);
  }
  const Json group(LabelMap{{"instance", view.machine}});
  out.values["status"] = alarms[0].is_resolved() ? "resolved" : "firing";
  out.values["group_labels"] = group.dump();
  out.values["group_key"] = in_json(format("{{}}:{{instance={}}}", in_json(view.machine)));
  out.values["common_labels"] = Json(common).dump();
  out.values["common_annotations"] = Json(common_annotations).dump();
  return out;
}

}  // namespace

AlarmPost alarm_post(const Receiver& receiver, const std::vector<Alarm>& alarms,
                     const AlarmView& view, int64_t now) {
  CUFIT_CHECK(!alarms.empty(), "a message about nothing");
  const Scope scope = receiver.kind == ReceiverKind::webhook
                          ? webhook_scope(alarms, view)
                          : chat_scope(receiver, alarms, view, now);
  AlarmPost out;
  out.url =
      receiver.kind == ReceiverKind::dingtalk ? dingtalk_url(receiver, now * 1000) : receiver.url;
  out.body =
      fill_template(notify_template(template_of(receiver.kind)), scope, view.lang, view.knowledge);
  return out;
}

}  // namespace cufit::report
