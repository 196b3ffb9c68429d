# SPDX-License-Identifier: Apache-2.0
"""`cufit k8s lint` over a fixture for each finding and over manifests without one; the lines that a
finding prints, put where it says, end it; the files of `cufit export` for a cluster, read by those
who know them: kubernetes-validate where it is there (`pip install kubernetes-validate`), the fields
of node-problem-detector, a shell that runs the script for node-feature-discovery.

Usage: manifests_test.py CUFIT BUILD_FOLDER [TEST...]
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

try:
    import yaml
except ImportError:
    yaml = None

HERE = os.path.dirname(os.path.abspath(__file__))
CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
# Fixtures that have nothing wrong in themselves: only beside the nodes.
WITH_NODES = {"k8s_no_node_matches", "k8s_node_too_small", "kubernetes_gpu_insufficient",
              "kubernetes_gpu_taint"}
IDS = {"kubernetes_gpu_taint": "kubernetes_gpu_insufficient",
       "k8s_mig_count": "k8s_shared_gpu_count"}
# The lines say all of the resources, or of the volume, not what is added to them.
WHOLE = {"resources", "emptyDir"}


def cufit(*words, text=None):
    return subprocess.run([CUFIT, *words], capture_output=True, text=True, input=text, timeout=60,
                          cwd=os.path.dirname(os.path.dirname(HERE)))


def lint(*words, text=None):
    ran = cufit("k8s", "lint", "--json", *words, text=text)
    return json.loads(ran.stdout), ran.returncode


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


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


def place_of(document, path):
    for part in path.split("."):
        name, _, index = part.partition("[")
        document = document[name]
        if index:
            document = document[int(index[:-1])]
    return document


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

    @unittest.skipIf(yaml is None, "python3-yaml is not there")
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

    POD = ("kind: Pod\nmetadata: {name: a}\nspec:\n  restartPolicy: Never\n  containers:\n"
           "  - name: main\n    image: team:1\n    command: [python, t.py%s]\n"
           "    resources: {limits: {nvidia.com/gpu: %d%s}}\n    env: [%s]\n")

    def test_a_number_behind_one_that_is_there(self):
        def severities(gpus, *values):
            text = ", ".join("{name: CUDA_VISIBLE_DEVICES, value: '%s'}" % one for one in values)
            answer, _ = lint("-", text=self.POD % ("", gpus, "", text))
            return [one["severity"] for one in answer["findings"]]
        self.assertEqual(severities(1, "1"), ["error"])
        self.assertEqual(severities(2, "0,2"), ["warning"])  # one GPU is seen
        self.assertEqual(severities(2, "7", "0,1"), [])  # the last counts
        self.assertEqual(severities(2, "0", "7"), ["error"])

    def ids_of(self, command, gpus=1, more=""):
        """Findings of a pod with this command and no memory for /dev/shm to miss."""
        limits = "nvidia.com/gpu: %d" % gpus if gpus else "cpu: 1"
        text = ("kind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: main\n"
                "    image: team:1\n    command: %s\n    resources: {limits: {%s}}\n%s"
                % (json.dumps(command), limits, more))
        return [one["id"] for one in lint("-", text=text)[0]["findings"]]

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
                     job % ("batch.volcano.sh/v1alpha1", "Job", "  tasks: [{template: {spec: {containers: [{name: a}]}}}]\n"),
                     job % ("batch/v1", "Job", (template % "").replace(", image: b", "")),  # a patch
                     job % ("apps/v1", "Deployment", template % "")):
            self.assertEqual(said(text), [], text)

    def test_numbers_that_ray_and_mpi_are_told_of(self):
        group = "{rayStartParams: {num-gpus: '%d'}, template: {spec: {containers: [%s]}}}"
        gpus = "{name: a, resources: {limits: {nvidia.com/gpu: 4}}}"
        ray = "kind: RayCluster\nmetadata: {name: r}\nspec:\n  headGroupSpec: %s\n  workerGroupSpecs: [%s]\n"
        idle = group % (0, gpus)  # keeps tasks off
        for number, ids in ((8, ["k8s_process_count"]), (4, []), (2, [])):
            answer, _ = lint("-", text=ray % (idle, group % (number, gpus)))
            self.assertEqual([one["id"] for one in answer["findings"]], ids, number)
            for one in answer["findings"]:
                self.assertEqual((one["severity"], one["evidence"][0]["value"]), ("error", "num-gpus: 8"))
        # Without a GPU the number is a name for something else.
        self.assertEqual(lint("-", text=ray % (group % (8, "{name: a}"), idle))[0]["findings"], [])
        mpi = ("kind: MPIJob\nmetadata: {name: m}\nspec:\n  slotsPerWorker: %d\n  mpiReplicaSpecs:\n"
               "    Launcher: {template: {spec: {containers: [{name: l, command: %s}]}}}\n"
               "    Worker: {template: {spec: {containers: [" + gpus + "]}}}\n")
        python = ["mpirun", "-np", "16", "python", "train.py"]
        for slots, command, count in (
                (8, python, 1), (4, python, 0), (8, ["mpirun", "gmx_mpi", "mdrun"], 0),
                (8, ["mpirun", "-np", "4", "python", "t.py"], 0),
                (8, ["mpirun", "--map-by", "ppr:4:node", "python", "t.py"], 0)):
            answer, _ = lint("-", text=mpi % (slots, json.dumps(command)))
            self.assertEqual([one["severity"] for one in answer["findings"]], ["warning"] * count)

    def test_processes_on_instances_of_mig(self):
        volume = ("    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
                  "  volumes: [{name: shm, emptyDir: {medium: Memory}}]\n")
        text = (self.POD % ("", 2, "", "")).replace("nvidia.com/gpu:", "nvidia.com/mig-3g.40gb:") + volume
        for command, ids in (("[torchrun, --nproc_per_node=2, t.py]", ["k8s_process_count"]),
                             ("[torchrun, t.py]", ["k8s_shared_gpu_count"]),
                             ("[sh, -c, 'CUDA_VISIBLE_DEVICES=MIG-a torchrun --nproc_per_node=2 t.py']",
                              ["k8s_shared_gpu_count"])):
            answer, _ = lint("-", text=text.replace("[python, t.py]", command))
            self.assertEqual([one["id"] for one in answer["findings"]], ids, command)

    def test_numbers_that_a_script_chooses(self):
        never = "  restartPolicy: Never\n"
        script = ["sh", "-c", "CUDA_VISIBLE_DEVICES=4,5 python train.py"]
        self.assertEqual(self.ids_of(script, 2, never), ["cuda_visible_devices"])
        self.assertEqual(self.ids_of(script, 6, never), [])
        # One command of several may do without.
        script[2] = "CUDA_VISIBLE_DEVICES= python a.py; CUDA_VISIBLE_DEVICES=$I python b.py"
        self.assertEqual(self.ids_of(script, 2, never), [])

    def test_a_program_that_needs_a_gpu_and_asks_for_none(self):
        never = "  restartPolicy: Never\n"
        for command in (["vllm", "serve", "x"], ["deepspeed", "--num_gpus=2", "t.py"],
                        ["python", "t.py", "--device", "cuda"], ["text-generation-launcher"],
                        ["sh", "-c", "nvidia-smi && python t.py"]):
            self.assertEqual(self.ids_of(command, 0, never), ["container_no_gpu_requested"], command)
            self.assertNotIn("container_no_gpu_requested", self.ids_of(command, 2, never))
        for command in (["python", "train.py"], ["torchrun", "--nproc_per_node=4", "t.py"],
                        ["sh", "-c", "nvidia-smi; python t.py"], ["vllm", "bench", "serve"]):
            self.assertEqual(self.ids_of(command, 0, never), [], command)

    def test_a_training_run_that_begins_again(self):
        self.assertEqual(self.ids_of(["python", "train.py"]), ["k8s_restart_loop"])
        self.assertEqual(self.ids_of(["python", "train.py"], 1, "  restartPolicy: OnFailure\n"), [])
        for command in (["python", "serve.py"], ["sh", "-c", "python train.py; sleep infinity"]):
            self.assertEqual(self.ids_of(command), [], command)

    def test_no_gpu_by_hand_beside_one_that_is_asked_for(self):
        for value in ("none", "void", ""):
            text = self.POD % ("", 1, "", "{name: NVIDIA_VISIBLE_DEVICES, value: '%s'}" % value)
            (one,) = lint("-", text=text)[0]["findings"]
            self.assertEqual(one["id"], "k8s_visible_devices_by_hand")
            self.assertIn("hides the GPU", one["summary"])

    @unittest.skipIf(yaml is None, "python3-yaml is not there")
    def test_shared_memory_that_is_no_more_than_without_a_volume(self):
        volume = ("    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
                  "  volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: %s}}]\n")
        for size, memory, ids in (("64Mi", "", ["host_shm"]), ("1Mi", "", ["host_shm"]),
                                  ("65Mi", "", []), ("''", "", []), ("64Mi", ", memory: 100Mi", [])):
            text = self.POD % (", --num_workers, '8'", 1, memory, "") + volume % size
            answer, _ = lint("-", text=text)
            self.assertEqual([one["id"] for one in answer["findings"]], ids, size)
            for one in answer["findings"]:
                self.assertIn("`sizeLimit` of " + size, one["why"])
                document = yaml.safe_load(text)
                document["spec"]["volumes"][0].update(yaml.safe_load(one["yaml"]))
                self.assertEqual(lint("-", text=yaml.safe_dump(document))[0]["findings"], [])

    def test_errors_stand_before_warnings(self):
        text = (self.POD % ("", 1, "", "{name: NVIDIA_VISIBLE_DEVICES, value: all}")
                + "  - {name: b, resources: {limits: {nvidia.com/gpus: 1}}}\n")
        self.assertEqual([one["severity"] for one in lint("-", text=text)[0]["findings"]],
                         ["error", "warning"])

    def test_numbers_of_gpus(self):
        for quantity, words in (("0.5", "whole GPUs"), ("1.5", "API server refuses"),
                                ("-1", "API server refuses"), ("24Gi", "waits for ever")):
            text = (self.POD % ("", 1, "", "")).replace("gpu: 1}", f"gpu: '{quantity}'}}")
            (one,) = lint("-", text=text)[0]["findings"]
            self.assertEqual(one["id"], "k8s_gpu_count_invalid")
            self.assertIn(words, one["why"], quantity)

    def test_a_number_that_another_tool_fills_in(self):
        text = (self.POD % ("", 1, "", "")).replace("gpu: 1}", "gpu: '${GPUS}'}")
        self.assertEqual(lint("-", text=text)[0]["findings"], [])

    def test_capabilities_of_programs_that_compute(self):
        def ids(command, value):
            text = self.POD % (command, 1, "", "{name: NVIDIA_DRIVER_CAPABILITIES, value: '%s'}" % value)
            return [one["id"] for one in lint("-", text=text)[0]["findings"]]
        vllm = ", vllm, serve, a"
        self.assertEqual(ids(vllm, "utility"), ["container_driver_capabilities"])
        self.assertEqual(ids(", --device, cuda", "utility"), ["container_driver_capabilities"])
        self.assertEqual(ids("", "utility"), [])  # it may only look
        for value in ("", "all", "compute,utility", "utility, compute", "$(CAPABILITIES)"):
            self.assertEqual(ids(vllm, value), [], value)
        self.assertEqual(ids("", "graphics,display"), [])  # nobody knows what it computes

    @unittest.skipIf(yaml is None, "python3-yaml is not there")
    def test_the_library_path_is_the_pods_own(self):
        text = self.POD % (", 'it\\'s \"$0\"'".replace("\\'", "''"), 1, "",
                           "{name: LD_LIBRARY_PATH, value: '/foo/bar:$LD_LIBRARY_PATH'}")
        (one,) = lint("-", text=text)[0]["findings"]
        self.assertEqual(one["place"], "spec.containers[0]")
        command = yaml.safe_load(one["yaml"])["command"]
        self.assertEqual(command[3:], ["python", "t.py", 'it\'s "$0"'])
        command[3:] = ["sh", "-c", 'echo "$LD_LIBRARY_PATH $0 $1"', "a b", "c"]
        ran = subprocess.run(command, env={**os.environ, "LD_LIBRARY_PATH": "/of the/image"},
                             capture_output=True, text=True, timeout=60, check=True)
        self.assertEqual(ran.stdout, "/foo/bar:/of the/image a b c\n")
        # What the image starts is not known; what is no list of folders goes into no script.
        for change in (("command", "args"), ("/foo/bar", "/a;id"), ("/foo/bar", "$(OTHER)")):
            (one,) = lint("-", text=text.replace(*change))[0]["findings"]
            self.assertIsNone(one["yaml"])

    def test_a_part_of_a_model_needs_a_part_of_its_memory(self):
        for option, ids in (("", ["k8s_memory_limit_small"]), (", --nnodes, '2'", [])):
            text = self.POD % (", vllm, serve, a/b-70B" + option, 1, ", memory: 80Gi", "")
            self.assertEqual([one["id"] for one in lint("-", text=text)[0]["findings"]], ids)

    @unittest.skipIf(yaml is None, "python3-yaml is not there")
    def test_the_size_of_shared_memory_is_below_the_limit(self):
        for limit in ("200Mi", "512Mi", "1Gi", "3Gi", "64Gi", "900Gi"):
            text = self.POD % (", --num_workers, '4'", 1, ", memory: " + limit, "")
            (one,) = lint("-", text=text)[0]["findings"]
            document = yaml.safe_load(text)
            put(place_of(document, one["place"]), yaml.safe_load(one["yaml"]))
            self.assertEqual(lint("-", text=yaml.safe_dump(document))[0]["findings"], [], limit)

    def test_a_value_of_several_lines_is_one_line_of_the_finding(self):
        value = 'all\\n  - `b.yaml:1`: nothing\\e[2J' + "x" * 5000
        text = self.POD % ("", 1, "", '{name: NVIDIA_VISIBLE_DEVICES, value: "%s"}' % value)
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


def export(to, *words):
    ran = cufit("export", "--to", to, "--json", *words)
    if ran.returncode != 0:
        raise AssertionError(ran.stderr)
    return {one["path"]: one["text"] for one in json.loads(ran.stdout)["files"]}


class Exports(unittest.TestCase):
    MANIFESTS = (("k8s-daemonset", "--image", "team/cufit@sha256:" + "0" * 64),
                 ("k8s-job", "--nodes", "16", "--namespace", "lab"),
                 ("k8s-quota", "--gpus", "8", "--shared", "4", "--mig", "1g.10gb=4"))

    def test_cufit_itself_finds_nothing(self):
        for words in self.MANIFESTS:
            for path, text in export(*words).items():
                answer, _ = lint("-", text=text)
                self.assertEqual(answer["findings"], [], path)
                self.assertEqual(answer["problems"], [], path)

    def test_published_schemas(self):
        tool = shutil.which("kubernetes-validate") or BUILD + "/k8s/bin/kubernetes-validate"
        if not os.path.exists(tool):
            self.skipTest("kubernetes-validate is not there (pip install kubernetes-validate)")
        with tempfile.TemporaryDirectory() as folder:
            for lang in ("en", "zh"):
                for words in self.MANIFESTS:
                    for path, text in export(*words, "--lang", lang).items():
                        with open(folder + "/" + path, "w", encoding="utf-8") as file:
                            file.write(text)
                        ran = subprocess.run([tool, "--strict", folder + "/" + path],
                                             capture_output=True, text=True, check=False)
                        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)

    @unittest.skipIf(yaml is None, "python3-yaml is not there")
    def test_quota_and_its_defaults(self):
        quota, limits = yaml.safe_load_all(export(*self.MANIFESTS[2])["quota.yaml"])
        self.assertEqual(quota["spec"]["hard"], {
            "requests.nvidia.com/gpu": "8", "requests.nvidia.com/gpu.shared": "4",
            "requests.nvidia.com/mig-1g.10gb": "4"})
        one = limits["spec"]["limits"][0]
        # Kubernetes makes a missing default of the maximum.
        self.assertEqual(set(one["max"]), set(one["default"]))
        self.assertEqual(set(one["default"].values()), {"0"})

    @unittest.skipIf(yaml is None, "python3-yaml is not there")
    def test_a_node_that_starts_nothing_does_not_end_the_job(self):
        spec = yaml.safe_load(export("k8s-job", "--nodes", "3")["fleet-check-job.yaml"])["spec"]
        self.assertEqual((spec["completionMode"], spec["completions"], spec["parallelism"]),
                         ("Indexed", 3, 3))
        # With a limit for the whole job the first failed pod ends all others.
        self.assertEqual((spec.get("backoffLimit"), spec["backoffLimitPerIndex"]), (None, 0))

    def test_node_problem_detector(self):
        config = json.loads(export("npd")["cufit-npd.json"])
        self.assertEqual(config["plugin"], "custom")
        self.assertLessEqual(set(config), {"plugin", "pluginConfig", "source", "metricsReporting",
                                           "conditions", "rules"})
        self.assertEqual(config["pluginConfig"]["max_output_length"], 80)
        conditions = {one["type"] for one in config["conditions"]}
        whole = int(config["pluginConfig"]["timeout"].rstrip("s"))
        for rule in config["rules"]:
            self.assertLessEqual(int(rule["timeout"].rstrip("s")), whole)
            self.assertEqual((rule["path"], rule["args"][0]), ("/bin/sh", "-c"))
            if rule["type"] == "permanent":
                self.assertIn(rule["condition"], conditions)
        self.assertEqual({rule["type"] for rule in config["rules"]}, {"temporary", "permanent"})

    def test_the_message_of_node_problem_detector_is_one_line(self):
        script = json.loads(export("npd")["cufit-npd.json"])["rules"][0]["args"][1]
        self.assertIn("/usr/local/bin/cufit doctor --fast --lang en", script)
        with tempfile.TemporaryDirectory() as folder:
            for code, text in ((1, "not usable (drain): a\\n\\nx error: a\\n"), (0, "usable"), (2, "")):
                with open(folder + "/cufit", "w", encoding="utf-8") as file:
                    file.write(f"#!/bin/sh\nprintf '{text}'; exit {code}\n")
                os.chmod(folder + "/cufit", 0o755)
                ran = subprocess.run(
                    ["/bin/sh", "-c", script.replace("/usr/local/bin/cufit", folder + "/cufit")],
                    capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((ran.returncode, ran.stdout.strip()), (code, text.split("\\n")[0]))

    @unittest.skipIf(yaml is None, "python3-yaml is not there")
    def test_the_look_at_a_node_gets_what_a_program_needs(self):
        text = export("k8s-job", "--nodes", "3", "--namespace", "lab")["fleet-check-job.yaml"]
        (check,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
        # Without compute doctor misses libcuda, on every healthy node.
        self.assertIn({"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
                      check["env"])
        self.assertIn("# cufit fleet check --kubernetes --namespace lab\n", text)

    def test_words_of_a_reason_are_no_fields(self):
        """The health check of Slurm, with stand-ins for scontrol and cufit."""
        record = "NodeName=n1 CPUs=8 Gres=gpu:2 State={} Reason={}"
        for state, reason, said, expected in (
                ("IDLE+DRAIN", "cufit: (drain): foo State=IDLE Gres=gpu:9 [root@now]", "1:not usable", ""),
                ("IDLE+DRAIN", "cufit: (drain): foo State=IDLE Gres=gpu:9 Reason=b", "0:usable", "RESUME"),
                ("IDLE+DRAIN", "disk Reason=cufit: no", "0:usable", ""),
                ("IDLE", "cufit: State=DRAIN", "1:not usable (drain): c", "DRAIN")):
            with tempfile.TemporaryDirectory() as folder:
                code, line = said.split(":", 1)
                for name, body in (
                        ("cufit", f"echo \"$@\" >>{folder}/asked; echo '{line}'; exit {code}"),
                        ("logger", ":"),
                        ("scontrol", f"case $1 in update) echo \"$@\" >>{folder}/done ;; "
                                     f"*) echo '{record.format(state, reason)}' ;; esac")):
                    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                        file.write("#!/bin/sh\n" + body + "\n")
                    os.chmod(f"{folder}/{name}", 0o755)
                text = export("slurm-health")["cufit-healthcheck"]
                text = text.replace("PATH=/usr/local/sbin", f"PATH={folder}:/usr/local/sbin", 1)
                subprocess.run(["bash", "-c", text], check=True, timeout=60,
                               env={"SLURMD_NODENAME": "n1"})
                self.assertIn("--expect-gpus 2\n", read(folder + "/asked"))
                done = read(folder + "/done") if os.path.exists(folder + "/done") else ""
                self.assertEqual("State=" + expected in done if expected else not done, True, done)

    def features(self, answer, code):
        with tempfile.TemporaryDirectory() as folder:
            script = folder + "/cufit-nfd.sh"
            text = export("nfd")["cufit-nfd.sh"]
            # The script's PATH is the system's; the stand-ins go before it.
            text = text.replace("PATH=/usr/local/sbin", f"PATH={folder}/bin:/usr/local/sbin", 1)
            os.mkdir(folder + "/bin")
            for name, body in (("cufit", f"printf '%s' '{answer}'; exit {code}"),
                               ("nvidia-smi", "echo '| Driver Version: 580.1  CUDA Version: 13.0 |'")):
                with open(f"{folder}/bin/{name}", "w", encoding="utf-8") as file:
                    file.write("#!/bin/sh\n" + body + "\n")
                os.chmod(f"{folder}/bin/{name}", 0o755)
            with open(script, "w", encoding="utf-8") as file:
                file.write(text)
            subprocess.run(["sh", script, folder + "/features.d"], check=True, timeout=60)
            self.assertEqual(os.listdir(folder + "/features.d"), ["cufit.features"])
            with open(folder + "/features.d/cufit.features", encoding="utf-8") as file:
                return file.read().splitlines()

    def test_features(self):
        start = "cufit.feature.node.kubernetes.io/"
        lines = self.features('{\n  "findings": [\n    {\n      "action": "isolate"\n    }\n  ],\n  "action": "ok",\n  "fingerprint": "ab-12"\n}', 0)
        self.assertRegex(lines[0], r"^# \+expiry-time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        for line in ("health=usable", "action=ok", "fingerprint=ab-12", "cuda=13.0"):
            self.assertIn(start + line, lines)
        self.assertIn(start + "health=not-usable", self.features("{}", 1))
        self.assertIn(start + "health=unknown", self.features("", 2))
        self.assertIn(start + "health=unknown", self.features("garbage", 127))
        # A value that is none of a label's is left out.
        hostile = self.features('{\n  "action": "o k; rm",\n  "fingerprint": "-$(id)"\n}', 0)
        self.assertFalse([one for one in hostile if "action" in one or "fingerprint" in one])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
