// SPDX-License-Identifier: Apache-2.0
#include "formats/system/container_records.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace container_records_test {

const std::string k_id = "579635db3532e954d07927bdc32bd435bd082f03a0696ded072f04d762a18775";

TEST(ContainerRecords, NamesOfEngines) {
  EXPECT_EQ(parse_docker_config(R"({"ID":"x","Name":"/train","Config":{"Labels":{}}})").container,
            "train");
  // cri-dockerd: the kubelet's labels name the container better than "/k8s_main_train-0_lab_...".
  const ContainerNames labelled = parse_docker_config(
      R"({"Name":"/k8s_main_train-0_lab_5f41_0","Config":{"Labels":{
          "io.kubernetes.container.name":"main","io.kubernetes.pod.name":"train-0",
          "io.kubernetes.pod.namespace":"lab","io.kubernetes.pod.uid":"5f41"}}})");
  EXPECT_EQ(labelled.container, "main");
  EXPECT_EQ(labelled.pod, "train-0");
  EXPECT_EQ(labelled.pod_namespace, "lab");
  EXPECT_EQ(labelled.pod_uid, "5f41");
  const ContainerNames bundle = parse_oci_config(
      R"({"annotations":{"io.kubernetes.cri.container-name":"main",
          "io.kubernetes.cri.sandbox-name":"train-0","io.kubernetes.cri.sandbox-namespace":"lab",
          "io.kubernetes.cri.sandbox-uid":"5f41"}})");
  EXPECT_EQ(bundle.container + "/" + bundle.pod + "/" + bundle.pod_namespace, "main/train-0/lab");
  EXPECT_EQ(parse_oci_config(R"({"annotations":{"nerdctl/name":"web"}})").container, "web");
  const auto stored = parse_storage_containers(R"([{"id":")" + k_id +
                                               R"(","names":["contenedor1","x"]},{"id":"short",
      "names":["y"]},{"id":7},[],{"id":")" + k_id +
                                               R"(","names":[]}])");
  ASSERT_EQ(stored.size(), 1u);
  EXPECT_EQ(stored.at(k_id), "contenedor1");
}

TEST(ContainerRecords, NamesOfTheKubeletsLogs) {
  const ContainerNames pod =
      parse_pod_log_folder("kube-system_etcd-n1_2d8b0e3a5c9f4b7d8e6a1c0b9f8e7d6c");
  EXPECT_EQ(pod.pod, "etcd-n1");
  EXPECT_EQ(pod.pod_namespace, "kube-system");
  EXPECT_EQ(pod.pod_uid, "2d8b0e3a5c9f4b7d8e6a1c0b9f8e7d6c");
  std::string id;
  const ContainerNames link = parse_container_log_link("train-0_lab_main-" + k_id + ".log", id);
  EXPECT_EQ(id, k_id);
  EXPECT_EQ(link.pod + "/" + link.pod_namespace + "/" + link.container, "train-0/lab/main");
  for (const char* name : {"", "a_b", "a_b_c_d", "__", "a__c", "_b_c"})
    EXPECT_EQ(parse_pod_log_folder(name).pod_uid, "") << name;
  for (const std::string& name :
       {std::string(".log"), k_id + ".log", "a_b_" + k_id + ".log", "a_b_c-" + k_id,
        "a_b_c-" + k_id.substr(1) + ".log", "a_b-" + k_id + ".log"}) {
    id.clear();
    parse_container_log_link(name, id);
    EXPECT_EQ(id, "") << name;
  }
}

// A container's name is its user's text.
TEST(ContainerRecords, DamagedAndHostileFiles) {
  for (const char* text :
       {"", "{", "[]", "7", R"({"Name":7,"Config":[]})", R"({"annotations":"x"})"}) {
    EXPECT_EQ(parse_docker_config(text).container, "") << text;
    EXPECT_EQ(parse_oci_config(text).container, "") << text;
    EXPECT_TRUE(parse_storage_containers(text).empty()) << text;
  }
  EXPECT_EQ(parse_docker_config("{\"Name\":\"/a\\u001b[2J\\n\"}").container, "a?[2J?");
  EXPECT_EQ(parse_docker_config("{\"Name\":\"" + std::string(9000, 'a') + "\"}").container.size(),
            253u);
}

}  // namespace container_records_test
}  // namespace cufit::formats
