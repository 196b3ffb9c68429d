// SPDX-License-Identifier: Apache-2.0
// Addresses of receivers and what receivers answer: any bytes; what is shown of an address holds nothing behind its host.
#include <cstdint>
#include <cstdlib>

#include "base/format.h"
#include "report/notify/receiver.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Behind a host whatever the bytes are: nothing of it is shown.
  constexpr std::string_view k_secret = "/5ecre7";
  if (contains(text, k_secret.substr(1))) return 0;  // it may be the host
  const std::string address = format("{}/a{}{}", text.substr(0, 60), k_secret, text);
  for (const std::string_view one : {std::string_view(address), text})
    if (const Result<report::Receiver> receiver = report::parse_receiver(one)) {
      // "https://host/... (slack)"
      if (!contains(receiver->shown, "/... (") || !ends_with(receiver->shown, ")")) std::abort();
      if (!starts_with(receiver->url, "http")) std::abort();
      if (contains(receiver->shown, k_secret)) std::abort();
      (void)report::dingtalk_url(*receiver, 1);
    } else if (contains(receiver.error().what, k_secret)) {
      std::abort();
    }
  for (const report::ReceiverKind kind :
       {report::ReceiverKind::feishu, report::ReceiverKind::dingtalk, report::ReceiverKind::wecom,
        report::ReceiverKind::webhook})
    for (const long status : {200L, 302L, 500L})
      if (contains(report::judge_answer(kind, status, text).why, "\n")) std::abort();
  return 0;
}
