# SPDX-License-Identifier: Apache-2.0
"""`cufit k8s lint` on what a container starts: processes, GPUs that it needs and chooses."""

import json
import os
import subprocess
import unittest

from support import NEEDS_YAML, POD, lint, run_tests, yaml


class Programs(unittest.TestCase):
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
        text = (POD % ("", 2, "", "")).replace("nvidia.com/gpu:", "nvidia.com/mig-3g.40gb:") + volume
        for command, ids in (("[torchrun, --nproc_per_node=2, t.py]", ["k8s_process_count"]),
                             ("[torchrun, t.py]", ["k8s_shared_gpu_count"]),
                             ("[sh, -c, 'CUDA_VISIBLE_DEVICES=MIG-a torchrun --nproc_per_node=2 t.py']",
                              ["k8s_shared_gpu_count"])):
            answer, _ = lint("-", text=text.replace("[python, t.py]", command))
            self.assertEqual([one["id"] for one in answer["findings"]], ids, command)

    def ids_of(self, command, gpus=1, more=""):
        """Findings of a pod with this command and no memory for /dev/shm to miss."""
        limits = "nvidia.com/gpu: %d" % gpus if gpus else "cpu: 1"
        text = ("kind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: main\n"
                "    image: team:1\n    command: %s\n    resources: {limits: {%s}}\n%s"
                % (json.dumps(command), limits, more))
        return [one["id"] for one in lint("-", text=text)[0]["findings"]]

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

    def test_a_server_may_be_built_for_another_device(self):
        text = "kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: m, command: [vllm, serve, x]}]}\n"
        (one,) = lint("-", text=text)[0]["findings"]
        self.assertIn("unless the image has a build for another device", one["why"])

    def test_a_training_run_that_begins_again(self):
        self.assertEqual(self.ids_of(["python", "train.py"]), ["k8s_restart_loop"])
        self.assertEqual(self.ids_of(["python", "train.py"], 1, "  restartPolicy: OnFailure\n"), [])
        for command in (["python", "serve.py"], ["sh", "-c", "python train.py; sleep infinity"]):
            self.assertEqual(self.ids_of(command), [], command)

    def test_capabilities_of_programs_that_compute(self):
        def ids(command, value):
            text = POD % (command, 1, "", "{name: NVIDIA_DRIVER_CAPABILITIES, value: '%s'}" % value)
            return [one["id"] for one in lint("-", text=text)[0]["findings"]]
        vllm = ", vllm, serve, a"
        self.assertEqual(ids(vllm, "utility"), ["container_driver_capabilities"])
        self.assertEqual(ids(", --device, cuda", "utility"), ["container_driver_capabilities"])
        self.assertEqual(ids("", "utility"), [])  # it may only look
        for value in ("", "all", "compute,utility", "utility, compute", "$(CAPABILITIES)"):
            self.assertEqual(ids(vllm, value), [], value)
        self.assertEqual(ids("", "graphics,display"), [])  # nobody knows what it computes

    @NEEDS_YAML
    def test_the_library_path_is_the_pods_own(self):
        text = POD % (", 'it\\'s \"$0\"'".replace("\\'", "''"), 1, "",
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
            text = POD % (", vllm, serve, a/b-70B" + option, 1, ", memory: 80Gi", "")
            self.assertEqual([one["id"] for one in lint("-", text=text)[0]["findings"]], ids)


if __name__ == "__main__":
    run_tests()
