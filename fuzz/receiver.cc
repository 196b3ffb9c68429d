// SPDX-License-Identifier: Apache-2.0
// Addresses of receivers and what receivers answer: any bytes; what is shown of an address holds nothing behind its host.
#include <cstdint>
#include <cstdlib>

#include "base/format.h"
#include "report/notify/receiver.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const Result<report::Receiver> receiver = report::parse_receiver(text)) {
    if (!ends_with(receiver->shown, "/...") || !starts_with(receiver->url, "http")) std::abort();
    if (contains(receiver->shown, "?") && !contains(receiver->shown, "/...")) std::abort();
    (void)report::dingtalk_url(*receiver, 1);
  } else if (text.size() > 12 && contains(receiver.error().what, text)) {
    std::abort();
  }
  for (const report::ReceiverKind kind :
       {report::ReceiverKind::feishu, report::ReceiverKind::dingtalk, report::ReceiverKind::wecom,
        report::ReceiverKind::webhook})
    for (const long status : {200L, 302L, 500L})
      if (contains(report::judge_answer(kind, status, text).why, "\n")) std::abort();
  return 0;
}
