#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `cufit bench loader` measures of programs whose loops are not one loop over one loader:
loader_test.py CUFIT. The stub of torch stands for torch: its loader naps 40 ms a batch without
workers and 0.5 ms with some."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

CUFIT = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = """
import os, sys, time, torch
from torch.utils.data import DataLoader
class SGD(torch.optim.Optimizer):
    def step(self): time.sleep(0.01)
sgd = SGD()
def train(batch):
    sgd.step()
"""


class LoaderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.env = os.path.join(cls.scratch.name, "env")
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", cls.env], check=True)
        lib = os.path.join(cls.env, "lib")
        site = os.path.join(lib, os.listdir(lib)[0], "site-packages", "torch")
        shutil.copytree(os.path.join(HERE, "stub", "torch"), site)

    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=self.scratch.name)

    # (exit code, answer or None, stderr)
    def run_cufit(self, program, *words, env=None, **variables):
        with open(os.path.join(self.folder, "train.py"), "w") as file:
            file.write(HEAD + program)
        environment = {"PATH": os.environ["PATH"], "LANG": "C", "HOME": self.folder, **variables}
        words = ("--time", "4", "--workers", "0,2", *words)
        done = subprocess.run(
            [CUFIT, "bench", "loader", "--json", *words, "--env", env or self.env, "--", "python", "train.py"],
            capture_output=True, text=True, env=environment, cwd=self.folder, timeout=120,
        )  # fmt: skip
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    def files(self):
        return sorted(set(os.listdir(self.folder)) - {"train.py"})

    def assert_step(self, told, seconds):
        self.assertIsNotNone(told["step"])
        self.assertGreater(told["step"]["seconds"], seconds * 0.9)
        self.assertLess(told["step"]["seconds"], seconds * 1.9)

    # Each epoch ends by `break` before a quarter of the time is over; a checkpoint follows it.
    def test_epochs_that_are_left_add_up(self):
        for loop in (
            "for i, batch in enumerate(data):\n  train(batch)\n  if i == 8: break",
            "for i, batch in enumerate(data):\n  if i == 8: break\n  train(batch)",
        ):
            program = "data = DataLoader([1.0] * 400)\nfor epoch in range(200):\n"
            program += "".join(" %s\n" % line for line in loop.splitlines())
            program += " torch.save(epoch, 'model.pt')\nopen('end', 'w')\n"
            code, told, err = self.run_cufit(program)
            self.assertEqual(code, 1, err)
            self.assertEqual(told["phase"], "done")
            self.assert_step(told, 0.01)
            self.assertEqual([one["workers"] for one in told["alone"]], [0, 2])
            self.assertEqual(self.files(), [])

    def test_a_checkpoint_within_the_loop_is_not_written(self):
        code, told, err = self.run_cufit(
            "open('model.pt', 'w').write('good')\n"
            "for i, batch in enumerate(DataLoader([1.0] * 4000)):\n"
            "  train(batch)\n  torch.save('bad', 'model.pt')\n"
        )
        self.assertEqual(told["phase"], "done", err)
        self.assert_step(told, 0.01)
        with open(os.path.join(self.folder, "model.pt")) as file:
            self.assertEqual(file.read(), "good")

    # The one that is waited for is timed, and the step alone waits for neither.
    def test_of_two_loaders_of_one_step_neither_loads_beside_it(self):
        code, told, err = self.run_cufit(
            "quick = DataLoader([1.0] * 4000, num_workers=2)\nslow = DataLoader([1.0] * 4000)\n"
            "for a, b in zip(slow, quick):\n  train(a)\n"
        )
        self.assertEqual((code, told["phase"]), (1, "done"), err)
        self.assert_step(told, 0.01)
        self.assertEqual(told["loader"]["num_workers"], 0)
        self.assertEqual(told["advice"]["num_workers"], 2)

    # Loaders of one line, as of a dict of both: the one without an optimizer is no training loop.
    def test_a_validation_in_between_is_not_taken(self):
        code, told, err = self.run_cufit(
            "data = {k: DataLoader([1.0] * n) for k, n in (('train', 12), ('val', 3))}\n"
            "for epoch in range(100):\n"
            "  for k in data:\n    for batch in data[k]:\n      if k == 'train': train(batch)\n"
        )
        self.assertEqual((code, told["phase"]), (1, "done"), err)
        self.assertEqual(told["loader"]["batches"], 12)

    # A framework keeps its iterators, asks the validation's once before, and goes from one loop into the
    # other without an end.
    def test_a_validation_within_the_loop_is_nobodys_work(self):
        code, told, err = self.run_cufit(
            "data, other = DataLoader([1.0] * 4000), DataLoader([1.0] * 4000)\n"
            "check = iter(other)\nnext(check)\n"
            "for epoch in range(100):\n"
            "  kept = it = iter(data)\n"
            "  for i in range(10): train(next(it))\n"
            "  val = iter(other)\n"
            "  for i in range(25): next(val)\n"
        )
        self.assertEqual((code, told["phase"]), (1, "done"), err)
        self.assertEqual(told["other_loaders"], [])
        self.assertGreater(told["optimizer_steps"], 5)
        self.assert_step(told, 0.01)
        self.assertGreater(told["advice"]["waited"], 0.7)  # 40 of 50 ms

    # What goes into an open file is written: an empty one would take the place of the old one.
    def test_a_checkpoint_in_an_open_file_is_whole(self):
        code, told, err = self.run_cufit(
            "class Kept:\n  def save(self, thing):\n    with open('kept', 'w') as file: torch.save(thing, file)\n"
            "for epoch in range(200):\n"
            "  for i, batch in enumerate(DataLoader([1.0] * 400)):\n"
            "    train(batch)\n    if i == 8: break\n"
            "  Kept().save('whole')\n"
        )
        self.assertEqual(told["phase"], "done", err)
        with open(os.path.join(self.folder, "kept")) as file:
            self.assertEqual(file.read(), "whole")

    # Before 2.0 torch has no profile_hook_step.
    def test_an_older_torch_runs_and_its_steps_are_seen(self):
        code, told, err = self.run_cufit(
            "for batch in DataLoader([1.0] * 4000): train(batch)\n", STUB_TORCH="1.13"
        )
        self.assertEqual((code, told["phase"]), (1, "done"), err)
        self.assertGreater(told["optimizer_steps"], 5)

    # The second process takes its batches from a loader that is slow: the step of the first one,
    # which waits for it as a job does, is not to wait for that.
    def test_other_processes_of_a_job_load_nothing_beside_the_step(self):
        code, told, err = self.run_job()
        self.assertEqual((told["phase"], told["processes"]), ("done", 2), err)
        self.assert_step(told, 0.01)
        self.assertIsNone(told["end"])

    # What it wrote says why; a longer --time does not help.
    def test_a_program_that_fails_in_its_loop_is_said_to_have_failed(self):
        code, told, err = self.run_cufit(
            "for i, batch in enumerate(DataLoader([1.0] * 4000)):\n"
            "  if i > 40: sys.exit('no luck')\n  train(batch)\n"
        )
        self.assertEqual((code, told["phase"]), (3, "step"), err)
        self.assertEqual(told["end"], {"code": 1, "timed_out": False, "workers": None})
        self.assertEqual(told["advice"]["verdict"], "not_told")
        self.assertIn("no luck", err)

    # As where the host's memory ends.
    def test_a_program_that_dies_with_more_workers_names_them(self):
        code, told, err = self.run_cufit(
            "class Data(list):\n"
            "  loops = 0\n"
            "  def __iter__(self):\n"
            "    self.loops += 1\n"
            "    if self.loops == 3: os.kill(os.getpid(), 9)\n"
            "    return super().__iter__()\n"
            "for batch in DataLoader(Data([1.0] * 4000)): train(batch)\n"
        )
        self.assertEqual(told["phase"], "loader", err)
        self.assertEqual(told["end"], {"code": 137, "timed_out": False, "workers": 2})
        self.assertEqual([one["workers"] for one in told["alone"]], [0])

    def test_an_environment_without_python_is_not_replaced_by_another(self):
        os.mkdir(os.path.join(self.folder, "bare"))
        code, told, err = self.run_cufit("", env="bare")
        self.assertEqual((code, told), (2, None))
        self.assertIn("no Python was found there", err)

    def run_job(self):
        return self.run_cufit(
            "rank = os.environ.get('RANK', '0')\n"
            "if rank == '0':\n"
            "  read, write = os.pipe()\n"
            "  os.set_inheritable(write, True)\n"
            "  os.environ['TO'] = str(write)\n"
            "  if os.fork() == 0:\n"
            "    os.environ['RANK'] = '1'\n"
            "    os.execv(sys.executable, [sys.executable, 'train.py'])\n"
            "  os.close(write)\n"
            "for batch in DataLoader([1.0] * 4000, num_workers=2 if rank == '0' else 0):\n"
            "  train(batch)\n"
            "  if rank == '0':\n    os.read(read, 1)\n"
            "  else:\n    os.write(int(os.environ['TO']), b'.')\n",
            LOCAL_WORLD_SIZE="2",
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
