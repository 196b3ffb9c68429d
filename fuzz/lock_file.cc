// SPDX-License-Identifier: Apache-2.0
// cufit.lock and [policy]: any text; what was read as a lock is written and read again unchanged,
// and routing over it ends.
#include "resolve/lock/lock_file.h"

#include <cstdlib>

#include "resolve/wheel/policy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cufit::resolve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const cufit::knowledge::Knowledge& knowledge = cufit::knowledge::Knowledge::builtin();
  static const Target target = *described_target("GTX 1080 + RTX 4090,535", knowledge);
  if (const auto policy = parse_policy(text, "fuzz")) (void)forbids(*policy, target, knowledge);
  const auto lock = parse_lock(text, "fuzz");
  if (!lock) return 0;
  (void)route(*lock, target, knowledge);
  const std::string written = lock_text(*lock);
  const auto again = parse_lock(written, "fuzz");
  if (!again || lock_text(*again) != written) std::abort();
  return 0;
}
