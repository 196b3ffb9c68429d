#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of `cufit doctor --deep` that asks whether GPUs work together
(python/cufit_together), on the CPU under a real PyTorch with gloo: the same code but for the
backend and the devices. faults/ breaks the all-reduce.

together_test.py BUILD [TEST...]: the program is BUILD/generated/cufit_together.py, PyTorch that of
BUILD/torch (tools/fetch-torch). Ends with 77 where there is none."""

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import time
import types
import unittest
import unittest.mock

HERE = os.path.dirname(os.path.abspath(__file__))
HELD = "nccl-cufit%d" % os.getpid()  # a file of the hanging rank in /dev/shm
# What is run: name -> ranks, seconds, fault.
RUNS = {
    "two": (2, 300, ""),
    "four": (4, 300, ""),
    "wrong": (2, 300, "wrong"),
    "wrong_small": (2, 300, "wrong_small"),
    "raise": (2, 300, "raise"),
    "kill": (3, 300, "kill"),
    # Long enough to import torch on a busy machine.
    "hang": (2, 100, "hang:" + HELD),
}
BYTES = 1 << 20
ran = {}


def start(build, ranks, seconds, fault):
    python = os.path.join(build, "torch", "bin", "python")
    with open(os.path.join(build, "generated", "cufit_together.py")) as file:
        text = file.read()
    environment = dict(
        os.environ,
        CUFIT_FAULT=fault,
        PYTHONPATH=os.path.join(HERE, "faults"),
        PYTHONDONTWRITEBYTECODE="1",
        OMP_NUM_THREADS="1",
        NCCL_DEBUG_FILE="/nonexistent/file",
    )
    command = [python, "-c", text, "gloo", "cpu", str(ranks), str(BYTES), str(seconds)]
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def group_is_empty(group):
    for _ in range(100):  # what was killed may take a moment to be reaped
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


class Ran:
    def __init__(self, build, ranks, seconds, fault):
        process = start(build, ranks, seconds, fault)
        self.out, self.err = (one.decode() for one in process.communicate(timeout=600))
        self.code, self.empty = process.returncode, group_is_empty(process.pid)
        mark, _, answer = self.out.strip().rpartition("cufit: ")
        self.answer = json.loads(answer) if answer else None
        self.sum = self.answer["sum"] if answer else None


class Together(unittest.TestCase):
    def one(self, name):
        run = ran[name]
        self.assertEqual(run.code, 0, run.err)
        self.assertTrue(run.empty, "processes were left behind")
        self.assertEqual(run.sum["left"], [])
        return run

    def test_sums_of_two_and_four_are_right_and_timed(self):
        for name, ranks in (("two", 2), ("four", 4)):
            run = self.one(name)
            self.assertEqual((run.answer["backend"], run.answer["ranks"]), ("gloo", ranks))
            self.assertEqual((run.sum["outcome"], run.sum["said"]), ("ok", ""))
            self.assertEqual(run.sum["bytes"], BYTES)
            self.assertGreater(run.sum["bus_bytes_per_second"], 0)
            self.assertGreater(run.sum["small_seconds"], 0)
            self.assertTrue(run.sum["torch"])

    def test_each_ordered_pair_is_copied(self):
        copies = self.one("four").answer["copies"]
        self.assertEqual((copies["outcome"], copies["bytes"]), ("ok", BYTES))
        pairs = [(one["from"], one["to"]) for one in copies["pairs"]]
        self.assertEqual(pairs, [(a, b) for a in range(4) for b in range(4) if a != b])
        for one in copies["pairs"]:
            self.assertEqual((one["wrong"], one["access"]), ("", None))
            self.assertGreater(one["bytes_per_second"], 0)

    def test_a_wrong_copy_is_told_where_a_later_one_hangs(self):
        sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
        from cufit_together import main

        pairs = [{"from": 0, "to": 1, "wrong": "3 of 4 values"}, {"from": 1, "to": 0, "wrong": ""}]
        one = types.SimpleNamespace(said={"bytes": 16}, pairs=pairs)
        told = {"outcome": "hung", "said": "copies: copy from 0 to 2"}
        with unittest.mock.patch.object(
            main, "run_group", lambda works, deadline: (types.SimpleNamespace(all=[one]), told)
        ):
            asked = main.ask_copies(None, 0)
        self.assertEqual(asked["outcome"], "wrong")
        self.assertEqual(asked["said"], "from 0 to 1: 3 of 4 values; copies: copy from 0 to 2")

    def test_one_wrong_value_is_named(self):
        run = self.one("wrong")
        self.assertEqual(run.sum["outcome"], "wrong")
        middle = BYTES // 4 // 2
        right = sum((middle % 1021) * (rank + 1) % 1021 for rank in range(2))
        self.assertEqual(
            run.sum["said"],
            "rank 1: 1 of %d values are wrong: value %d is %d instead of %d"
            % (BYTES // 4, middle, right + 1, right),
        )
        self.assertEqual(run.sum["via"], ["P2P/CUMEM"])
        small = self.one("wrong_small").sum
        self.assertEqual(
            (small["outcome"], small["said"]),
            ("wrong", "rank 1: 1 of 2 values are wrong: value 1 is 4 instead of 3"),
        )

    def test_an_error_is_told_and_ends_the_others(self):
        run = self.one("raise")
        self.assertEqual(run.sum["outcome"], "failed")
        self.assertEqual(
            run.sum["said"],
            "rank 1, sum of 8 bytes: RuntimeError: NCCL error in: unhandled system error",
        )

    def test_a_killed_rank_is_told(self):
        run = self.one("kill")
        self.assertEqual(run.sum["outcome"], "failed")
        self.assertEqual(run.sum["said"], "rank 1, sum of 8 bytes: ended by signal 9")

    def test_a_hang_is_ended_and_nothing_stays(self):
        run = self.one("hang")
        self.assertEqual(run.sum["outcome"], "hung")
        self.assertIn("rank 1: sum of 8 bytes", run.sum["said"])
        self.assertEqual(
            run.sum["warning"], "NCCL WARN Call to posix_fallocate failed: No space left"
        )
        self.assertFalse(os.path.exists("/dev/shm/" + HELD), "a file was left in /dev/shm")

    def test_its_end_is_the_end_of_all(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            process = start(self.build, 2, 300, "hang:")
            time.sleep(2)
            process.send_signal(number)
            process.communicate(timeout=60)
            self.assertTrue(group_is_empty(process.pid), number)


def main():
    build, names = sys.argv[1], sys.argv[2:]
    python = os.path.join(build, "torch", "bin", "python")
    if not os.path.exists(python):
        print("no PyTorch: tools/fetch-torch %s" % build)
        sys.exit(77)
    Together.build = build
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = {name: pool.submit(Ran, build, *RUNS[name]) for name in RUNS}
        ran.update({name: job.result() for name, job in jobs.items()})
    unittest.main(argv=[sys.argv[0], *names])


if __name__ == "__main__":
    main()
