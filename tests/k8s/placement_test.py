# SPDX-License-Identifier: Apache-2.0
"""`cufit k8s lint` with nodes: labels, numbers, taints, and what they have besides."""

import re
import tempfile
import unittest

from support import lint, run_tests


class Placement(unittest.TestCase):
    """Nodes that fit each in part."""

    POD = ("kind: %s\nmetadata: {name: a}\nspec:\n  nodeSelector: {%s}\n  containers:\n"
           "  - {name: a, resources: {limits: {nvidia.com/gpu: 3}}}\n")
    NODE = ("kind: Node\nmetadata: {name: %s, labels: {%s}}\nspec: {taints: [%s]}\n"
            "status: {allocatable: {nvidia.com/gpu: 4}}\n")

    def judge(self, pod, *nodes, lang="en"):
        with tempfile.TemporaryDirectory() as folder:
            with open(folder + "/nodes.yaml", "w", encoding="utf-8") as file:
                file.write("---\n".join(self.NODE % one for one in nodes))
            answer, _ = lint("-", "--nodes", folder + "/nodes.yaml", "--lang", lang, text=pod)
        return answer["findings"]

    def test_labels_that_no_node_has_together(self):
        nodes = (("n1", "gpu: h100, zone: b", ""), ("n2", "gpu: a100, zone: a", ""))
        (one,) = self.judge(self.POD % ("Pod", "gpu: h100, zone: a"), *nodes)
        self.assertEqual(one["id"], "k8s_no_node_matches")
        self.assertIn("`gpu: h100` (n2), `zone: a` (n1)", one["why"])
        # The label that no node has is named, wherever it stands.
        (one,) = self.judge(self.POD % ("Pod", "gpu: h100, disk: ssd"), *nodes)
        self.assertIn("`disk: ssd`", one["why"])
        self.assertNotIn("h100", one["why"])

    def test_containers_of_one_pod_ask_together(self):
        second = "  - {name: b, resources: {limits: {nvidia.com/gpu: 3}}}\n"
        init = "  initContainers:\n  - {name: i, resources: {limits: {nvidia.com/gpu: 3}}}\n"
        node = ("n1", "", "")
        pod = self.POD % ("Pod", "")
        (one,) = self.judge(pod + second, node)
        self.assertEqual((one["id"], one["container"]), ("kubernetes_gpu_insufficient", None))
        self.assertIn("6 of `nvidia.com/gpu`", one["why"])
        self.assertEqual(self.judge(pod, node), [])
        # Those of init are given back before the others start.
        self.assertEqual(self.judge(pod + init, node), [])

    def test_a_taint_of_the_nodes_state_is_not_to_be_tolerated(self):
        cordoned = "{key: node.kubernetes.io/unschedulable, effect: NoSchedule}"
        gpu = "{key: nvidia.com/gpu, effect: NoSchedule}"
        for lang in ("en", "zh"):
            (one,) = self.judge(self.POD % ("Pod", ""), ("n1", "", cordoned),
                                ("n2", "", gpu + ", " + cordoned), lang=lang)
            self.assertIsNone(one["yaml"])
            self.assertIn("kubectl uncordon", one["next"])
        (one,) = self.judge(self.POD % ("Pod", ""), ("n1", "", cordoned), ("n2", "", gpu))
        self.assertIn("key: nvidia.com/gpu", one["yaml"])
        daemon = self.POD % ("DaemonSet", "")
        daemon = daemon.replace("spec:\n", "spec:\n  template:\n    spec:\n", 1)
        daemon = re.sub(r"(?m)^  (nodeSel|contai|- )", r"      \1", daemon)
        self.assertEqual(self.judge(daemon, ("n1", "", cordoned)), [])

    def test_a_label_with_another_value_is_there(self):
        node = ("n1", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB-SHARED", "")
        (one,) = self.judge(self.POD % ("Pod", "nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB"), node)
        self.assertIn("They have NVIDIA-A100-SXM4-80GB-SHARED", one["why"])

    def test_shares_that_go_by_the_name_of_gpus(self):
        shared = ("n1", "nvidia.com/gpu.replicas: '4', nvidia.com/gpu.count: '1'", "")
        pod = self.POD % ("Pod", "")
        (one,) = self.judge(pod, shared)
        self.assertEqual(one["id"], "k8s_shared_gpu_count")
        self.assertIn("offered 4 times", one["why"])
        self.assertEqual(self.judge(pod.replace("gpu: 3", "gpu: 1"), shared), [])
        # Another node has GPUs of its own.
        self.assertEqual(self.judge(pod, shared, ("n2", "nvidia.com/gpu.replicas: '1'", "")), [])
        self.assertEqual(self.judge(pod, shared, ("n2", "", "")), [])

    def test_a_name_that_no_node_offers(self):
        (one,) = self.judge((self.POD % ("Pod", "")).replace("gpu: 3", "gpu.shared: 1"), ("n1", "", ""))
        self.assertIn("None of the 1 node(s) that could take the pod offers", one["why"])
        self.assertIn("a name that the nodes offer", one["next"])
        # Node objects were given, and no recording.
        (one,) = self.judge((self.POD % ("Pod", "")).replace("gpu: 3", "gpu: 5"), ("n1", "", ""))
        self.assertNotIn("recording", one["why"])

    def test_a_node_that_takes_no_pods(self):
        for old, new in (("spec: {", "spec: {unschedulable: true, "),
                         ("status: {", "status: {conditions: [{type: Ready, status: 'False'}], ")):
            text = (self.NODE % ("n1", "", "")).replace(old, new)
            with tempfile.TemporaryDirectory() as folder:
                with open(folder + "/n.yaml", "w", encoding="utf-8") as file:
                    file.write(text)
                answer, _ = lint("-", "--nodes", folder + "/n.yaml", text=self.POD % ("Pod", ""))
                (one,) = answer["findings"]
                self.assertIn("kubectl uncordon", one["next"])
                with open(folder + "/n.yaml", "a", encoding="utf-8") as file:
                    file.write("---\n" + self.NODE % ("n2", "", ""))
                answer, _ = lint("-", "--nodes", folder + "/n.yaml", text=self.POD % ("Pod", ""))
                self.assertEqual(answer["findings"], [])

    def test_processors_and_memory_of_a_node(self):
        pod = self.POD % ("Pod", "")
        node = ("n1", "", "")
        second = "  - {name: b, resources: {limits: {cpu: 40}}}\n"

        def ids(more, tail=""):
            text = self.NODE % node
            with tempfile.TemporaryDirectory() as folder:
                with open(folder + "/n.yaml", "w", encoding="utf-8") as file:
                    file.write(text.replace("{nvidia", "{cpu: '64', memory: 256Gi, nvidia"))
                answer, _ = lint("-", "--nodes", folder + "/n.yaml",
                                 text=pod.replace("gpu: 3}", "gpu: 3" + more + "}") + tail)
            return [(one["id"], one["evidence"][0]["value"]) for one in answer["findings"]]
        self.assertEqual(ids(", cpu: 128"), [("k8s_node_too_small", "cpu: 128")])
        self.assertEqual(ids(", memory: 900Gi"), [("k8s_node_too_small", "memory: 900Gi")])
        self.assertEqual(ids(", cpu: 40", second), [("k8s_node_too_small", "cpu: 40")])
        self.assertEqual(ids(", cpu: 64, memory: 256Gi"), [])
        # The request counts, where there is one.
        self.assertEqual(ids(", cpu: 128}, requests: {cpu: 8"), [])
        init = "  initContainers:\n  - {name: i, resources: {limits: {cpu: 40}}}\n"
        self.assertEqual(ids(", cpu: 40", init), [])

    def test_a_gpu_that_fell_off_the_bus_is_not_offered(self):
        answer, _ = lint("-", "--nodes", "tests/machines/gpu-fallen-off-bus/facts.json",
                         text=self.POD % ("Pod", ""))
        self.assertEqual(answer["nodes"][0]["resources"], {})

    def test_a_pod_that_names_its_node(self):
        pod = self.POD % ("Pod", "gpu: h100") + "  nodeName: n2\n"
        nodes = (("n1", "gpu: h100", ""), ("n2", "gpu: a100", ""))
        self.assertEqual([one["id"] for one in self.judge(pod, *nodes)], ["k8s_no_node_matches"])
        self.assertEqual(self.judge(pod.replace("n2", "n1"), *nodes), [])
        self.assertEqual(self.judge(pod.replace("n2", "other"), *nodes), [])


if __name__ == "__main__":
    run_tests()
