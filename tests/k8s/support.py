# SPDX-License-Identifier: Apache-2.0
"""What the tests of `cufit k8s lint` and of the files for a cluster share. The command line of each
is CUFIT BUILD_FOLDER [TEST...]."""

import json
import os
import subprocess
import sys
import unittest

try:
    import yaml
except ImportError:
    yaml = None

HERE = os.path.dirname(os.path.abspath(__file__))
CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
NEEDS_YAML = unittest.skipIf(yaml is None, "python3-yaml is not there")
# Command behind "t.py", number of GPUs, more limits, variables.
POD = ("kind: Pod\nmetadata: {name: a}\nspec:\n  restartPolicy: Never\n  containers:\n"
       "  - name: main\n    image: team:1\n    command: [python, t.py%s]\n"
       "    resources: {limits: {nvidia.com/gpu: %d%s}}\n    env: [%s]\n")


def cufit(*words, text=None):
    return subprocess.run([CUFIT, *words], capture_output=True, text=True, input=text, timeout=60,
                          cwd=os.path.dirname(os.path.dirname(HERE)))


def lint(*words, text=None):
    ran = cufit("k8s", "lint", "--json", *words, text=text)
    return json.loads(ran.stdout), ran.returncode


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def export(to, *words):
    ran = cufit("export", "--to", to, "--json", *words)
    if ran.returncode != 0:
        raise AssertionError(ran.stderr)
    return {one["path"]: one["text"] for one in json.loads(ran.stdout)["files"]}


def place_of(document, path):
    for part in path.split("."):
        name, _, index = part.partition("[")
        document = document[name]
        if index:
            document = document[int(index[:-1])]
    return document


def run_tests():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
