// SPDX-License-Identifier: Apache-2.0
#include "report/notify/receiver.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/format.h"
#include "base/hmac.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::report {
namespace {

constexpr size_t k_longest_address = 4096, k_longest_origin = 200;

struct KindRow {
  std::string_view word;
  ReceiverKind kind;
  std::string_view hosts;  // blanks between
};
constexpr KindRow k_kinds[] = {
    {"slack", ReceiverKind::slack, "hooks.slack.com hooks.slack-gov.com"},
    {"feishu", ReceiverKind::feishu, "open.feishu.cn open.larksuite.com"},
    {"dingtalk", ReceiverKind::dingtalk, "oapi.dingtalk.com"},
    {"wecom", ReceiverKind::wecom, "qyapi.weixin.qq.com"},
    {"ntfy", ReceiverKind::ntfy, "ntfy.sh"},
    {"webhook", ReceiverKind::webhook, ""},
};

Error wrong_address(std::string_view origin, const std::string& why) {
  return fail(Code::usage, format("`--notify{}{}`: {}", origin.empty() ? "" : " ",
                                  formats::printable(origin, k_longest_origin), why));
}

std::string_view word_of(ReceiverKind kind) {
  for (const KindRow& row : k_kinds)
    if (row.kind == kind) return row.word;
  return {};
}

// "HOST:PORT" without a user.
std::string_view host_and_port(std::string_view url) {
  std::string_view out = url.substr(url.find("://") + 3);
  out = out.substr(0, out.find_first_of("/?#"));
  const size_t at = out.rfind('@');
  return at == out.npos ? out : out.substr(at + 1);
}

ReceiverKind kind_of_host(std::string_view url) {
  const std::string_view place = host_and_port(url);
  const std::string host = lower(place.substr(0, place.rfind(':')));
  for (const KindRow& row : k_kinds)
    for (const std::string_view one : split(row.hosts, ' '))
      if (!one.empty() && host == one) return row.kind;
  return ReceiverKind::webhook;
}

// Takes `secret=...` out of the query.
std::string take_secret(std::string& url) {
  const size_t query = url.find('?');
  if (query == url.npos) return {};
  std::string out, kept;
  const std::string parameters = url.substr(query + 1);
  for (const std::string_view one : split(parameters, '&')) {
    if (starts_with(one, "secret="))
      out = one.substr(7);
    else if (!one.empty())
      kept += (kept.empty() ? "?" : "&") + std::string(one);
  }
  url = url.substr(0, query) + kept;
  return out;
}

// ".../topic?auth=..." -> ".../?auth=..." and "topic".
Result<void> take_topic(Receiver& receiver, std::string_view origin) {
  const size_t query = std::min(receiver.url.find('?'), receiver.url.size());
  std::string place = receiver.url.substr(0, query);
  const std::string parameters = receiver.url.substr(query);
  while (place.back() == '/') place.pop_back();
  const size_t slash = place.rfind('/');
  if (slash < place.find("://") + 3)
    return wrong_address(origin, "an address of ntfy ends with a topic: https://ntfy.sh/TOPIC");
  receiver.topic = place.substr(slash + 1);
  receiver.url = place.substr(0, slash + 1) + parameters;
  return {};
}

ReceiverVerdict refused(std::string why) {
  return {ReceiverVerdict::Outcome::refused, std::move(why)};
}

// "310000 sign not match" of {"errcode":310000,"errmsg":"sign not match"}.
ReceiverVerdict judge_body(std::string_view body, std::initializer_list<std::string_view> codes,
                           std::string_view words, std::initializer_list<int64_t> passing) {
  const std::optional<Json> answer = Json::parse(body);
  const Json* code = nullptr;
  if (answer && answer->is_object())
    for (const std::string_view name : codes)
      if (code == nullptr) code = answer->member(name);
  if (code == nullptr || !code->is_number_integer())
    return refused(format("an answer of another service: {}", formats::printable(body, 100)));
  if (code->integer() == 0) return {};
  const bool later = std::find(passing.begin(), passing.end(), code->integer()) != passing.end();
  return {later ? ReceiverVerdict::Outcome::later : ReceiverVerdict::Outcome::refused,
          format("{} {}", code->integer(), formats::printable(answer->text_at(words), 200))};
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? std::string(1, c) : format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

Result<Receiver> parse_receiver(std::string_view address, std::string_view origin) {
  Receiver out;
  if (address.size() > k_longest_address)
    return wrong_address(origin, format("an address of more than {} bytes", k_longest_address));
  for (const char c : address)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f)
      return wrong_address(origin, "an address with a blank or a control character");
  const size_t scheme_end = std::min(address.find("://"), address.size());
  const size_t plus = address.substr(0, scheme_end).find('+');
  std::optional<ReceiverKind> named;
  if (plus != address.npos) {
    for (const KindRow& row : k_kinds)
      if (lower(address.substr(0, plus)) == row.word) named = row.kind;
    if (!named)
      return wrong_address(
          origin,
          "what stands before `+` is none of slack, feishu, dingtalk, wecom, ntfy, webhook");
    address.remove_prefix(plus + 1);
  }
  const std::string scheme =
      lower(address.substr(0, std::min(address.find("://"), address.size())));
  if (scheme != "http" && scheme != "https")
    return wrong_address(
        origin,
        "an address begins with https:// or http://, or names what holds it: @FILE, env:NAME");
  out.url = scheme + std::string(address.substr(scheme.size()));
  out.url = out.url.substr(0, out.url.find('#'));
  const std::string_view host = host_and_port(out.url);
  if (host.empty() || host[0] == ':') return wrong_address(origin, "an address without a host");
  out.kind = named.value_or(kind_of_host(out.url));
  out.shown =
      format("{}://{}/... ({}{}{})", scheme, formats::printable(host, 200), word_of(out.kind),
             origin.empty() ? "" : ", ", formats::printable(origin, k_longest_origin));
  if (out.kind == ReceiverKind::feishu || out.kind == ReceiverKind::dingtalk)
    out.secret = take_secret(out.url);
  if (out.kind == ReceiverKind::ntfy)
    if (Result<void> taken = take_topic(out, origin); !taken) return taken.error();
  return out;
}

ReceiverVerdict judge_answer(ReceiverKind kind, long status, std::string_view body) {
  if (status >= 300 && status < 400)
    return refused(
        format("HTTP {}: the address has moved, and redirects are not followed", status));
  if (status < 200 || status >= 300) {
    const bool later = status == 408 || status == 425 || status == 429 || status >= 500;
    const std::string said = formats::printable(trim(body.substr(0, 100)), 100);
    return {later ? ReceiverVerdict::Outcome::later : ReceiverVerdict::Outcome::refused,
            said.empty() ? format("HTTP {}", status) : format("HTTP {}: {}", status, said)};
  }
  switch (kind) {
    case ReceiverKind::feishu:  // 11232, 9499: too many messages
      return judge_body(body, {"code", "StatusCode"}, "msg", {11232, 9499});
    case ReceiverKind::dingtalk:  // 130101: more than 20 in a minute; -1: busy
      return judge_body(body, {"errcode"}, "errmsg", {130101, -1});
    case ReceiverKind::wecom:  // 45009: more than 20 in a minute; -1: busy
      return judge_body(body, {"errcode"}, "errmsg", {45009, -1});
    default:
      return {};
  }
}

std::string without_address(std::string_view said, const Receiver& receiver) {
  constexpr size_t k_shortest = 5;  // "v2" and "bot" are no secrets, and words of answers
  const std::string_view behind =
      std::string_view(receiver.url).substr(receiver.url.find("://") + 3);
  std::vector<std::string> words = {receiver.secret, receiver.topic};
  std::string word;
  for (const char c : behind.substr(std::min(behind.find_first_of("/?"), behind.size()))) {
    if (!contains("/?&=", std::string_view(&c, 1))) {
      word += c;
      continue;
    }
    words.push_back(std::exchange(word, {}));
  }
  words.push_back(word);
  if (const size_t at = behind.substr(0, behind.find_first_of("/?")).rfind('@'); at != behind.npos)
    words.emplace_back(behind.substr(0, at));
  std::string out(said);
  for (const std::string& each : words) {
    if (each.size() < k_shortest) continue;
    for (size_t at = out.find(each); at != out.npos; at = out.find(each, at + 3))
      out.replace(at, each.size(), "...");
  }
  return out;
}

std::string feishu_signature(std::string_view secret, int64_t seconds) {
  return base64(hmac_sha256(format("{}\n{}", seconds, secret), ""));
}

std::string dingtalk_url(const Receiver& receiver, int64_t milliseconds) {
  if (receiver.secret.empty()) return receiver.url;
  const std::string sign =
      base64(hmac_sha256(receiver.secret, format("{}\n{}", milliseconds, receiver.secret)));
  return format("{}{}timestamp={}&sign={}", receiver.url, contains(receiver.url, "?") ? "&" : "?",
                milliseconds, percent_encoded(sign));
}

}  // namespace cufit::report
