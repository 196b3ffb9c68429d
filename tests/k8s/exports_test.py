# SPDX-License-Identifier: Apache-2.0
"""The files of `cufit export` for a cluster, read by those who know them: kubernetes-validate where
it is there (`pip install kubernetes-validate`), the fields of node-problem-detector, shells that run
the scripts with stand-ins."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from support import BUILD, NEEDS_YAML, export, lint, read, run_tests, yaml


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

    @NEEDS_YAML
    def test_quota_and_its_defaults(self):
        quota, limits = yaml.safe_load_all(export(*self.MANIFESTS[2])["quota.yaml"])
        self.assertEqual(quota["spec"]["hard"], {
            "requests.nvidia.com/gpu": "8", "requests.nvidia.com/gpu.shared": "4",
            "requests.nvidia.com/mig-1g.10gb": "4"})
        one = limits["spec"]["limits"][0]
        # Kubernetes makes a missing default of the maximum.
        self.assertEqual(set(one["max"]), set(one["default"]))
        self.assertEqual(set(one["default"].values()), {"0"})

    @NEEDS_YAML
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

    @NEEDS_YAML
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
    run_tests()
