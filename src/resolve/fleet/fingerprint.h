// SPDX-License-Identifier: Apache-2.0
// What has to be equal on machines that are to do the same work: software, firmware and layout of
// the GPUs. No serial numbers, addresses or loads.
#pragma once

#include <string>
#include <vector>

#include "facts/facts.h"
#include "knowledge/knowledge.h"
#include "resolve/diff/fact_difference.h"

namespace cufit::resolve {

struct FingerprintPart {
  std::string what;   // "driver", "vbios", ...
  std::string value;  // "580.95.05"; of several GPUs with unlike values "7 x A, 1 x B"; "none"
  Topic topic = Topic::other;
  bool of_gpu = false;  // depends on the kind of GPU: compared among machines with equal GPUs
};

struct Fingerprint {
  std::vector<FingerprintPart> parts;  // in the order in which they decide; each has all
  std::string gpus;                    // the part "gpus": the kind of machine
  std::string id;                      // 12 hex digits, the same where all parts are
};

// `classes`: of a lock, which this machine would run; empty = no lock was given.
Fingerprint fingerprint_of(const facts::Facts& facts, const std::string& classes);

}  // namespace cufit::resolve
