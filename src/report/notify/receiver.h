// SPDX-License-Identifier: Apache-2.0
// Where alarms are sent to: an address and the kind of service behind it. The address is a secret: only `shown` is printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::report {

enum class ReceiverKind { webhook, slack, feishu, dingtalk, wecom, ntfy };

struct Receiver {
  ReceiverKind kind = ReceiverKind::webhook;
  std::string url;     // that is posted to; begins with http:// or https://
  std::string shown;   // "https://hooks.slack.com/... (slack)"
  std::string secret;  // of `secret=` of Feishu and DingTalk: signs messages, is not sent
  std::string topic;   // of ntfy
};

// "https://hooks.slack.com/services/...", "feishu+https://bot.example/hook/...": the kind stands before the scheme, else the
// host tells it, else it is a webhook. `origin` tells it from others of its host in all that is printed: the file or variable
// that holds the address, its place among several; empty: nothing. Error{usage} without anything of the address.
Result<Receiver> parse_receiver(std::string_view address, std::string_view origin = {});

// What an answer means. Feishu, DingTalk and WeCom say in the body whether they took a message; too many messages are a
// reason to try again, a wrong signature is none.
struct ReceiverVerdict {
  enum class Outcome { arrived, later, refused } outcome = Outcome::arrived;
  std::string why;  // one printable line
};
ReceiverVerdict judge_answer(ReceiverKind kind, long status, std::string_view body);

// `said` by the service, which may repeat the address that it was asked at: without the words of it behind the host, and
// without topic and secret. Before it is cut, so that no part of one is left.
std::string without_address(std::string_view said, const Receiver& receiver);

// The signatures that Feishu and DingTalk ask for where a bot has a secret; `seconds`, `milliseconds`: since 1970.
std::string feishu_signature(std::string_view secret, int64_t seconds);
std::string dingtalk_url(const Receiver& receiver, int64_t milliseconds);

}  // namespace cufit::report
