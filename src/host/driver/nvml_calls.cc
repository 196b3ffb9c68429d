// SPDX-License-Identifier: Apache-2.0
#include "host/driver/nvml_calls.h"

#include "base/format.h"

namespace cufit::host {

using namespace nvml;

WhyNot NvmlCalls::why_of(int result) {
  switch (result) {
    case k_no_symbol:
    case k_not_supported:
    case k_function_not_found:
    case k_argument_version_mismatch:
    case k_deprecated:
      return WhyNot::not_supported;
    case k_no_permission:
      return WhyNot::no_permission;
    case k_timeout:
      return WhyNot::timeout;
    default:
      return WhyNot::not_present;
  }
}

std::string NvmlCalls::text_of(int result) const {
  if (result == k_no_symbol) return "the library has no such function";
  auto* describe = reinterpret_cast<const char* (*)(int)>(calls_.find("nvmlErrorString"));
  const char* words = describe ? describe(result) : nullptr;
  return format("{} ({})", words ? words : "NVML error", result);
}

// Codes that say something about the GPU and not about the one field that was asked for.
void NvmlCalls::note_state(int result, const char* name) {
  bool about_the_gpu =
      result == k_corrupted_inforom || result == k_gpu_is_lost || result == k_reset_required;
  if (!gpu_ || !about_the_gpu || gpu_->state_code.value_or(0) != 0) return;
  gpu_->state_code = known(result, SourceKind::nvml, name);
}

Fact<std::string> NvmlCalls::text(Device device, const char* name) {
  char buffer[128] = {};  // the longest documented is 96
  int result =
      calls_.call<int(Device, char*, uint32_t)>(name, device, buffer, uint32_t{sizeof buffer});
  buffer[sizeof buffer - 1] = 0;
  return answer<std::string>(result, name, buffer);
}

Fact<uint32_t> NvmlCalls::number(Device device, const char* name) {
  uint32_t value = 0;
  int result = calls_.call<int(Device, uint32_t*)>(name, device, &value);
  return answer(result, name, value);
}

Fact<bool> NvmlCalls::flag(Device device, const char* name) {
  uint32_t value = 0;
  int result = calls_.call<int(Device, uint32_t*)>(name, device, &value);
  return answer(result, name, value != 0);
}

void NvmlCalls::flags(Device device, const char* name, Fact<bool>& current, Fact<bool>& pending) {
  uint32_t now = 0, later = 0;
  int result = calls_.call<int(Device, uint32_t*, uint32_t*)>(name, device, &now, &later);
  current = answer(result, name, now != 0);
  pending = answer(result, name, later != 0);
}

}  // namespace cufit::host
