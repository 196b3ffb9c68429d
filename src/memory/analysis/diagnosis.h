// SPDX-License-Identifier: Apache-2.0
// All that `cufit mem explain` says of one device of a snapshot, as numbers and ids.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "memory/analysis/advice.h"
#include "memory/analysis/footprint.h"

namespace cufit::analysis {

struct Instant {
  Moment moment;
  std::optional<uint32_t> step;
  Footprint by_category{};
  std::vector<Site> by_frame;
};

struct OomInstant {
  Instant instant;
  memory::OutOfMemory request;  // as the model met it; sizes are PyTorch's
  Place place;                  // that asked
  std::optional<uint64_t> device_free;
  Limits limits;
  // The model would have served the request: it may be wrong about what was cached.
  bool served_by_model = false;
  bool caught = false;          // a library had another way and went on
  uint32_t requests_later = 0;  // allocations of the trace after it: the program went on
};

// What happened, without a word on why.
struct Observation {
  Lifetimes lifetimes;
  Steps steps;
  std::vector<Category> categories;
  History history;
  Instant peak;
  std::optional<OomInstant> oom;
  uint64_t peak_reserved_bytes = 0;
  uint64_t highest_pending_bytes = 0;
  uint32_t ooms = 0;          // requests of the trace that could not be served
  std::vector<Site> growing;  // at the end of work, what grows; empty unless history says so
};

struct Diagnosis : Observation {
  std::vector<Cause> causes;  // best first
  bool evaluates = false;     // what comes after the last finished step is no step
  // Of the recorded end, or as the user gave them; absent: neither.
  std::optional<Limits> limits;
  std::vector<Advice> advice;
  std::vector<std::string> replay_limitations;
};

// What an observation begins with and what needs no verification: no sizes yet.
struct Outline {
  Lifetimes lifetimes;
  Steps steps;
  std::vector<Category> categories;
};
Outline outline_of(const memory::Snapshot& snapshot, const memory::VerifiedRecording& unverified);

// `limit` as below. `outline`, if there is one, is of the same snapshot and program.
Observation observe(const memory::Snapshot& snapshot, const memory::VerifiedRecording& verified,
                    std::optional<uint64_t> limit, std::optional<Outline> outline = {});

// What can be begun before the verification, on threads of its own where that is worth it.
struct EarlyWork {
  EarlyTrials trials;
  std::vector<std::future<void>> workers;  // at the trials
  std::future<Outline> outline;
};
EarlyWork begin_early(std::shared_ptr<const memory::Snapshot> snapshot,
                      const memory::VerifiedRecording& unverified);

// `limit`: what the user says the process was allowed, bytes.
// `early`: what was begun before the recording was verified.
Result<Diagnosis> diagnose(const memory::Snapshot& snapshot,
                           const memory::VerifiedRecording& verified, std::optional<uint64_t> limit,
                           EarlyWork early = {});

}  // namespace cufit::analysis
