// SPDX-License-Identifier: Apache-2.0
// What the name of a model says of the size of its weights.
#include <algorithm>

#include "base/format.h"
#include "resolve/kubernetes/start_command.h"

namespace cufit::resolve {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

uint64_t named_model_bytes(const std::string& name) {
  const std::string low = lower(name);
  for (const char* packed : {"awq", "gptq", "int4", "int8", "4bit", "8bit", "gguf", "fp8", "fp4",
                             "bnb", "w4a16", "w8a8", "nf4", "exl2", "lora",
                             // Published in 4 or 8 bit under a name that does not say so.
                             "gpt-oss", "kimi-k2"})
    if (contains(low, packed)) return 0;
  uint64_t best = 0;
  for (size_t i = 0; i < low.size(); ++i) {
    if (low[i] < '0' || low[i] > '9' ||
        (i > 0 && (is_letter_or_digit(low[i - 1]) || low[i - 1] == '.')))
      continue;
    size_t end = i;
    double value = 0, scale = 0;
    for (; end < low.size() && end - i < 8; ++end) {
      if (low[end] == '.' && scale == 0) {
        scale = 1;
      } else if (low[end] >= '0' && low[end] <= '9') {
        value =
            scale == 0 ? value * 10 + (low[end] - '0') : value + (scale /= 10) * (low[end] - '0');
      } else {
        break;
      }
    }
    if (end >= low.size() || low[end] != 'b') continue;
    if (end + 1 < low.size() && is_letter_or_digit(low[end + 1])) continue;
    if (value > 0 && value <= 5000)
      best = std::max(best, static_cast<uint64_t>(value * 1000) * 2'000'000u);
  }
  return best;
}

}  // namespace cufit::resolve
