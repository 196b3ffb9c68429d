#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs cufit on a machine with NVIDIA GPUs and holds its answers against the machine.

    check_machine.py path/to/cufit [folder for the outputs]

1. `doctor --json` against `nvidia-smi -q -x` (compare_nvidia_smi.py).
2. `doctor --deep --json`: every visible device computes, its memory test passes, and every environment's torch
   either multiplies correctly or says why not (printed).
3. The device is left as it was: no process of ours, and the same memory in use, afterwards.
4. With CUDA_VISIBLE_DEVICES empty the driver reports no device (100) and NVML still lists all.

Exit code 0 = all of it holds, 1 = something does not, 2 = could not be run. Standard library only.
"""

import json
import os
import subprocess
import sys
import time

import compare_nvidia_smi


def doctor(program, *arguments, **variables):
    begin = time.monotonic()
    done = subprocess.run([program, "doctor", "--json", *arguments], stdout=subprocess.PIPE,
                          env=dict(os.environ, **variables), check=False)
    print("doctor %s: exit %d, %.2f s" % (" ".join(arguments), done.returncode, time.monotonic() - begin))
    return json.loads(done.stdout)


def value(facts, name):
    return compare_nvidia_smi.fact(facts, name)


def used_mib():
    text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    return [int(line) for line in text.split()]


def check_deep(facts, expect):
    cuda = facts["cuda"]
    expect("cuInit", value(cuda, "init_result"), 0)
    expect("devices", len(cuda.get("devices", [])), len(facts["nvml"].get("gpus", [])))
    for device in cuda.get("devices", []):
        place = "device %d " % device.get("ordinal", 0)
        expect(place + "compute_check", value(device, "compute_check"), "ok")
        expect(place + "compute_code", value(device, "compute_code"), 0)
        expect(place + "memory_test", value(device, "memory_test"), "ok")
        print("     %stested %s bytes" % (place, value(device, "memory_tested_bytes")))
    print("     driver_seconds %.3f" % cuda.get("driver_seconds", 0))
    for env in facts.get("envs", []):
        print("     torch in %s: %s" % (env.get("path"), json.dumps(env.get("torch_run"))))
    for problem in facts.get("problems", []):
        print("     problem:", problem)


def main(arguments):
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    program, folder = arguments[1], arguments[2] if len(arguments) == 3 else "."
    failures = []

    def expect(what, ours, wanted):
        print("%-4s %s: %s" % ("ok" if ours == wanted else "BAD", what, ours))
        if ours != wanted:
            failures.append(what)

    os.makedirs(folder, exist_ok=True)
    before = used_mib()
    plain = os.path.join(folder, "doctor.json")
    with open(plain, "w", encoding="utf-8") as file:
        json.dump(doctor(program), file)
    xml = os.path.join(folder, "nvidia-smi.xml")
    with open(xml, "wb") as file:
        subprocess.run(["nvidia-smi", "-q", "-x"], stdout=file, check=True)
    expect("agreement with nvidia-smi (exit code)", compare_nvidia_smi.main(["compare", plain, xml]), 0)
    deep = doctor(program, "--deep")
    with open(os.path.join(folder, "doctor-deep.json"), "w", encoding="utf-8") as file:
        json.dump(deep, file)
    check_deep(deep["facts"], expect)
    hidden = doctor(program, CUDA_VISIBLE_DEVICES="")["facts"]
    expect("cuInit without visible devices", value(hidden["cuda"], "init_result"), 100)
    expect("GPUs of NVML without visible devices", len(hidden["nvml"].get("gpus", [])), len(before))
    expect("memory in use afterwards (MiB)", used_mib(), before)
    print("%d failed" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
