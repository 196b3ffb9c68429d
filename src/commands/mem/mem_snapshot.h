// SPDX-License-Identifier: Apache-2.0
// What every command of the family `mem` begins with: a snapshot file read, one of its devices
// chosen, the model held against it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "commands/command.h"
#include "memory/replay/what_if.h"

namespace cufit::commands {

// Options that the commands share: --device N, --torch X.Y.
struct SnapshotRequest {
  std::string snapshot;  // a file, or "-"
  std::optional<std::string> device, torch;
};
template <class Request>
inline constexpr Option k_snapshot_option =
    inherited_option<Request, &Request::snapshot>("SNAPSHOT").needed();
template <class Request>
inline constexpr Option k_device_option = inherited_option<Request, &Request::device>("--device",
                                                                                      "N");
template <class Request>
inline constexpr Option k_torch_option = inherited_option<Request, &Request::torch>("--torch",
                                                                                    "X.Y");

// A pickle, plain or compressed by gzip or zstd; progress on stderr.
Result<memory::Snapshot> load_snapshot(const Context& context, const std::string& path);

// --device, else one that ran out of memory, else the one with the longest trace; usage error where
// it is no number.
Result<uint32_t> chosen_device(const std::optional<std::string>& asked,
                               const memory::Snapshot& snapshot);

// --torch; Error{usage} where it is no version that the table knows.
Result<std::optional<memory::VersionProfile>> chosen_torch(const std::optional<std::string>& asked,
                                                           const knowledge::Knowledge& knowledge);

// A snapshot and one of its devices, verified, by the options SNAPSHOT, --device and --torch.
struct OpenedRecording {
  std::string path;
  std::shared_ptr<const memory::Snapshot> snapshot;
  uint32_t device = 0;
  memory::VerifiedRecording verified;
};
// `meanwhile` and `limit`: as of memory::verify_recording, the first with the snapshot, which it
// may keep.
using MeanwhileOpened = std::function<void(const std::shared_ptr<const memory::Snapshot>& snapshot,
                                           const memory::VerifiedRecording& unverified)>;
Result<OpenedRecording> open_recording(const Context& context, const SnapshotRequest& request,
                                       const MeanwhileOpened& meanwhile = {},
                                       const std::optional<uint64_t>& limit = {});

}  // namespace cufit::commands
