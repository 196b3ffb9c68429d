// SPDX-License-Identifier: Apache-2.0
// `--for "RTX 4090,535"`: any text; what is understood can be resolved.
#include "resolve/wheel/resolve.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::resolve;
  static const cufit::knowledge::Knowledge& knowledge = cufit::knowledge::Knowledge::builtin();
  const auto target = described_target({reinterpret_cast<const char*>(data), size}, knowledge);
  if (target && target->gpus.size() < 4) (void)resolve(*target, {}, knowledge);
  return 0;
}
