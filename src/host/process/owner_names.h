// SPDX-License-Identifier: Apache-2.0
// Names for what processes have as numbers: users, containers, pods; and the owners that were read before, so that a sample
// of each second does not read all of them again. One for each sampler; not for several threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "facts/gpu_sample.h"
#include "formats/system/container_records.h"
#include "host/files/host.h"
#include "host/process/user_names.h"

namespace cufit::host {

// What was read of a process, with what tells that it is another one now.
struct KeptOwner {
  uint64_t start_ticks = 0;
  std::string name, program;  // of stat and exe: an exec changes them
  double read_at = 0, seen_at = 0, program_at = 0;
  bool is_whole = false;  // command and variables were read
  std::string
      hostname;  // its variable HOSTNAME, in a pod the pod's name; no fact: it may be anything
  facts::ProcessOwner owner;
};

class OwnerNames {
 public:
  struct Sources {
    std::function<double()> seconds;  // that only grow
    UserLookup user;                  // asked where /etc/passwd does not tell; none: nobody is
  };
  OwnerNames();  // this machine's clock and name service
  explicit OwnerNames(Sources sources);

  double now() const { return sources_.seconds(); }
  KeptOwner* kept(uint32_t pid);
  facts::ProcessOwner& keep(uint32_t pid, KeptOwner owner);
  void forget(uint32_t pid) { kept_.erase(pid); }

  // Sets user, container_name, pod and pod_namespace, and runtime, where they are empty and can be told now. What is not
  // found is looked for again after 30 s.
  void name(const Host& host, facts::ProcessOwner& owner);
  // When the machine started, in seconds since the epoch; renewed, since it moves with a clock that is set.
  std::optional<double> boot_seconds(const Host& host);

 private:
  struct ContainerEntry {
    formats::ContainerNames names;
    std::string runtime;
    double looked_at = 0;
  };

  std::string user(const Host& host, uint32_t uid);
  const ContainerEntry& container(const Host& host, const facts::ProcessOwner& owner);
  const formats::ContainerNames* pod(const Host& host, const std::string& uid);
  bool is_due(double& last) const;  // 30 s or more ago; then now is the last time

  Sources sources_;
  std::map<uint32_t, KeptOwner> kept_;
  std::map<uint32_t, std::string> passwd_, users_;
  std::map<uint32_t, double> unknown_users_;                    // when they were asked for
  std::map<std::string, ContainerEntry> containers_;            // by id
  std::map<std::string, formats::ContainerNames> pods_, logs_;  // by UID, by container id
  double passwd_read_ = -1e9, pods_read_ = -1e9, logs_read_ = -1e9, boot_read_ = -1e9;
  std::optional<double> boot_;
};

}  // namespace cufit::host
