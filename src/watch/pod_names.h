// SPDX-License-Identifier: Apache-2.0
// Names of pods from the kubelet's answer (formats/system/pod_resources.h). It says which pod has which device, by name; a
// process's cgroup says the pod's UID. Nothing has both, so that a name is found by the device, and is given only where one
// pod alone is left:
//
//  1. The answer speaks of the moment at which it was asked for. A process that began later is left for the next answer: its
//     GPU may have been another pod's then.
//  2. A UID's candidates are the pods that were given each GPU which its processes use.
//  3. If the variable HOSTNAME of one of its processes is the name of just one candidate, it is that one: the kubelet sets it.
//  4. Else if there is one candidate, it is that one. Not so where HOSTNAME is the name of another pod of this machine (a
//     privileged pod can use what it was not given), or where some id of a device is of an unknown form (then the device may
//     be anyone's as well).
//  5. Two UIDs are not one pod: where they would be, neither is named. A name that is known from elsewhere counts.
//
// Where several pods share a GPU and HOSTNAME tells nothing (hostNetwork, a hostname of its own), the UID stays without a name.
// Not excluded: a privileged pod with the network of its host, alone on a GPU that was given to a pod which does not use it;
// and variables that a user sets to the name of a neighbour on the same GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "facts/gpu_sample.h"
#include "formats/system/pod_resources.h"

namespace cufit::watch {

class PodNames {
 public:
  // A whole answer to what was asked at `asked` (seconds since the epoch). `minors`: UUIDs by number of the device file.
  void take(const formats::PodResources& answer, double asked,
            const std::map<uint32_t, std::string>& minors);
  // Why the last question had no answer; empty: it had one.
  void set_problem(std::string why) { problem_ = std::move(why); }

  // Names processes and what each GPU is given to; where names are left out, `missing` says why. `hostname` of a pid: the
  // variable, empty = none or not readable.
  void name(facts::GpuSample& sample, const std::function<std::string(uint32_t)>& hostname);

 private:
  // Of one pod in the sample.
  struct PodOnGpus {
    std::vector<size_t> processes;     // places in the sample
    std::set<uint32_t> gpus;           // places
    std::set<std::string> containers;  // ids
    std::set<std::string> hostnames;
    bool is_later = false;  // one of them began after the question
  };
  using PodsOnGpus = std::map<std::string, PodOnGpus>;  // by UID

  PodsOnGpus pods_of(const facts::GpuSample& sample,
                     const std::function<std::string(uint32_t)>& hostname) const;
  std::set<size_t> candidates(const PodOnGpus& pod, const facts::GpuSample& sample) const;
  struct Found {
    const formats::NodePod* pod = nullptr;
    bool is_certain = false;  // by HOSTNAME
  };
  Found one_of(const std::set<size_t>& candidates, const PodOnGpus& pod) const;
  void learn_known(const PodsOnGpus& pods, const facts::GpuSample& sample);
  void find_names(const PodsOnGpus& pods, const facts::GpuSample& sample);
  void name_container(const PodOnGpus& pod, facts::GpuSample& sample) const;
  void tell_gpus(facts::GpuSample& sample) const;
  void say_missing(const PodsOnGpus& pods, facts::GpuSample& sample) const;

  using Name = std::pair<std::string, std::string>;  // namespace, name
  struct KnownName {
    Name name;
    bool is_certain =
        false;  // by HOSTNAME, or from elsewhere: another pod's claim does not take it away
  };
  void settle(const Name& name, const std::map<std::string, bool>& certain_of_uid);

  formats::PodResources answer_;
  double asked_ = 0;
  std::map<std::string, std::set<std::pair<size_t, size_t>>> given_;  // UUID: pod, container
  std::string unknown_device_;  // resource of one whose id does not tell the GPU; empty: none is
  std::string problem_;
  std::map<std::string, KnownName> names_;  // by UID, of pods in the last sample
};

}  // namespace cufit::watch
