// SPDX-License-Identifier: Apache-2.0
#include "formats/system/kubernetes_objects.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace kubernetes_objects_test {

ManifestObjects read(const std::string& text) { return read_objects(*parse_yaml(text, "a.yaml")); }

TEST(KubernetesObjects, Quantities) {
  EXPECT_EQ(parse_quantity("1"), 1);
  EXPECT_EQ(parse_quantity("500m"), 0.5);
  EXPECT_EQ(parse_quantity("0.5"), 0.5);
  EXPECT_EQ(parse_quantity("16Gi"), 17179869184.0);
  EXPECT_EQ(parse_quantity("1k"), 1000);
  EXPECT_EQ(parse_quantity("1e3"), 1000);
  EXPECT_EQ(parse_quantity("-1"), -1);
  for (const char* text : {"", "all", "1 Gi", "1gb", "1.2.3", "--1", "9999999999999999999999"})
    EXPECT_FALSE(parse_quantity(text)) << text;
}

// Kind, what stands above the pod's spec, and where that is.
struct Case {
  const char *kind, *above, *path;
};

TEST(KubernetesObjects, PodsOfEveryKind) {
  const Case cases[] = {
      {"Pod", "%", "spec"},
      {"Deployment", "{template: {spec: %}}", "spec.template.spec"},
      {"StatefulSet", "{template: {spec: %}}", "spec.template.spec"},
      {"DaemonSet", "{template: {spec: %}}", "spec.template.spec"},
      {"Job", "{template: {spec: %}}", "spec.template.spec"},
      {"Job", "{tasks: [{template: {spec: %}}]}", "spec.tasks[0].template.spec"},
      {"CronJob", "{jobTemplate: {spec: {template: {spec: %}}}}",
       "spec.jobTemplate.spec.template.spec"},
      {"PyTorchJob", "{pytorchReplicaSpecs: {Worker: {template: {spec: %}}}}",
       "spec.pytorchReplicaSpecs.Worker.template.spec"},
      {"JobSet", "{replicatedJobs: [{template: {spec: {template: {spec: %}}}}]}",
       "spec.replicatedJobs[0].template.spec.template.spec"},
      {"RayCluster", "{headGroupSpec: {template: {spec: %}}}", "spec.headGroupSpec.template.spec"},
      {"RayJob", "{rayClusterSpec: {workerGroupSpecs: [{template: {spec: %}}]}}",
       "spec.rayClusterSpec.workerGroupSpecs[0].template.spec"},
      {"LeaderWorkerSet", "{leaderWorkerTemplate: {workerTemplate: {spec: %}}}",
       "spec.leaderWorkerTemplate.workerTemplate.spec"},
      {"Notebook", "{template: {spec: %}}", "spec.template.spec"},
      {"InferenceService", "{predictor: %}", "spec.predictor"},
      {"InferenceService", "{predictor: {model: {args: [a]}}}", "spec.predictor"},
      {"TrainJob", "{trainer: {image: a}}", "spec.trainer"},
  };
  for (const Case& one : cases) {
    std::string spec = one.above;
    if (const size_t at = spec.find('%'); at != std::string::npos)
      spec.replace(at, 1, "{containers: [{name: a}]}");
    const std::string object = std::string("{kind: ") + one.kind + ", spec: " + spec + "}";
    for (const std::string& text : {object, "{kind: List, items: [" + object + "]}"}) {
      const ManifestObjects objects = read(text);
      ASSERT_EQ(objects.pods.size(), 1u) << text;
      EXPECT_EQ(objects.pods[0].path, one.path);
      EXPECT_EQ(objects.pods[0].containers.size(), 1u) << text;
      EXPECT_TRUE(objects.objects[0].has_pods);
    }
  }
  const std::string serving = "kind: Service, spec: {template: {spec: {containers: [{name: a}]}}}}";
  EXPECT_FALSE(read("{apiVersion: v1, " + serving).objects[0].has_pods);
  EXPECT_TRUE(read("{apiVersion: serving.knative.dev/v1, " + serving).objects[0].has_pods);
  const ManifestObjects model =
      read("{kind: InferenceService, spec: {predictor: {model: {resources: {limits: {a: 1}}}}}}");
  ASSERT_EQ(model.pods.size(), 1u);
  EXPECT_TRUE(model.pods[0].partial);
  EXPECT_EQ(model.pods[0].containers[0].path, "spec.predictor.model");
}

TEST(KubernetesObjects, FieldsOfAnotherTypeAreNotThere) {
  const ManifestObjects objects = read(
      "{kind: Pod, metadata: [], spec: {containers: [1, {name: [], command: x, env: {a: b}, "
      "resources: {limits: {nvidia.com/gpu: [1]}}, volumeMounts: 3}], volumes: {}, "
      "nodeSelector: [a], affinity: 1, tolerations: x, hostPID: yes}}");
  ASSERT_EQ(objects.pods.size(), 1u);
  ASSERT_EQ(objects.pods[0].containers.size(), 1u);
  EXPECT_TRUE(objects.pods[0].containers[0].limits.empty());
  EXPECT_EQ(objects.pods[0].host_pid_line, 0u);
}

}  // namespace kubernetes_objects_test
}  // namespace cufit::formats
