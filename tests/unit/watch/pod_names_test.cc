// SPDX-License-Identifier: Apache-2.0
#include "watch/pod_names.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::watch {
namespace pod_names_test {

std::string gpu_uuid(uint32_t number) {
  return format("GPU-00000000-1111-2222-3333-44444444444{}", number);
}

constexpr double k_asked = 2000, k_before = 1000;

// A sample of two GPUs, and what the kubelet says.
class Machine {
 public:
  Machine() {
    for (uint32_t i = 0; i < 2; ++i) {
      facts::SampledGpu& gpu = sample.gpus.emplace_back();
      gpu.index = i;
      gpu.uuid = gpu_uuid(i);
    }
  }

  // A pod "space/name" with these device ids in one container.
  void give(const std::string& pod, const std::vector<std::string>& ids,
            const std::string& container = "main", const std::string& resource = "nvidia.com/gpu") {
    const size_t slash = pod.find('/');
    formats::NodePod& one = answer.pods.emplace_back();
    one.name_space = pod.substr(0, slash);
    one.name = pod.substr(slash + 1);
    one.containers.push_back({container, {}});
    for (const std::string& id : ids) one.containers[0].devices.push_back({resource, id});
  }

  facts::ProcessOwner& start(uint32_t gpu, const std::string& pod_uid,
                             const std::string& hostname = "", double started = k_before) {
    facts::SampledProcess& process = sample.processes.emplace_back();
    process.gpu = gpu;
    process.pid = static_cast<uint32_t>(sample.processes.size());
    process.owner.visible = true;
    process.owner.pod_uid = pod_uid;
    process.owner.container = pod_uid.empty() ? "" : "c" + pod_uid;
    process.owner.started = started;
    hostnames.push_back(hostname);
    return process.owner;
  }

  // "a/train": the pod of each process, "-" where there is none; the sample stays as it is.
  std::vector<std::string> pods() {
    named = sample;
    if (!is_taken) names.take(answer, k_asked, {{7, gpu_uuid(0)}, {3, gpu_uuid(1)}});
    is_taken = true;
    names.name(named, [&](uint32_t pid) { return hostnames[pid - 1]; });
    std::vector<std::string> out;
    for (const facts::SampledProcess& process : named.processes)
      out.push_back(
          process.owner.pod.empty() ? "-" : process.owner.pod_namespace + "/" + process.owner.pod);
    return out;
  }
  std::vector<std::string> missing() const {
    std::vector<std::string> out;
    for (const facts::MissingValue& one : named.missing) out.push_back(one.what + ": " + one.why);
    return out;
  }

  facts::GpuSample sample, named;
  formats::PodResources answer;
  std::vector<std::string> hostnames;
  PodNames names;
  bool is_taken = false;
};

using Names = std::vector<std::string>;

TEST(PodNames, OfAPodThatHasTheGpuAlone) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.give("b/serve", {gpu_uuid(1)}, "api");
  machine.start(0, "u1");
  machine.start(0, "u1");
  machine.start(1, "u2");
  EXPECT_EQ(machine.pods(), (Names{"a/train", "a/train", "b/serve"}));
  EXPECT_EQ(machine.named.processes[2].owner.container_name, "api");
  EXPECT_EQ(machine.missing(), Names());
}

TEST(PodNames, WhoIsInNoPodHasNone) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.start(0, "", "train");
  EXPECT_EQ(machine.pods(), Names{"-"});
  EXPECT_EQ(machine.missing(), Names());
}

TEST(PodNames, NamesFromFilesStay) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  facts::ProcessOwner& owner = machine.start(0, "u1");
  owner.pod = "real";
  owner.pod_namespace = "x";
  owner.container_name = "mine";
  EXPECT_EQ(machine.pods(), Names{"x/real"});
  EXPECT_EQ(machine.named.processes[0].owner.container_name, "mine");
}

TEST(PodNames, SharedGpuIsNotGuessed) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0) + "::0"});
  machine.give("b/serve", {gpu_uuid(0) + "::1"});
  machine.start(0, "u1");
  EXPECT_EQ(machine.pods(), Names{"-"});
  EXPECT_EQ(machine.missing(), Names{"pod names: several pods share GPU 0"});
}

TEST(PodNames, TwoSharesOfOnePodAreOnePod) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0) + "::0", gpu_uuid(0) + "::1"});
  machine.start(0, "u1");
  EXPECT_EQ(machine.pods(), Names{"a/train"});
}

TEST(PodNames, HostnameTellsThoseWhoShareApart) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0) + "::0"});
  machine.give("b/serve", {gpu_uuid(0) + "::1"});
  machine.give("c/third", {gpu_uuid(0) + "::2"});
  machine.start(0, "u1", "serve");
  machine.start(0, "u2", "train");
  machine.start(0, "u3", "node-7");
  EXPECT_EQ(machine.pods(), (Names{"b/serve", "a/train", "-"}));
  EXPECT_EQ(machine.missing(), Names{"pod names: several pods share GPU 0"});
}

TEST(PodNames, ALongNameIsCutInTheHostname) {
  Machine machine;
  const std::string name = std::string(62, 'n') + "-0-more";
  machine.give("a/" + name, {gpu_uuid(0) + "::0"});
  machine.give("b/serve", {gpu_uuid(0) + "::1"});
  machine.start(0, "u1", std::string(62, 'n'));
  EXPECT_EQ(machine.pods(), Names{"a/" + name});
}

// Of two namespaces.
TEST(PodNames, TwoPodsOfOneNameAreNotToldApart) {
  Machine machine;
  machine.give("a/train-0", {gpu_uuid(0) + "::0"});
  machine.give("b/train-0", {gpu_uuid(0) + "::1"});
  machine.start(0, "u1", "train-0");
  EXPECT_EQ(machine.pods(), Names{"-"});
}

// Only one pod has both.
TEST(PodNames, SeveralGpusLeaveOnePod) {
  Machine machine;
  machine.give("a/both", {gpu_uuid(0) + "::0", gpu_uuid(1) + "::0"});
  machine.give("b/first", {gpu_uuid(0) + "::1"});
  machine.give("c/second", {gpu_uuid(1) + "::1"});
  machine.start(0, "u1");
  machine.start(1, "u1");
  EXPECT_EQ(machine.pods(), (Names{"a/both", "a/both"}));
}

TEST(PodNames, TwoUidsAreNotOnePod) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.start(0, "u1");
  EXPECT_EQ(machine.pods(), Names{"a/train"});
  machine.start(0, "u2");  // a privileged pod, perhaps; or the first was one
  EXPECT_EQ(machine.pods(), (Names{"-", "-"}));
  EXPECT_EQ(machine.missing(), Names{"pod names: not only the pod that was given GPU 0 uses it"});
  machine.hostnames[1] = "train";
  EXPECT_EQ(machine.pods(), (Names{"-", "a/train"}));
}

TEST(PodNames, TwoUidsAreNotOnePodFromTheBeginning) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.start(0, "u1");
  machine.start(0, "u2");
  EXPECT_EQ(machine.pods(), (Names{"-", "-"}));
  machine.hostnames = {"train", "train"};
  EXPECT_EQ(machine.pods(), (Names{"-", "-"}));
}

TEST(PodNames, WhatAGpuIsGivenTo) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0) + "::0", gpu_uuid(0) + "::1"});
  machine.give("b/idle", {gpu_uuid(0) + "::2"}, "api");
  machine.pods();
  ASSERT_TRUE(machine.named.gpus[0].pods);
  ASSERT_EQ(machine.named.gpus[0].pods->size(), 2u);
  EXPECT_EQ(machine.named.gpus[0].pods->at(1).pod, "idle");
  EXPECT_EQ(machine.named.gpus[0].pods->at(1).pod_namespace, "b");
  EXPECT_EQ(machine.named.gpus[0].pods->at(1).container, "api");
  EXPECT_TRUE(machine.named.gpus[1].pods && machine.named.gpus[1].pods->empty());
  machine.names.set_problem("no answer");
  machine.pods();
  EXPECT_FALSE(machine.named.gpus[0].pods);
}

TEST(PodNames, ANameOfAnotherPodIsNoProof) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.give("monitoring/exporter-x", {});
  machine.start(0, "u1", "exporter-x");
  EXPECT_EQ(machine.pods(), Names{"-"});
}

TEST(PodNames, ANameThatFilesGaveAnotherIsTaken) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  facts::ProcessOwner& owner = machine.start(0, "u1");
  owner.pod = "train";
  owner.pod_namespace = "a";
  machine.start(0, "u2");
  EXPECT_EQ(machine.pods(), (Names{"a/train", "-"}));
}

TEST(PodNames, APodThatCameBackHasItsName) {
  Machine machine;
  machine.give("a/train-0", {gpu_uuid(0)});
  machine.start(0, "u1", "train-0");
  EXPECT_EQ(machine.pods(), Names{"a/train-0"});
  machine.sample.processes[0].owner.pod_uid = "u2";
  EXPECT_EQ(machine.pods(), Names{"a/train-0"});
}

TEST(PodNames, WhatBeganAfterTheQuestionWaits) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.start(0, "u1", "", k_asked - 1);
  EXPECT_EQ(machine.pods(), Names{"-"});
  EXPECT_EQ(machine.missing(), Names());
  machine.names.take(machine.answer, k_asked + 10, {});
  EXPECT_EQ(machine.pods(), Names{"a/train"});
}

// It hangs in the driver, and its GPU was given on.
TEST(PodNames, ANameThatWasFoundStays) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.start(0, "u1");
  EXPECT_EQ(machine.pods(), Names{"a/train"});
  machine.answer.pods[0].name = "next";
  machine.names.take(machine.answer, k_asked + 10, {});
  EXPECT_EQ(machine.pods(), Names{"a/train"});
}

TEST(PodNames, OfWhatWasNotGiven) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(1)});
  machine.start(0, "u1", "train");
  EXPECT_EQ(machine.pods(), Names{"-"});
  EXPECT_EQ(machine.missing(), Names{"pod names: a pod uses GPU 0 and was not given it"});
}

TEST(PodNames, AnUnknownIdMayBeAnyGpu) {
  Machine machine;
  machine.give("a/train", {gpu_uuid(0)});
  machine.give("b/vm", {"45"}, "main", "nvidia.com/GA102");
  machine.start(0, "u1");
  machine.start(1, "u2");
  EXPECT_EQ(machine.pods(), (Names{"-", "-"}));
  EXPECT_EQ(machine.missing(),
            Names{"pod names: the kubelet's device ids of nvidia.com/GA102 do not "
                  "tell the GPU"});
  EXPECT_EQ(machine.named.gpus[0].pods->size(), 1u);
  EXPECT_FALSE(machine.named.gpus[1].pods);
  machine.hostnames[0] = "train";
  EXPECT_EQ(machine.pods(), (Names{"a/train", "-"}));
}

TEST(PodNames, ByTheNumberOfTheDeviceFile) {
  Machine machine;
  machine.give("a/gke", {"nvidia7"});
  machine.give("b/claim", {"gpu-3"}, "main", "gpu.nvidia.com");
  machine.start(0, "u1");
  machine.start(1, "u2");
  EXPECT_EQ(machine.pods(), (Names{"a/gke", "b/claim"}));
}

TEST(PodNames, OfAnInstance) {
  Machine machine;
  const std::string instance = "MIG-00000000-1111-2222-3333-444444444449";
  machine.sample.gpus[1].uuid = instance;
  machine.sample.gpus[1].parent_uuid = gpu_uuid(0);
  machine.give("a/part", {instance}, "main", "nvidia.com/mig-1g.10gb");
  machine.give("b/whole", {gpu_uuid(0)});
  machine.start(1, "u1");
  EXPECT_EQ(machine.pods(), Names{"a/part"});
}

TEST(PodNames, ContainersOfOnePodAreNotGuessed) {
  Machine machine;
  machine.give("a/two", {gpu_uuid(0) + "::0"}, "first");
  machine.answer.pods[0].containers.push_back(
      {"second", {{"nvidia.com/gpu", gpu_uuid(0) + "::1"}}});
  machine.start(0, "u1");
  EXPECT_EQ(machine.pods(), Names{"a/two"});
  EXPECT_EQ(machine.named.processes[0].owner.container_name, "");
}

TEST(PodNames, TheProblemIsSaidWhereANameIsMissing) {
  Machine machine;
  machine.is_taken = true;  // there was no answer
  machine.names.set_problem("no right");
  machine.start(0, "");
  machine.pods();
  EXPECT_EQ(machine.missing(), Names());
  machine.start(0, "u1");
  machine.start(0, "u2");
  EXPECT_EQ(machine.pods(), (Names{"-", "-", "-"}));
  EXPECT_EQ(machine.missing(), Names{"pod names: no right"});
}

}  // namespace pod_names_test
}  // namespace cufit::watch
