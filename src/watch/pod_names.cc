// SPDX-License-Identifier: Apache-2.0
#include "watch/pod_names.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/format.h"

namespace cufit::watch {
namespace {

// When the machine started is known to the second (btime of /proc/stat), and moves by as much.
constexpr double k_start_margin_seconds = 2;

// A label of a DNS name has at most 63 letters: the kubelet cuts a longer name, and what would end it badly.
std::string hostname_of_pod(std::string name) {
  if (name.size() <= 63) return name;
  name.resize(63);
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  return name;
}

}  // namespace

void PodNames::take(const formats::PodResources& answer, double asked,
                    const std::map<uint32_t, std::string>& minors) {
  answer_ = answer;
  asked_ = asked;
  given_.clear();
  unknown_device_.clear();
  for (size_t pod = 0; pod < answer_.pods.size(); ++pod) {
    const std::vector<formats::PodContainer>& containers = answer_.pods[pod].containers;
    for (size_t container = 0; container < containers.size(); ++container)
      for (const formats::PodDevice& device : containers[container].devices) {
        formats::NamedGpu gpu = formats::gpu_of_device(device);
        if (gpu.minor)
          if (const auto found = minors.find(*gpu.minor); found != minors.end())
            gpu.uuid = found->second;
        if (gpu.uuid.empty())
          unknown_device_ = device.resource;
        else
          given_[gpu.uuid].insert({pod, container});
      }
  }
}

PodNames::PodsOnGpus PodNames::pods_of(const facts::GpuSample& sample,
                                       const std::function<std::string(uint32_t)>& hostname) const {
  PodsOnGpus out;
  for (size_t i = 0; i < sample.processes.size(); ++i) {
    const facts::SampledProcess& process = sample.processes[i];
    const facts::ProcessOwner& owner = process.owner;
    if (owner.pod_uid.empty()) continue;
    PodOnGpus& pod = out[owner.pod_uid];
    pod.processes.push_back(i);
    pod.gpus.insert(process.gpu);
    if (!owner.container.empty()) pod.containers.insert(owner.container);
    if (std::string name = hostname(process.pid); !name.empty()) pod.hostnames.insert(name);
    if (!owner.started || *owner.started + k_start_margin_seconds > asked_) pod.is_later = true;
  }
  return out;
}

std::set<size_t> PodNames::candidates(const PodOnGpus& pod, const facts::GpuSample& sample) const {
  std::set<size_t> out;
  bool is_first = true;
  for (const uint32_t gpu : pod.gpus) {
    std::set<size_t> here;
    if (const auto found = given_.find(sample.gpus[gpu].uuid); found != given_.end())
      for (const auto& [owner, container] : found->second) here.insert(owner);
    std::set<size_t> both;
    std::set_intersection(out.begin(), out.end(), here.begin(), here.end(),
                          std::inserter(both, both.end()));
    out = is_first ? std::move(here) : std::move(both);
    is_first = false;
  }
  return out;
}

// Rules 3 and 4.
PodNames::Found PodNames::one_of(const std::set<size_t>& candidates, const PodOnGpus& pod) const {
  const auto is_named = [&](const formats::NodePod& each) {
    return pod.hostnames.count(hostname_of_pod(each.name)) != 0;
  };
  std::vector<const formats::NodePod*> named;
  for (const size_t place : candidates)
    if (is_named(answer_.pods[place])) named.push_back(&answer_.pods[place]);
  if (named.size() == 1) return {named[0], true};
  if (!named.empty() || candidates.size() != 1 || !unknown_device_.empty()) return {};
  if (std::any_of(answer_.pods.begin(), answer_.pods.end(), is_named)) return {};
  return {&answer_.pods[*candidates.begin()], false};
}

// What files told of some process of a pod holds for all of it.
void PodNames::learn_known(const PodsOnGpus& pods, const facts::GpuSample& sample) {
  for (const auto& [uid, pod] : pods)
    for (const size_t place : pod.processes) {
      const facts::ProcessOwner& owner = sample.processes[place].owner;
      if (!owner.pod.empty()) names_[uid] = {{owner.pod_namespace, owner.pod}, true};
    }
}

// Rule 5, for those who would have this name now.
void PodNames::settle(const Name& name, const std::map<std::string, bool>& certain_of_uid) {
  std::vector<std::string> wanted;
  for (const auto& [uid, is_certain] : certain_of_uid)
    if (is_certain) wanted.push_back(uid);
  const bool is_certain = !wanted.empty();
  if (!is_certain)
    for (const auto& [uid, certain] : certain_of_uid) wanted.push_back(uid);
  bool is_free = wanted.size() == 1;
  for (auto each = names_.begin(); each != names_.end();) {
    const bool is_holder = each->second.name == name;
    is_free = is_free && !(is_holder && (each->second.is_certain || !is_certain));
    each = is_holder && !each->second.is_certain ? names_.erase(each) : std::next(each);
  }
  if (is_free) names_[wanted[0]] = {name, is_certain};
}

void PodNames::find_names(const PodsOnGpus& pods, const facts::GpuSample& sample) {
  // A pod of a StatefulSet comes back with its name and another UID.
  for (auto each = names_.begin(); each != names_.end();)
    each = pods.count(each->first) == 0 ? names_.erase(each) : std::next(each);
  learn_known(pods, sample);
  std::map<Name, std::map<std::string, bool>> found;
  for (const auto& [uid, pod] : pods) {
    if (names_.count(uid) != 0 || pod.is_later) continue;
    if (const Found one = one_of(candidates(pod, sample), pod); one.pod != nullptr)
      found[{one.pod->name_space, one.pod->name}][uid] = one.is_certain;
  }
  for (const auto& [name, uids] : found) settle(name, uids);
}

// Of a pod that was given its GPUs in one container, and has processes of one there.
void PodNames::name_container(const PodOnGpus& pod, facts::GpuSample& sample) const {
  if (pod.is_later || pod.containers.size() != 1) return;
  std::set<std::string> names;
  for (const uint32_t gpu : pod.gpus) {
    const auto found = given_.find(sample.gpus[gpu].uuid);
    if (found == given_.end()) return;
    for (const auto& [place, container] : found->second) {
      const formats::NodePod& given = answer_.pods[place];
      const facts::ProcessOwner& owner = sample.processes[pod.processes[0]].owner;
      if (given.name == owner.pod && given.name_space == owner.pod_namespace)
        names.insert(given.containers[container].name);
    }
  }
  if (names.size() != 1) return;
  for (const size_t place : pod.processes) {
    facts::ProcessOwner& owner = sample.processes[place].owner;
    if (!owner.container.empty() && owner.container_name.empty())
      owner.container_name = *names.begin();
  }
}

void PodNames::say_missing(const PodsOnGpus& pods, facts::GpuSample& sample) const {
  std::set<std::string> reasons;
  for (const auto& [uid, pod] : pods) {
    if (names_.count(uid) != 0) continue;
    if (!problem_.empty()) {
      reasons.insert(problem_);
      continue;
    }
    if (pod.is_later) continue;  // of the next answer
    const uint32_t number = sample.gpus[*pod.gpus.begin()].index;
    const size_t count = candidates(pod, sample).size();
    if (count > 1)
      reasons.insert(format("several pods share GPU {}", number));
    else if (!unknown_device_.empty())
      reasons.insert(format("the kubelet's device ids of {} do not tell the GPU", unknown_device_));
    else if (count == 1)
      reasons.insert(format("not only the pod that was given GPU {} uses it", number));
    else
      reasons.insert(format("a pod uses GPU {} and was not given it", number));
  }
  for (const std::string& why : reasons) sample.missing.push_back({"pod names", why});
}

// A part of an answer with ids that nobody knows says of no GPU that it is free.
void PodNames::tell_gpus(facts::GpuSample& sample) const {
  if (asked_ == 0 || !problem_.empty()) return;
  for (facts::SampledGpu& gpu : sample.gpus) {
    const auto found = given_.find(gpu.uuid);
    if (found == given_.end()) {
      if (unknown_device_.empty()) gpu.pods.emplace();
      continue;
    }
    gpu.pods.emplace();
    for (const auto& [place, container] : found->second) {
      const formats::NodePod& pod = answer_.pods[place];
      gpu.pods->push_back({pod.name_space, pod.name, pod.containers[container].name});
    }
  }
}

void PodNames::name(facts::GpuSample& sample,
                    const std::function<std::string(uint32_t)>& hostname) {
  const PodsOnGpus pods = pods_of(sample, hostname);
  find_names(pods, sample);
  for (const auto& [uid, pod] : pods) {
    const auto found = names_.find(uid);
    if (found == names_.end()) continue;
    for (const size_t place : pod.processes) {
      facts::ProcessOwner& owner = sample.processes[place].owner;
      if (!owner.pod.empty()) continue;
      owner.pod_namespace = found->second.name.first;
      owner.pod = found->second.name.second;
    }
    name_container(pod, sample);
  }
  say_missing(pods, sample);
  tell_gpus(sample);
}

}  // namespace cufit::watch
