#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""On a machine with a GPU: does `cufit top --json` say what NVML says at the same moment?

    python3 tests/gpu/compare_top.py CUFIT      (PYTHONPATH: nvidia-ml-py)

The GPU is loaded by torch meanwhile. NVML is read before and after; where a figure moves, the
program must lie between both, give or take the share in MOVES. Exit code 1: a field differs.
"""

import json
import subprocess
import sys
import time

import pynvml as nvml

LOAD = """
import time, torch
a = torch.randn(8192, 8192, device="cuda")
b = torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
print("ready", flush=True)
while True:
    for _ in range(20): a @ a
    torch.cuda.synchronize()
"""


def tried(function, *arguments):
    try:
        return function(*arguments)
    except nvml.NVMLError as error:
        return f"{error}"


def read(gpu):
    """What NVML says, by the names of cufit.top/1; an error's text where NVML has none."""
    memory = tried(nvml.nvmlDeviceGetMemoryInfo, gpu, nvml.nvmlMemory_v2)
    power, limit = (
        tried(nvml.nvmlDeviceGetPowerUsage, gpu),
        tried(nvml.nvmlDeviceGetEnforcedPowerLimit, gpu),
    )
    use = tried(nvml.nvmlDeviceGetUtilizationRates, gpu)
    ecc = nvml.NVML_VOLATILE_ECC
    return {
        "uuid": tried(nvml.nvmlDeviceGetUUID, gpu),
        "name": tried(nvml.nvmlDeviceGetName, gpu),
        "memory_total_bytes": memory.total,
        "memory_used_bytes": memory.used,
        "memory_free_bytes": memory.free,
        "memory_reserved_bytes": memory.reserved,
        "utilization": use if isinstance(use, str) else use.gpu / 100,
        "memory_utilization": use if isinstance(use, str) else use.memory / 100,
        "power_watts": power if isinstance(power, str) else power / 1000,
        "power_limit_watts": limit if isinstance(limit, str) else limit / 1000,
        "energy_joules": tried(nvml.nvmlDeviceGetTotalEnergyConsumption, gpu),
        "temperature_c": tried(nvml.nvmlDeviceGetTemperature, gpu, nvml.NVML_TEMPERATURE_GPU),
        "slowdown_temperature_c": tried(
            nvml.nvmlDeviceGetTemperatureThreshold, gpu, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
        ),
        "fan": tried(nvml.nvmlDeviceGetFanSpeed, gpu),
        "sm_clock_mhz": tried(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_SM),
        "sm_clock_max_mhz": tried(nvml.nvmlDeviceGetMaxClockInfo, gpu, nvml.NVML_CLOCK_SM),
        "memory_clock_mhz": tried(nvml.nvmlDeviceGetClockInfo, gpu, nvml.NVML_CLOCK_MEM),
        "memory_clock_max_mhz": tried(nvml.nvmlDeviceGetMaxClockInfo, gpu, nvml.NVML_CLOCK_MEM),
        "pcie_gen": tried(nvml.nvmlDeviceGetCurrPcieLinkGeneration, gpu),
        "pcie_gen_max": tried(nvml.nvmlDeviceGetMaxPcieLinkGeneration, gpu),
        "pcie_width": tried(nvml.nvmlDeviceGetCurrPcieLinkWidth, gpu),
        "pcie_width_max": tried(nvml.nvmlDeviceGetMaxPcieLinkWidth, gpu),
        "pcie_replays": tried(nvml.nvmlDeviceGetPcieReplayCounter, gpu),
        "ecc_corrected": tried(
            nvml.nvmlDeviceGetTotalEccErrors, gpu, nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, ecc
        ),
        "ecc_uncorrected": tried(
            nvml.nvmlDeviceGetTotalEccErrors, gpu, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, ecc
        ),
    }


# Figures that move from read to read, and the share by which the program may be outside.
MOVES = {
    "power_watts": 0.2,
    "utilization": 0.3,
    "memory_utilization": 0.3,
    "temperature_c": 0.08,
    "sm_clock_mhz": 0.1,
    "energy_joules": 0.01,
}


def holds(field, before, after, said):
    if isinstance(said, str):
        return said == before == after
    if isinstance(before, str) or isinstance(after, str):
        return said is None
    if said is None:
        return False
    scale = 1000 if field == "energy_joules" else 1
    low, high = sorted((before / scale, after / scale))
    slack = MOVES.get(field, 0) * max(abs(high), 1e-9)
    return low - slack <= said <= high + slack


def told(right, text):
    print("same    " if right else "DIFFERS ", text)


def main():
    cufit = sys.argv[1]
    nvml.nvmlInit()
    load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE)
    wrong = 0
    try:
        load.stdout.readline()
        time.sleep(3)
        for index in range(nvml.nvmlDeviceGetCount()):
            gpu = nvml.nvmlDeviceGetHandleByIndex(index)
            before = read(gpu)
            said = json.loads(subprocess.check_output([cufit, "top", "--json"]))
            after = read(gpu)
            row = next(r for r in said["gpus"] if r["index"] == index)
            for field in before:
                right = holds(field, before[field], after[field], row[field])
                wrong += not right
                told(right, f"{field:24}{before[field]} | {row[field]} | {after[field]}")
            mine = {p["pid"]: p for p in said["processes"] if p["gpu"] == index}
            for process in nvml.nvmlDeviceGetComputeRunningProcesses(gpu):
                got = mine.pop(process.pid, None)
                right = got is not None and got["memory_bytes"] == process.usedGpuMemory
                wrong += not right
                told(right, f"process {process.pid} {process.usedGpuMemory} | {got}")
            wrong += len(mine)
            print("only cufit names:", mine)
            print(
                "throttle:", row["throttle"], hex(nvml.nvmlDeviceGetCurrentClocksEventReasons(gpu))
            )
            for missing in said["missing"]:
                print("missing:", missing)
    finally:
        load.kill()
    print(f"{wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
