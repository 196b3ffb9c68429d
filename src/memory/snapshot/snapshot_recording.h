// SPDX-License-Identifier: Apache-2.0
// A snapshot's trace of one device as a Recording: what replay needs of it and nothing else. It
// shares the snapshot's rows and outlives it.
#pragma once

#include <cstdint>

#include "memory/snapshot/recording.h"
#include "memory/snapshot/snapshot.h"

namespace cufit::memory {

// The settings that the snapshot says were in force (torch 2.3 on), or the defaults.
Result<Settings> recorded_settings(const Snapshot& snapshot, const VersionProfile& version);
// The part of them that the file holds as fields of its own, beside the text.
Settings settings_of_fields(const AllocatorSettings& fields);

// `device` is an index of Snapshot::traces. Snapshots do not name their torch; the caller does, as
// far as it is known. Private pools are numbered from 1 in the order of their first appearance;
// before 2.14 events do not name theirs, and it follows from the segment that they lie in, as far
// as that segment is still there at the end.
// The same without settings and version, which the file may leave open.
Result<Recording> recorded_events(const Snapshot& snapshot, uint32_t device);
Result<Recording> recording_of(const Snapshot& snapshot, uint32_t device,
                               const VersionProfile& version);

}  // namespace cufit::memory
