// SPDX-License-Identifier: Apache-2.0
// NVIDIA's multi-process server (MPS): is there one that takes this user's programs, and one for a single launch. The control
// daemon takes clients by a socket, PIPES/control; the first client makes it start a server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::host {

// The folder of pipes of `variables` (CUDA_MPS_PIPE_DIRECTORY, else /tmp/nvidia-mps) where a daemon listens there; else empty.
std::string reachable_mps(const std::vector<std::string>& variables);

constexpr std::string_view k_mps_folder = "mps-";  // and the launch
struct OwnMps {
  std::string folder;  // with "pipe" and "log" in it; empty = none
};
// `program`: path of nvidia-cuda-mps-control. It serves all GPUs that it sees by `variables`. Ten seconds at most.
// Error{timeout}, Error{io}: names the log, which stays until a later start.
Result<OwnMps> start_mps(const std::string& program, const std::string& quota_folder,
                         const std::vector<std::string>& variables);
// Asks it to quit, which waits for its clients; after ten seconds they are ended with it. Then its folder is removed. `program`
// empty: the first nvidia-cuda-mps-control of PATH.
void stop_mps(const OwnMps& mps, const std::string& program = {});

std::string mps_pipe_folder(const OwnMps& mps);
std::string mps_log_folder(const OwnMps& mps);

}  // namespace cufit::host
