// SPDX-License-Identifier: Apache-2.0
// Bodies for each kind of receiver in both languages, with names that would call everybody or end a string:
// tests/watch/bodies/, UPDATE_GOLDEN=1 writes them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "base/json.h"
#include "report/notify/alarm.h"
#include "report/notify/watch_unit.h"
#include "support/places.h"

namespace cufit::report {
namespace alarm_post_test {

constexpr const char* k_hostile =
    "a\"b\\c\n</script><!channel>@all <@U1> [x](http://e) `id` *b* <at user_id=\"all\"></at> \xff";

const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

Alarm alarm_of(std::string_view id, watch::AlertLabels labels, double value) {
  Alarm out;
  for (const watch::WatchRule& rule : watch::alert_rules(tables()))
    if (rule.id == id) out.rule = rule;
  EXPECT_EQ(out.rule.id, id);
  out.event.labels = std::move(labels);
  out.event.value = value;
  out.event.since = 1796032800;
  out.event.until = 1796033100;
  return out;
}

std::vector<Alarm> hostile_alarms() {
  return {alarm_of("process_memory_full",
                   {{"gpu", "0"},
                    {"uuid", "GPU-0"},
                    {"pid", "41"},
                    {"user", k_hostile},
                    {"command", k_hostile},
                    {"job", "77"}},
                   1200),
          alarm_of("gpu_xid_fatal", {{"gpu", "1"}, {"uuid", "GPU-1"}, {"xid", "79"}}, 1)};
}

AlarmView view_of(const std::string& lang) { return {"gpu7", lang, 8 * 3600, tables()}; }

struct Kind {
  const char* name;
  const char* address;
};
constexpr Kind k_kinds[] = {
    {"slack", "https://hooks.slack.com/services/T0/B0/secret"},
    {"feishu", "https://open.feishu.cn/open-apis/bot/v2/hook/secret?secret=key"},
    {"dingtalk", "https://oapi.dingtalk.com/robot/send?access_token=secret&secret=SECkey"},
    {"wecom", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=secret"},
    {"ntfy", "https://ntfy.sh/secret-topic"},
    {"webhook", "https://alarms.example/secret"},
};

std::string body_of(const Kind& kind, const std::string& lang) {
  const Result<Receiver> receiver = parse_receiver(kind.address);
  EXPECT_TRUE(receiver);
  return alarm_post(*receiver, hostile_alarms(), view_of(lang), 1796033100).body;
}

// A container of root's has no sudo, and needs none. Who reads a message may be somebody else.
TEST(AlarmLine, TellsRootNoSudo) {
  const Alarm alarm = hostile_alarms()[1];
  AlarmView view = view_of("en");
  EXPECT_TRUE(contains(alarm_line(alarm, view), "`sudo cufit doctor`"));
  view.as_root = true;
  EXPECT_TRUE(contains(alarm_line(alarm, view), "`cufit doctor`"));
  EXPECT_TRUE(contains(alarm_json(alarm, view), "sudo cufit doctor"));
}

TEST(AlarmPost, BodiesAreTheGoldenOnes) {
  for (const Kind& kind : k_kinds)
    for (const char* lang : {"en", "zh"}) {
      const std::string path =
          format("{}/tests/watch/bodies/{}-{}.json", test::source_dir(), kind.name, lang);
      const std::string body = body_of(kind, lang);
      if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << body;
      std::stringstream kept;
      kept << std::ifstream(path).rdbuf();
      EXPECT_EQ(body, kept.str()) << path;
    }
}

TEST(AlarmPost, HostileNamesCallNobody) {
  for (const Kind& kind : k_kinds)
    for (const char* lang : {"en", "zh"}) {
      const std::string body = body_of(kind, lang);
      const std::optional<Json> json = Json::parse(body);
      ASSERT_TRUE(json) << kind.name << body;
      EXPECT_FALSE(contains(body, "secret-topic") && kind.name != std::string_view("ntfy"));
      if (kind.name == std::string_view("webhook") || kind.name == std::string_view("ntfy"))
        continue;  // data, and literal text
      for (const char* mark : {"<!channel>", "<@U1>", "@all", "<at "})
        EXPECT_FALSE(contains(body, mark)) << kind.name << ": " << mark;
      if (kind.name == std::string_view("dingtalk") || kind.name == std::string_view("wecom")) {
        EXPECT_FALSE(contains(body, "[x](")) << kind.name;
      }
    }
}

// The words of a rule may come from a file that somebody else wrote. Its step stays one that can be pasted.
TEST(AlarmPost, RulesCallNobody) {
  std::vector<Alarm> alarms = {hostile_alarms()[0]};
  for (watch::AlertTexts* texts : {&alarms[0].rule.en, &alarms[0].rule.zh})
    texts->summary = texts->description = "now @all <!channel> <@U1> <at id=all> [x](http://e)";
  alarms[0].rule.runbook = "ssh root@gpu7 `id` <@U1> <at id";
  for (const Kind& kind : k_kinds) {
    if (kind.name == std::string_view("webhook") || kind.name == std::string_view("ntfy")) continue;
    const std::string body =
        alarm_post(*parse_receiver(kind.address), alarms, view_of("en"), 1796033100).body;
    ASSERT_TRUE(Json::parse(body)) << kind.name;
    for (const char* mark : {"now @all", "<!channel>", "<@U1>", "<at id"})
      EXPECT_FALSE(contains(body, mark)) << kind.name << ": " << mark;
    EXPECT_TRUE(contains(body, "ssh root@gpu7")) << kind.name;
    if (kind.name != std::string_view("feishu")) {
      EXPECT_FALSE(contains(body, "[x](")) << kind.name;
      EXPECT_FALSE(contains(body, "`id`")) << kind.name;
    }
  }
}

// What reads Alertmanager's webhooks looks for these.
TEST(AlarmPost, TheWebhookIsAlertmanagers) {
  std::vector<Alarm> alarms = hostile_alarms();
  for (Alarm& alarm : alarms) alarm.event.kind = watch::AlertEvent::Kind::resolved;
  const Receiver receiver = *parse_receiver("http://127.0.0.1:9/");
  const Json body = *Json::parse(alarm_post(receiver, alarms, view_of("en"), 0).body);
  EXPECT_EQ(body.text_at("version"), "4");
  EXPECT_EQ(body.text_at("status"), "resolved");
  EXPECT_EQ(body.text_at("groupKey"), "{}:{instance=\"gpu7\"}");
  const Json& alerts = *body.member("alerts");
  ASSERT_EQ(alerts.size(), 2u);
  EXPECT_EQ(alerts[0].member("labels")->text_at("alertname"), "CufitProcessMemoryFull");
  EXPECT_EQ(alerts[0].member("labels")->text_at("job"), "cufit");
  EXPECT_EQ(alerts[0].member("labels")->text_at("exported_job"), "77");
  EXPECT_EQ(alerts[1].member("annotations")->text_at("summary"), "gpu7: GPU 1 reported Xid 79");
  EXPECT_EQ(alerts[0].text_at("startsAt"), "2026-11-30T10:00:00Z");
  EXPECT_EQ(alerts[0].text_at("endsAt"), "2026-11-30T10:05:00Z");
  EXPECT_NE(alerts[0].text_at("fingerprint"), alerts[1].text_at("fingerprint"));
  EXPECT_EQ(body.member("commonLabels")->text_at("instance"), "gpu7");
  EXPECT_FALSE(body.member("commonLabels")->contains("gpu"));
}

TEST(AlarmPost, ManyAlarmsAreOneShortMessage) {
  std::vector<Alarm> alarms;
  for (int i = 0; i < 400; ++i)
    alarms.push_back(alarm_of("gpu_lost", {{"gpu", std::to_string(i)}, {"uuid", "U"}}, 1));
  for (const Kind& kind : k_kinds) {
    if (kind.name == std::string_view("webhook")) continue;
    const std::string body =
        alarm_post(*parse_receiver(kind.address), alarms, view_of("zh"), 0).body;
    EXPECT_LT(body.size(), 4600u) << kind.name;
    EXPECT_TRUE(contains(body, "400")) << kind.name;
  }
}

TEST(Receiver, IsToldByItsSchemeOrHost) {
  const std::pair<const char*, ReceiverKind> cases[] = {
      {"https://hooks.slack.com/services/a", ReceiverKind::slack},
      {"https://HOOKS.slack.com:443/services/a", ReceiverKind::slack},
      {"https://hooks.slack.com.evil.example/a", ReceiverKind::webhook},
      {"https://user:hooks.slack.com@evil.example/a", ReceiverKind::webhook},
      {"slack+http://127.0.0.1:80/a", ReceiverKind::slack},
      {"https://open.larksuite.com/a", ReceiverKind::feishu},
      {"wecom+https://proxy.example/a", ReceiverKind::wecom},
      {"ntfy+https://ntfy.example/topic", ReceiverKind::ntfy},
      {"webhook+https://ntfy.sh/topic", ReceiverKind::webhook},
      {"http://[::1]:9093/a", ReceiverKind::webhook}};
  for (const auto& [address, kind] : cases) {
    const Result<Receiver> receiver = parse_receiver(address);
    ASSERT_TRUE(receiver) << address;
    EXPECT_EQ(receiver->kind, kind) << address;
  }
  for (const char* address : {"", "hooks.slack.com/secret", "ftp://a/secret", "https:///secret",
                              "matrix+https://a/secret", "https://a/secret b", "https://ntfy.sh",
                              "https://ntfy.sh/", "https://:80/secret"}) {
    const Result<Receiver> receiver = parse_receiver(address);
    ASSERT_FALSE(receiver) << address;
    EXPECT_FALSE(contains(receiver.error().text(), "secret")) << address;
  }
}

TEST(Receiver, ShowsNoSecret) {
  for (const Kind& kind : k_kinds) {
    const Receiver receiver = *parse_receiver(kind.address);
    EXPECT_FALSE(contains(receiver.shown, "secret")) << receiver.shown;
    EXPECT_TRUE(contains(receiver.shown, "/... (")) << receiver.shown;
  }
  EXPECT_EQ(parse_receiver("https://ann:secret@a.example/x")->shown,
            "https://a.example/... (webhook)");
  EXPECT_EQ(parse_receiver("slack+https://a.example/x", "@/etc/a\x1b")->shown,
            "https://a.example/... (slack, @/etc/a?)");
}

// The codes are those that Python's hmac makes as the services' pages show it.
TEST(Receiver, SignsAsFeishuAndDingTalkAsk) {
  EXPECT_EQ(feishu_signature("key", 1599360473), "Dj3J6+l2ORqf/uSfLExhM/QcvBgAfrEeQaFEb4fzUc4=");
  const Receiver receiver =
      *parse_receiver("https://oapi.dingtalk.com/robot/send?secret=SECkey&access_token=t");
  EXPECT_EQ(receiver.url, "https://oapi.dingtalk.com/robot/send?access_token=t");
  EXPECT_EQ(dingtalk_url(receiver, 1599360473000),
            "https://oapi.dingtalk.com/robot/"
            "send?access_token=t&timestamp=1599360473000&sign="
            "xyLyrKhL3V1nSQoJduoTBgm73SR2lV1DrX8frCVD4WQ%3D");
}

TEST(Receiver, AnswersAreJudgedByTheBody) {
  using Outcome = ReceiverVerdict::Outcome;
  struct Answer {
    ReceiverKind kind;
    long status;
    const char* body;
    Outcome outcome;
    const char* why;
  };
  const Answer answers[] = {
      {ReceiverKind::slack, 200, "ok", Outcome::arrived, ""},
      {ReceiverKind::slack, 404, "no_service", Outcome::refused, "HTTP 404: no_service"},
      {ReceiverKind::slack, 429, "", Outcome::later, "HTTP 429"},
      {ReceiverKind::webhook, 503, "", Outcome::later, "HTTP 503"},
      {ReceiverKind::webhook, 302, "", Outcome::refused,
       "HTTP 302: the address has moved, and redirects are not followed"},
      {ReceiverKind::feishu, 200, R"({"code":0,"msg":"success"})", Outcome::arrived, ""},
      {ReceiverKind::feishu, 200, R"({"StatusCode":0,"StatusMessage":"success"})", Outcome::arrived,
       ""},
      {ReceiverKind::feishu, 200, R"({"code":19021,"msg":"sign match fail"})", Outcome::refused,
       "19021 sign match fail"},
      {ReceiverKind::feishu, 200, R"({"code":11232,"msg":"limited"})", Outcome::later,
       "11232 limited"},
      {ReceiverKind::dingtalk, 200, R"({"errcode":0,"errmsg":"ok"})", Outcome::arrived, ""},
      {ReceiverKind::dingtalk, 200, R"({"errcode":310000,"errmsg":"keywords not in content"})",
       Outcome::refused, "310000 keywords not in content"},
      {ReceiverKind::dingtalk, 200, R"({"errcode":130101,"errmsg":"send too fast"})",
       Outcome::later, "130101 send too fast"},
      {ReceiverKind::wecom, 200, R"({"errcode":93000,"errmsg":"invalid webhook url"})",
       Outcome::refused, "93000 invalid webhook url"},
      {ReceiverKind::wecom, 200, "<html>", Outcome::refused,
       "an answer of another service: <html>"},
      {ReceiverKind::wecom, 200, R"({"errcode":"0"})", Outcome::refused,
       R"(an answer of another service: {"errcode":"0"})"}};
  for (const Answer& answer : answers) {
    const ReceiverVerdict verdict = judge_answer(answer.kind, answer.status, answer.body);
    EXPECT_EQ(verdict.outcome, answer.outcome) << answer.body;
    EXPECT_EQ(verdict.why, answer.why);
  }
}

TEST(WatchUnit, WordsAreSystemds) {
  EXPECT_EQ(systemd_word("/usr/bin/cufit"), "/usr/bin/cufit");
  EXPECT_EQ(systemd_word(""), "\"\"");
  EXPECT_EQ(systemd_word("a b"), "\"a b\"");
  EXPECT_EQ(systemd_word("@x"), "\"@x\"");
  EXPECT_EQ(systemd_word("50% of $X \"q\" \\ \n;"), "\"50%% of $$X \\\"q\\\" \\\\ \\x0a;\"");
}

TEST(AlarmTime, IsTheCalendars) {
  EXPECT_EQ(alarm_time_utc(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(alarm_time_utc(951782399), "2000-02-28T23:59:59Z");
  EXPECT_EQ(alarm_time_utc(951782400), "2000-02-29T00:00:00Z");
  EXPECT_EQ(alarm_time_utc(4107542399.5), "2100-02-28T23:59:59Z");
  EXPECT_EQ(alarm_time_utc(4107542400), "2100-03-01T00:00:00Z");
  EXPECT_EQ(alarm_time(-1, 0), "1969-12-31 23:59:59");
  EXPECT_EQ(alarm_time(0, 8 * 3600), "1970-01-01 08:00:00");
}

}  // namespace alarm_post_test
}  // namespace cufit::report
