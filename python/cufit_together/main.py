# SPDX-License-Identifier: Apache-2.0
"""Do the GPUs of this host work together? The program that `cufit doctor --deep` starts with an
environment's Python (src/host/python/together_run.cc):

    python -c PROGRAM BACKEND DEVICE RANKS BYTES SECONDS      nccl cuda 8 1073741824 120

First one process copies between each pair of devices, then one process per device sums a tensor
over all of them (all-reduce). Every value is compared: they are whole numbers small enough that
float32 holds each sum exactly, whatever the order of adding. The last line of stdout is "cufit: "
and a JSON object.

This process imports no torch, so it cannot hang in a driver: it forks the others, reads what they
say, and kills all of them when one fails or the time is over, with the shared-memory files that
NCCL had open. The ranks meet in a FileStore in memory (memfd), so that nothing lies on a disk.
Python 3.8 and later, Linux."""

import json
import os
import re
import signal
import sys
import time

from .processes import Group, Process
from .work import Job, Rank, copy_pairs


class Stopped(Exception):
    """A signal asks this program to end."""


def run_group(works, deadline):
    group = Group(works)
    try:
        outcome = group.wait(deadline)
    finally:
        group.end()
    group.take(0)
    told = {"outcome": outcome, "said": "", "warning": ""}
    failed = sorted((one for one in group.all if one.why_failed()), key=Process.failed_at)
    if outcome == "failed" and failed:
        told["said"] = failed[0].why_failed()
    elif outcome == "hung":
        steps = [
            "%s: %s" % (one.name, one.said["step"]) for one in group.all if "done" not in one.said
        ]
        told["said"] = "; ".join(steps)
    if outcome != "ok":
        warnings = [one.last_warning() for one in failed + group.all]
        told["warning"] = next((one for one in warnings if one), "")
    told["left"] = group.left
    return group, told


def transports(group):
    """ "P2P/CUMEM", "SHM/direct/direct": how NCCL says that its channels go."""
    text = "".join(one.printed.decode(errors="replace") for one in group.all)
    return sorted(set(re.findall(r"NCCL INFO Channel [^\n]*? via ([A-Za-z0-9/+_-]{2,40})", text)))


def ask_copies(job, deadline):
    group, told = run_group([("copies", lambda say: copy_pairs(job, say))], deadline)
    one = group.all[0]
    told["bytes"], told["pairs"] = one.said.get("bytes", 0), one.pairs
    bad = [pair for pair in one.pairs if pair["wrong"]]
    wrong = ["from %d to %d: %s" % (pair["from"], pair["to"], pair["wrong"]) for pair in bad]
    if wrong:  # the worst of all, also where a later copy hangs
        told["said"] = "; ".join(wrong[:1] + ([told["said"]] if told["said"] else []))
        told["outcome"] = "wrong"
    return told


def ask_sum(job, deadline):
    works = [
        ("rank %d" % rank, lambda say, rank=rank: Rank(job, rank, say).run())
        for rank in range(job.ranks)
    ]
    group, told = run_group(works, deadline)
    told["via"] = transports(group)
    said = [one.said for one in group.all]
    told["torch"], told["version"] = said[0].get("torch", ""), said[0].get("version", "")
    if told["outcome"] != "ok":
        return told
    told["bytes"] = said[0]["bytes"]
    told["bus_bytes_per_second"] = min(one["bus"] for one in said)
    told["small_seconds"] = max(one["small_seconds"] for one in said)
    for one in group.all:
        if one.said["wrong"]:
            told["outcome"], told["said"] = "wrong", "%s: %s" % (one.name, one.said["wrong"])
            break
    return told


def stop(number, frame):
    raise Stopped()


def main(backend, device, ranks, most, seconds):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    end = time.monotonic() + float(seconds)
    # NCCL's words are read; where the user sends them elsewhere, they would be missing here.
    os.environ["NCCL_DEBUG"], os.environ["NCCL_DEBUG_SUBSYS"] = "INFO", "INIT"
    os.environ.pop("NCCL_DEBUG_FILE", None)
    # The links are asked, not multicast in the switches (NVLS): that needs rights and set-up of
    # the whole fabric, which virtual machines share with others. What the user sets stays.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    job = Job(backend, device, int(ranks), int(most))
    answer = {"backend": backend, "ranks": job.ranks}
    # A copy that hangs leaves two thirds of the time for the sum.
    answer["copies"] = ask_copies(job, time.monotonic() + float(seconds) / 3)
    answer["sum"] = ask_sum(job, end)
    sys.stdout.write("\ncufit: " + json.dumps(answer) + "\n")
    sys.stdout.flush()


def run():
    try:
        main(*sys.argv[1:])
    except Stopped:
        os._exit(1)
