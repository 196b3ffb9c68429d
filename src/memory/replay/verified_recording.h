// SPDX-License-Identifier: Apache-2.0
// One device of a snapshot as `cufit mem` studies it: its recording, the requests in it, and how
// well the model follows them. All sizes in bytes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "memory/replay/replay.h"
#include "memory/snapshot/snapshot_recording.h"

namespace cufit::memory {

// What the recorded run could get from the driver, from a request that it could not serve: at
// least `at_least`, and less than `below`. Equal to within a byte where the card was full; a range
// as wide as the request where a memory fraction ended it.
struct RecordedLimit {
  uint64_t at_least = 0;
  uint64_t below = 0;
  bool card_full = false;  // cudaMemGetInfo had less left than the request needed
};

// One device of a snapshot, ready to be asked.
struct VerifiedRecording {
  uint32_t device = 0;
  Recording recording;
  std::shared_ptr<const Program> program = std::make_shared<const Program>();  // never null
  Verification verification;  // under the recorded settings
  // What each allocation of the program really took; 0 where the model put it elsewhere.
  std::vector<uint64_t> block_bytes;
  // Of the recorded run, bytes: what the program held, and what the allocator held from the driver.
  uint64_t peak_allocated = 0, peak_reserved = 0;
  std::string settings;          // the recorded ones as PyTorch writes them; empty: defaults
  bool settings_unread = false;  // in part: the settings are only those that the file has as fields
  std::string settings_written;  // what could not be read then
  std::optional<RecordedLimit> limit;
  // The same of a run that met a limit and lived, by giving cached memory back.
  std::optional<RecordedLimit> met_limit;
  // PyTorch's num_alloc_retries; absent where the recording does not tell, or the model not follow.
  std::optional<uint64_t> retries;

  size_t event_count() const { return recording.events.size(); }
};

// Why every replay of the recording is an estimate: ids of replay_limitations.h.
std::vector<std::string> reasons_of(const VerifiedRecording& verified);

// Whether the trace of a device tells of a request that could not be served.
bool ran_out(const Snapshot& snapshot, uint32_t device);
// The device that ran out of memory; of several, or if none did, the one with the longest trace.
uint32_t busiest_device(const Snapshot& snapshot);

// Snapshots do not name their torch. Without `version`, the newest one whose fields fit and that
// verifies exactly, else the one that comes nearest. Error{unsupported} where the snapshot has no
// trace of the device: recording was off, or it was reset.
// `meanwhile` is called before the verification, with a recording that lacks it, block_bytes and
// limit: version and settings are those that the file suggests, which nearly always stay. It may
// begin something that goes on beside the verification, with a copy of the recording, which is
// cheap; who keeps what was found out in it compares them. `limit`: what the user says the recorded
// process was allowed, bytes. Only garbage collection asks.
using Meanwhile = std::function<void(const VerifiedRecording& unverified)>;
Result<VerifiedRecording> verify_recording(const Snapshot& snapshot, uint32_t device,
                                           const std::optional<VersionProfile>& version,
                                           const Meanwhile& meanwhile = {},
                                           const std::optional<uint64_t>& limit = {});

}  // namespace cufit::memory
