# SPDX-License-Identifier: Apache-2.0
"""`cufit k8s lint` over a fixture for each finding and over manifests without one; the lines that a
finding prints, put where it says, end it."""

import os
import unittest

from support import HERE, NEEDS_YAML, POD, cufit, lint, place_of, read, run_tests, yaml


# Fixtures that have nothing wrong in themselves: only beside the nodes.
WITH_NODES = {"k8s_no_node_matches", "k8s_node_too_small", "kubernetes_gpu_insufficient",
              "kubernetes_gpu_taint"}
IDS = {"kubernetes_gpu_taint": "kubernetes_gpu_insufficient",
       "k8s_mig_count": "k8s_shared_gpu_count"}
# The lines say all of the resources, or of the volume, not what is added to them.
WHOLE = {"resources", "emptyDir"}


def put(into, lines):
    """What a user does with the lines: members go beside members, list entries by their name."""
    for key, value in lines.items():
        if key in WHOLE or key not in into or not isinstance(value, (dict, list)):
            into[key] = value
        elif isinstance(value, dict):
            put(into[key], value)
        else:
            for item in value:
                same = [one for one in into[key] if "name" in item and one.get("name") == item["name"]]
                put(same[0], item) if same else into[key].append(item)


class Findings(unittest.TestCase):
    def fixtures(self):
        for name in sorted(os.listdir(HERE + "/findings")):
            name = name.removesuffix(".yaml")
            nodes = ["--nodes", HERE + "/nodes.yaml"] if name in WITH_NODES else []
            yield name, IDS.get(name, name), HERE + "/findings/" + name + ".yaml", nodes

    def test_each_fixture_has_its_finding_alone(self):
        for name, expected, path, nodes in self.fixtures():
            with self.subTest(name):
                answer, code = lint(path, *nodes)
                self.assertEqual([one["id"] for one in answer["findings"]], [expected])
                severity = answer["findings"][0]["severity"]
                self.assertEqual(code, 1 if severity == "error" else 0)
                self.assertEqual(lint(path, *nodes, "--fail-on", severity)[1], 1)
                self.assertGreater(answer["findings"][0]["line"], 0)

    def test_a_fixture_for_the_nodes_is_well_without_them(self):
        for name in WITH_NODES:
            self.assertEqual(lint(HERE + "/findings/" + name + ".yaml")[0]["findings"], [])

    def test_healthy_manifests_have_none(self):
        paths = [HERE + "/healthy/" + name for name in sorted(os.listdir(HERE + "/healthy"))]
        for nodes in ([], ["--nodes", HERE + "/nodes.yaml"]):
            answer, code = lint(*paths, *nodes)
            self.assertEqual([(one["id"], one["object"]) for one in answer["findings"]], [])
            self.assertEqual((code, answer["pods"]), (0, 11))

    @NEEDS_YAML
    def test_the_lines_end_the_finding(self):
        seen = 0
        for name, expected, path, nodes in self.fixtures():
            finding = lint(path, *nodes)[0]["findings"][0]
            if finding["yaml"] is None or finding["place"].endswith(".volumes"):
                continue
            seen += 1
            with self.subTest(name):
                document = yaml.safe_load(read(path))
                put(place_of(document, finding["place"]), yaml.safe_load(finding["yaml"]))
                if expected == "k8s_visible_devices_by_hand":  # its step says so
                    del document["spec"]["containers"][0]["env"]
                if expected == "k8s_manifest_refused":  # twice is once to this reader
                    continue
                if expected == "k8s_mig_resource_missing":
                    continue
                answer, _ = lint("-", *nodes, text=yaml.safe_dump(document))
                self.assertEqual([one["id"] for one in answer["findings"]], [])
        self.assertGreaterEqual(seen, 10)

    def test_a_number_behind_one_that_is_there(self):
        def severities(gpus, *values):
            text = ", ".join("{name: CUDA_VISIBLE_DEVICES, value: '%s'}" % one for one in values)
            answer, _ = lint("-", text=POD % ("", gpus, "", text))
            return [one["severity"] for one in answer["findings"]]
        self.assertEqual(severities(1, "1"), ["error"])
        self.assertEqual(severities(2, "0,2"), ["warning"])  # one GPU is seen
        self.assertEqual(severities(2, "7", "0,1"), [])  # the last counts
        self.assertEqual(severities(2, "0", "7"), ["error"])

    def test_what_no_api_server_takes(self):
        pod = "kind: Pod\nmetadata: {name: a}\nspec:\n  restartPolicy: Never\n  containers:\n"
        job = "apiVersion: %s\nkind: %s\nmetadata: {name: a}\nspec:\n%s"
        template = "  template: {spec: {%scontainers: [{name: a, image: b}]}}\n"

        def said(text):
            findings = lint("-", text=text)[0]["findings"]
            self.assertEqual({one["id"] for one in findings} - {"k8s_manifest_refused"}, set())
            return [(one["line"], one["place"], one["next"]) for one in findings]
        for text, line, words in (
                (pod + "  - name: a\n    image: b\n    image: c\n", 8, "Put both into one `image`"),
                (pod + "    a: {image: b}\n", 5, "Write `containers` as a list"),
                (pod + "  - name: a\n    command: sleep 1\n", 7, "Write `command` as a list"),
                (pod + "  - name: a\n    limits: {nvidia.com/gpu: 1}\n", 7, "Put `limits` below `resources`"),
                (pod + "  - name: a\n    env: [{name: N, value: 8}]\n", 7, "the value of `N` in quotes"),
                (pod + "  - name: a\n    env: [{name: N, value: true}]\n", 7, "the value of `N` in quotes"),
                ("kind: Pod\nmetadata: {name: a}\nspec: hello\n", 3, "Write the fields of `spec`"),
                (job % ("batch/v1", "Job", template % ""), 5, "Set `restartPolicy: Never`"),
                (job % ("batch/v1", "Job", template % "restartPolicy: Always, "), 5, "`OnFailure`"),
                (job % ("batch/v1", "CronJob", "  jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: b}]}}}}\n"),
                 5, "Set `restartPolicy: Never`")):
            (one,) = said(text)
            self.assertEqual(one[0], line, text)
            self.assertIn(words, one[2])
        # What a merged map has as well is said once; text and null stay what they are.
        base = "x: &b {name: a, image: b}\n"
        for text in (base + pod + "  - <<: *b\n    image: c\n", base + pod + "  - image: c\n    <<: *b\n",
                     pod + "  - name: a\n    command:\n    env: [{name: N, value: '8'}, {name: M, value: !!str 8}]\n",
                     pod + "  - name: a\n    env: [{name: N, value: 1.2.3}, {name: M, value: 08}, {name: O, value: yes}]\n",
                     "kind: ConfigMap\ndata: {a: b, a: c}\n---\n" + pod + "  - name: a\n",
                     job % ("batch/v1", "Job", template % "restartPolicy: OnFailure, "),
                     job % ("batch.volcano.sh/v1alpha1", "Job", "  tasks: [{template: {spec: {containers: [{name: a, image: b}]}}}]\n"),
                     job % ("batch/v1", "Job", (template % "").replace(", image: b", "")),  # a patch
                     job % ("apps/v1", "Deployment", template % "")):
            self.assertEqual(said(text), [], text)

    def test_no_gpu_by_hand_beside_one_that_is_asked_for(self):
        for value in ("none", "void", ""):
            text = POD % ("", 1, "", "{name: NVIDIA_VISIBLE_DEVICES, value: '%s'}" % value)
            (one,) = lint("-", text=text)[0]["findings"]
            self.assertEqual(one["id"], "k8s_visible_devices_by_hand")
            self.assertIn("hides the GPU", one["summary"])

    @NEEDS_YAML
    def test_shared_memory_that_is_no_more_than_without_a_volume(self):
        volume = ("    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
                  "  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: %s}}]\n")
        for size, memory, ids in (("64Mi", "", ["host_shm"]), ("1Mi", "", ["host_shm"]),
                                  ("65Mi", "", []), ("''", "", []), ("64Mi", ", memory: 100Mi", [])):
            text = POD % (", --num_workers, '8'", 1, memory, "") + volume % size
            answer, _ = lint("-", text=text)
            self.assertEqual([one["id"] for one in answer["findings"]], ids, size)
            for one in answer["findings"]:
                self.assertIn("`sizeLimit` of " + size, one["why"])
                document = yaml.safe_load(text)
                document["spec"]["volumes"][0].update(yaml.safe_load(one["yaml"]))
                self.assertEqual(lint("-", text=yaml.safe_dump(document))[0]["findings"], [])

    def test_errors_stand_before_warnings(self):
        text = (POD % ("", 1, "", "{name: NVIDIA_VISIBLE_DEVICES, value: all}")
                + "  - {name: b, resources: {limits: {nvidia.com/gpus: 1}}}\n")
        self.assertEqual([one["severity"] for one in lint("-", text=text)[0]["findings"]],
                         ["error", "warning"])

    def test_numbers_of_gpus(self):
        for quantity, words in (("0.5", "whole GPUs"), ("1.5", "API server refuses"),
                                ("-1", "API server refuses"), ("24Gi", "waits for ever")):
            text = (POD % ("", 1, "", "")).replace("gpu: 1}", f"gpu: '{quantity}'}}")
            (one,) = lint("-", text=text)[0]["findings"]
            self.assertEqual(one["id"], "k8s_gpu_count_invalid")
            self.assertIn(words, one["why"], quantity)

    def test_a_number_that_another_tool_fills_in(self):
        text = (POD % ("", 1, "", "")).replace("gpu: 1}", "gpu: '${GPUS}'}")
        self.assertEqual(lint("-", text=text)[0]["findings"], [])

    @NEEDS_YAML
    def test_the_size_of_shared_memory_is_below_the_limit(self):
        for limit in ("200Mi", "512Mi", "1Gi", "3Gi", "64Gi", "900Gi"):
            text = POD % (", --num_workers, '4'", 1, ", memory: " + limit, "")
            (one,) = lint("-", text=text)[0]["findings"]
            document = yaml.safe_load(text)
            put(place_of(document, one["place"]), yaml.safe_load(one["yaml"]))
            self.assertEqual(lint("-", text=yaml.safe_dump(document))[0]["findings"], [], limit)

    def test_a_value_of_several_lines_is_one_line_of_the_finding(self):
        value = 'all\\n  - `b.yaml:1`: nothing\\e[2J' + "x" * 5000
        text = POD % ("", 1, "", '{name: NVIDIA_VISIBLE_DEVICES, value: "%s"}' % value)
        (one,) = lint("-", text=text)[0]["findings"]
        (said,) = [evidence["value"] for evidence in one["evidence"]]
        self.assertEqual(said[:53], "NVIDIA_VISIBLE_DEVICES=all - `b.yaml:1`: nothing?[2Jx")
        self.assertLess(len(said), 500)
        self.assertLess(len(cufit("k8s", "lint", "-", text=text).stdout), 3000)

    def test_recorded_nodes_have_the_labels_of_discovery(self):
        pod = ("kind: Pod\nmetadata: {name: a}\nspec:\n  nodeSelector: {%s}\n  containers:\n"
               "  - {name: a, resources: {limits: {nvidia.com/gpu: 1}}}\n")
        for selector, ids in (
                ("nvidia.com/gpu.product: NVIDIA-H200", []),
                ('nvidia.com/gpu.compute.major: "9"', []),
                ("nvidia.com/gpu.product: NVIDIA-GeForce-RTX-4090", ["k8s_no_node_matches"]),
                ('nvidia.com/cuda.driver-version.major: "470"', ["k8s_no_node_matches"]),
                ("team/of-its-own: yes", [])):
            answer, _ = lint("-", "--nodes", "tests/machines/h200-recorded/facts.json",
                             text=pod % selector)
            self.assertEqual([one["id"] for one in answer["findings"]], ids, selector)

    def test_damaged_documents_cost_themselves_alone(self):
        good = read(HERE + "/findings/k8s_gpu_not_in_limits.yaml")
        answer, code = lint("-", text=good + "---\na: [1\n---\n" + good)
        self.assertEqual([one["id"] for one in answer["findings"]], ["k8s_gpu_not_in_limits"] * 2)
        self.assertEqual((len(answer["problems"]), code), (1, 3))
        self.assertIn("`stdin`, line ", answer["problems"][0])


if __name__ == "__main__":
    run_tests()
