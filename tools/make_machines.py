#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Composes tests/machines/<name>/facts.json and expect.json of the crafted machines.

One fragment (a GPU, a driver, a wheel) is written once here, so that all machines stay consistent. Device code,
NEEDED lists and pins come from tests/machines/wheels.json, which was read from published wheels. What is expected of a
machine is written by hand beside it, from the rules of the drivers and loaders, not from cufit's output; `why` says
which rule. Directories that hold a file `recorded` come from a real machine and are not touched.

Run: python3 tools/make_machines.py   (writes; then `git diff` shows what a changed fragment means)
"""
import copy
import json
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "tests" / "machines"
WHEELS = json.loads((OUT / "wheels.json").read_text())
GPUS = {row["name"]: row for row in tomllib.loads((ROOT / "data/gpus.toml").read_text())["gpu"]["rows"]}
GIB = 1 << 30


def known(value, detail, kind="file"):
    return {"value": value, "source": {"kind": kind, "detail": detail}}


def missing(why, detail, note="", kind="file"):
    fact = {"missing": why, "source": {"kind": kind, "detail": detail}}
    if note:
        fact["note"] = note
    return fact


def nvml(value, call):
    return known(value, call, "nvml")


def cuda(value, call):
    return known(value, call, "cuda")


# --- the system ---------------------------------------------------------------------------------------------------

def system(distribution="Ubuntu 22.04.5 LTS", ident="ubuntu 22.04", kernel="6.8.0-60-generic", arch="x86_64",
           glibc="2.35", glibcxx="3.4.30", cpus=32, ram=128 * GIB, shm=64 * GIB, container="none", wsl=None,
           jetson=None, secure_boot=False, memlock=None):
    facts = {
        "distribution": known(distribution, "/etc/os-release"),
        "distribution_id": known(ident, "/etc/os-release"),
        "kernel": known(kernel, "/proc/sys/kernel/osrelease"),
        "architecture": known(arch, "uname"),
        "libc": known("glibc", "/lib64/ld-linux-x86-64.so.2"),
        "glibc": known(glibc, "libc.so.6"),
        "glibcxx": known(glibcxx, "libstdc++.so.6"),
        "cpus": known(cpus, "sched_getaffinity"),
        "cpu_limit": missing("not_present", "/sys/fs/cgroup/cpu.max"),
        "ram_bytes": known(ram, "/proc/meminfo"),
        "ram_available_bytes": known(ram * 3 // 4, "/proc/meminfo"),
        "memory_limit_bytes": missing("not_present", "/sys/fs/cgroup/memory.max"),
        "cgroup": known("v2", "/sys/fs/cgroup/cgroup.controllers"),
        "shm_bytes": known(shm, "/dev/shm"),
        "memlock_bytes": known(memlock or 2**64 - 1, "getrlimit"),
        "wsl": known(wsl, "/proc/sys/kernel/osrelease") if wsl else missing("not_present", "/proc/sys/kernel/osrelease"),
        "container": known(container, "/.dockerenv" if container == "docker" else "/proc/1/environ"),
        "jetson": known(jetson, "/etc/nv_tegra_release") if jetson else missing("not_present", "/etc/nv_tegra_release"),
        "secure_boot": known(secure_boot, "/sys/firmware/efi/efivars/SecureBoot"),
    }
    return facts


# --- GPUs and drivers ---------------------------------------------------------------------------------------------

def address_of(index):
    return f"0000:{(index + 1):02x}:00.0"


def pci_gpu(name, index=0, driver="nvidia", bar1=None, width=16, width_max=16):
    row = GPUS[name]
    ids = row.get("pci_ids") or ["ffff"]
    big = row["segment"] == "datacenter"
    return {
        "address": address_of(index), "device_id": ids[0], "subsystem_id": "10de:0000",
        "class_code": "0302" if big else "0300",
        "driver": known(driver, f"/sys/bus/pci/devices/{address_of(index)}/driver") if driver
        else missing("not_present", f"/sys/bus/pci/devices/{address_of(index)}/driver"),
        "link_speed": known("16.0 GT/s PCIe", f"/sys/bus/pci/devices/{address_of(index)}/current_link_speed"),
        "link_speed_max": known("16.0 GT/s PCIe", f"/sys/bus/pci/devices/{address_of(index)}/max_link_speed"),
        "link_width": known(width, f"/sys/bus/pci/devices/{address_of(index)}/current_link_width"),
        "link_width_max": known(width_max, f"/sys/bus/pci/devices/{address_of(index)}/max_link_width"),
        "bar1_bytes": known((256 << 20 if not big else 128 * GIB) if bar1 is None else bar1,
                            f"/sys/bus/pci/devices/{address_of(index)}/resource"),
    }


def nvml_gpu(name, index=0, used=0, **changes):
    row = GPUS[name]
    total = int(row["memory_gb"] * GIB)
    data = row["segment"] == "datacenter"
    unsupported = lambda call: missing("not_supported", call, "Not Supported", "nvml")
    gpu = {
        "index": index,
        "name": nvml(row["nvml_name"], "nvmlDeviceGetName"),
        "uuid": nvml(f"GPU-0000000{index}-0000-0000-0000-000000000000", "nvmlDeviceGetUUID"),
        "pci_address": nvml("0000" + address_of(index), "nvmlDeviceGetPciInfo_v3"),
        "compute_capability": nvml(row["cc"], "nvmlDeviceGetCudaComputeCapability"),
        "brand": nvml("tesla" if name.startswith("Tesla") else "nvidia" if data else "geforce", "nvmlDeviceGetBrand"),
        "memory_total_bytes": nvml(total, "nvmlDeviceGetMemoryInfo_v2"),
        "memory_used_bytes": nvml(used, "nvmlDeviceGetMemoryInfo_v2"),
        "memory_free_bytes": nvml(total - used - (512 << 20), "nvmlDeviceGetMemoryInfo_v2"),
        "memory_reserved_bytes": nvml(512 << 20, "nvmlDeviceGetMemoryInfo_v2"),
        "mig_current": nvml(False, "nvmlDeviceGetMigMode") if data and row["mig_max"] else unsupported("nvmlDeviceGetMigMode"),
        "mig_pending": nvml(False, "nvmlDeviceGetMigMode") if data and row["mig_max"] else unsupported("nvmlDeviceGetMigMode"),
        "ecc_current": nvml(True, "nvmlDeviceGetEccMode") if data else unsupported("nvmlDeviceGetEccMode"),
        "ecc_pending": nvml(True, "nvmlDeviceGetEccMode") if data else unsupported("nvmlDeviceGetEccMode"),
        "throttle": nvml([], "nvmlDeviceGetCurrentClocksEventReasons"),
        # An idle GPU: generation 1, all lanes.
        "pcie_gen": nvml(4 if data else 1, "nvmlDeviceGetCurrPcieLinkGeneration"),
        "pcie_gen_max": nvml(4, "nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width": nvml(16, "nvmlDeviceGetCurrPcieLinkWidth"),
        "pcie_width_max": nvml(16, "nvmlDeviceGetMaxPcieLinkWidth"),
        "compute_mode": nvml("default", "nvmlDeviceGetComputeMode"),
        "persistence": nvml(data, "nvmlDeviceGetPersistenceMode"),
        "display_active": nvml(False, "nvmlDeviceGetDisplayActive"),
        "temperature_c": nvml(38, "nvmlDeviceGetTemperature"),
        "power_watts": nvml(60, "nvmlDeviceGetPowerUsage"),
        "power_limit_watts": nvml(350, "nvmlDeviceGetEnforcedPowerLimit"),
        "processes": nvml([], "nvmlDeviceGetComputeRunningProcesses_v3"),
    }
    if data:
        gpu.update({
            "ecc_uncorrected_volatile": nvml(0, "nvmlDeviceGetTotalEccErrors"),
            "ecc_uncorrected_aggregate": nvml(0, "nvmlDeviceGetTotalEccErrors"),
            "ecc_corrected_volatile": nvml(2, "nvmlDeviceGetTotalEccErrors"),
            "ecc_corrected_aggregate": nvml(17, "nvmlDeviceGetTotalEccErrors"),
            "remap_pending": nvml(False, "nvmlDeviceGetRemappedRows"),
            "remap_failed": nvml(False, "nvmlDeviceGetRemappedRows"),
            "remapped_correctable": nvml(0, "nvmlDeviceGetRemappedRows"),
            "remapped_uncorrectable": nvml(0, "nvmlDeviceGetRemappedRows"),
        })
    gpu.update(changes)
    return gpu


def cuda_device(name, index=0, check="ok", code=0, **changes):
    row = GPUS[name]
    device = {
        "ordinal": index,
        "name": cuda(row["nvml_name"], "cuDeviceGetName"),
        "uuid": cuda(f"GPU-0000000{index}-0000-0000-0000-000000000000", "cuDeviceGetUuid"),
        "pci_address": cuda(address_of(index), "cuDeviceGetPCIBusId"),
        "compute_capability": cuda(row["cc"], "cuDeviceGetAttribute"),
        "memory_total_bytes": cuda(int(row["memory_gb"] * GIB), "cuDeviceTotalMem_v2"),
        "memory_free_bytes": cuda(int(row["memory_gb"] * GIB) - GIB, "cuMemGetInfo_v2"),
        "integrated": cuda(False, "cuDeviceGetAttribute"),
        "compute_check": cuda(check, "cuLaunchKernel"),
        "compute_code": cuda(code, "cuLaunchKernel"),
    }
    device.update(changes)
    return device


BRANCH_CUDA = {470: 11040, 520: 11080, 535: 12020, 550: 12040, 570: 12080, 575: 12090, 580: 13000, 590: 13010, 595: 13020}
LIB = "/usr/lib/x86_64-linux-gnu"


def driver_library(soname, version, folder=LIB, origin="driver", loads=True, by="ld.so.cache", **more):
    stem = soname[: soname.index(".so")]
    return {"soname": soname, "path": f"{folder}/{soname}", "realpath": f"{folder}/{stem}.so.{version}", "version": version,
            "origin": origin, "loads": loads, "found_by": by, **more}


def node(path, mode="crw-rw-rw-", usable=True):
    if mode is None:
        return {"path": path, "mode": missing("not_present", path)}
    return {"path": path, "mode": known(mode, path), "usable": usable}


def nodes(count=1, mode="crw-rw-rw-", usable=True):
    names = [f"/dev/nvidia{i}" for i in range(count)] + ["/dev/nvidiactl", "/dev/nvidia-uvm"]
    return [node(name, mode, usable) for name in names]


def machine(gpus, driver="580.95.05", flavour="proprietary", envs=(), init=0, nvml_init=0, driver_cuda=None, **sys):
    """A machine on which everything works, as far as `init` and `nvml_init` say."""
    names = [gpus] if isinstance(gpus, str) else list(gpus)
    version = driver_cuda or BRANCH_CUDA[int(driver.split(".")[0])]
    facts = {
        "schema": "cufit.facts/1", "cufit_version": "0.1.0", "origin": "recording",
        "system": system(**sys),
        "pci": known([pci_gpu(n, i) for i, n in enumerate(names)], "/sys/bus/pci/devices"),
        "kernel": {
            "version": known(driver, "/sys/module/nvidia/version"),
            "flavour": known(flavour, "/proc/driver/nvidia/version"),
            "nouveau_loaded": known(False, "/sys/module/nouveau"),
            "uvm_loaded": known(True, "/sys/module/nvidia_uvm"),
            "module_on_disk": known("/lib/modules/6.8.0-60-generic/updates/dkms/nvidia.ko.zst", "/lib/modules"),
            "package_version": known(driver, "/var/lib/dkms/nvidia"),
            "fabric_manager": known("not_installed", "/usr/bin/nv-fabricmanager"),
            "persistence": known("disabled", "nvmlDeviceGetPersistenceMode", "nvml"),
            "nodes": nodes(len(names)),
            "log": known([f"nvidia: loading NVIDIA UNIX Kernel Module {driver}"], "/dev/kmsg"),
        },
        "driver_libraries": [driver_library("libcuda.so.1", driver), driver_library("libnvidia-ml.so.1", driver)],
        "nvml": {"library": nvml("libnvidia-ml.so.1", "dlopen"), "init_result": nvml(nvml_init, "nvmlInit_v2")},
        "cuda": {"library": cuda("libcuda.so.1", "dlopen"), "init_result": cuda(init, "cuInit")},
        "engine": {"docker": missing("not_present", "PATH"), "toolkit": missing("not_present", "PATH")},
        "envs": [copy.deepcopy(e) for e in envs],
    }
    if nvml_init == 0:
        facts["nvml"].update(driver_version=nvml(driver, "nvmlSystemGetDriverVersion"),
                             cuda_version=nvml(version, "nvmlSystemGetCudaDriverVersion_v2"),
                             gpus=[nvml_gpu(n, i) for i, n in enumerate(names)])
    if init == 0:
        facts["cuda"].update(driver_version=cuda(version, "cuDriverGetVersion"), device_count=cuda(len(names), "cuDeviceGetCount"),
                             devices=[cuda_device(n, i) for i, n in enumerate(names)])
    elif init in (100, 802, 804):
        facts["cuda"]["driver_version"] = cuda(version, "cuDriverGetVersion")
    return facts


def no_driver(facts):
    """Takes the kernel driver, its nodes, its answers and its libraries away."""
    facts["kernel"].update(version=missing("not_present", "/sys/module/nvidia/version"),
                           flavour=missing("not_present", "/proc/driver/nvidia/version"),
                           uvm_loaded=known(False, "/sys/module/nvidia_uvm"), nodes=[])
    facts["kernel"]["log"] = known([], "/dev/kmsg")
    facts["kernel"].pop("persistence", None)
    for gpu in facts["pci"]["value"]:
        gpu["driver"] = missing("not_present", f"/sys/bus/pci/devices/{gpu['address']}/driver")
    facts["nvml"] = {"library": nvml("libnvidia-ml.so.1", "dlopen"), "init_result": nvml(9, "nvmlInit_v2")}
    facts["cuda"] = {"library": cuda("libcuda.so.1", "dlopen"), "init_result": cuda(100, "cuInit")}
    return facts


def uninstalled(facts):
    no_driver(facts)
    facts["driver_libraries"] = []
    facts["kernel"].update(module_on_disk=missing("not_present", "/lib/modules/6.8.0-60-generic"),
                           package_version=missing("not_present", "/var/lib/dpkg/status"))
    facts["nvml"] = {"library": missing("not_present", "libnvidia-ml.so.1", "", "nvml"),
                     "init_result": missing("not_present", "libnvidia-ml.so.1", "no such library", "nvml")}
    facts["cuda"] = {"library": missing("not_present", "libcuda.so.1", "", "cuda"),
                     "init_result": missing("not_present", "libcuda.so.1", "no such library", "cuda")}
    return facts


# --- Python environments ------------------------------------------------------------------------------------------

# CUDA 13 wheels pin the cuda-toolkit meta package; its parts as pip resolves them for torch 2.11.0 (a real machine).
CU13 = {"nvidia-cublas": "13.1.0.3", "nvidia-cuda-cupti": "13.0.85", "nvidia-cuda-nvrtc": "13.0.88", "nvidia-cuda-runtime": "13.0.96",
        "nvidia-cufft": "12.0.0.61", "nvidia-curand": "10.4.0.35", "nvidia-cusolver": "12.0.4.66", "nvidia-cusparse": "12.6.3.3",
        "nvidia-nvjitlink": "13.0.88", "nvidia-nvtx": "13.0.85", "nvidia-cufile": "1.15.1.6"}
FOLDERS = {"libcudart": "cuda-runtime", "libcublas": "cublas", "libcublasLt": "cublas", "libcudnn": "cudnn", "libcufft": "cufft",
           "libcurand": "curand", "libcusparse": "cusparse", "libcusolver": "cusolver", "libnccl": "nccl", "libcufile": "cufile",
           "libcusparseLt": "cusparselt", "libnvrtc": "cuda-nvrtc", "libnvToolsExt": "nvtx", "libnvJitLink": "nvjitlink"}
CUDNN_PARTS = ["graph", "ops", "adv", "cnn", "heuristic", "engines_precompiled", "engines_runtime_compiled"]


def dist(name, version, site, needs=(), kind="dist-info", installer="pip", location=None, **more):
    folder = location or f"{site}/{name.replace('-', '_')}-{version}.dist-info"
    return {"name": name, "version": version, "location": folder, "kind": kind, "installer": installer, "needs": list(needs),
            "has_record": True, "files_recorded": 4, **more}


def code(rows):
    return [{"kind": k, "arch": a, "ptx_isa": isa, "count": n} for k, a, isa, n in rows]


def binary(path, data, package, **more):
    keys = ("size_bytes", "soname", "needed", "rpath", "runpath", "glibc", "glibcxx", "cxxabi")
    return {"path": path, "package": package, **{k: data[k] for k in keys if k in data},
            "device_code": code(data.get("device_code", [])), **more}


def nvidia_packages(pins):
    packages = {}
    for line in pins:
        if line.startswith("nvidia-") and "==" in line:
            name, version = line.split("==")
            packages[name] = version
        elif line.startswith("cuda-toolkit"):
            packages.update(CU13)
    return packages


def folder_of(package, major):
    base = package.replace("nvidia-", "").replace(f"-cu{major}", "").replace("-", "_")
    shared = major == 13 and package in CU13
    return "nvidia/cu13/lib" if shared else f"nvidia/{base}/lib"


def loads_of(site, needed, packages, major):
    loads = []
    for soname in needed:
        part = FOLDERS.get(soname.split(".so")[0].split("-")[0])
        if not part:
            continue
        package = next((p for p in (f"nvidia-{part}-cu{major}", f"nvidia-{part}") if p in packages), "")
        inside = f"{site}/{folder_of(package, major)}/{soname}"
        entry = {"name": soname, "path": inside, "by": "RPATH", "asked_by": f"{site}/torch/lib/libtorch_cuda.so",
                 "package": f"{package} {packages.get(package, '')}".strip(), "version": packages.get(package, ""),
                 "cuda_major": str(major), "inside": True}
        loads.append(entry)
        if soname.startswith("libcudnn.so.9"):
            for name in CUDNN_PARTS:
                loads.append({**entry, "name": f"libcudnn_{name}.so.9", "path": inside.replace("libcudnn.so", f"libcudnn_{name}.so"),
                              "by": "dlopen", "asked_by": inside})
    return loads


def env(torch="2.11.0", path="/home/user/venv", kind="venv", python="3.12.7", active=True, files=None, version=None, arch="x86_64",
        extra=(), installer="pip", found_by="VIRTUAL_ENV"):
    """`files`: other device code of libtorch_cuda.so, for builds that no index carries."""
    data = WHEELS["torch"][torch]
    full = version or data["version"]
    major = int(data["cuda"].split(".")[0])
    site = f"{path}/lib/python{python.rsplit('.', 1)[0]}/site-packages"
    rel = site[len(path) + 1:]
    packages = nvidia_packages(data["needs"])
    distributions = [dist("torch", torch, site, data["needs"], tag=data["tag"].replace("x86_64", arch))]
    distributions += [dist(n, v, site) for n, v in packages.items()]
    distributions += [dist(n, v, site) if isinstance(n, str) else n for n, v in extra]
    for line in data["needs"]:
        if line.startswith("triton"):
            distributions.append(dist("triton", line.replace("~=", "==").split("==")[1], site))
    binaries = []
    for name, content in data["files"].items():
        content = dict(content)
        if files and name == "libtorch_cuda.so":
            content["device_code"] = files
        elif files and content.get("device_code"):
            continue
        binaries.append(binary(f"{rel}/torch/lib/{name}", content, "torch", cxx11_abi="1" if torch >= "2.7" or len(torch) > 5 else "0"))
    if major == 13 and torch == "2.11.0" and arch == "x86_64" and not files:
        for name, content in WHEELS["libraries"].items():
            if name.startswith("nvidia/cu13") or name.startswith("nvidia/cudnn"):
                binaries.append(binary(f"{rel}/{name}", content, content["package"]))
    needed = data["files"]["libtorch_cuda.so"]["needed"]
    version_py = f"{site}/torch/version.py"
    return {
        "path": path, "kind": kind, "active": active, "found_by": found_by, "installer": installer,
        "python": known(python, f"{path}/pyvenv.cfg"), "interpreter": known(f"{path}/bin/python", f"{path}/bin/python"),
        "site_packages": [site], "distributions": known(sorted(distributions, key=lambda d: d["name"]), site),
        "torch": {"version": known(full, version_py), "cuda": known(data["cuda"], version_py),
                  "hip": missing("not_present", version_py), "debug": known(False, version_py), "path": f"{site}/torch",
                  "variant": full.split("+")[1] if "+" in full else ""},
        "binaries": sorted(binaries, key=lambda b: b["path"]), "loads": loads_of(site, needed, packages, major), "shadowed": [],
    }


def cpu_env(path="/home/user/venv"):
    made = env("2.7.1", path, version="2.7.1+cpu")
    made["distributions"]["value"] = [d for d in made["distributions"]["value"] if d["name"] == "torch"]
    made["distributions"]["value"][0].update(version="2.7.1+cpu", needs=[])
    made["torch"]["cuda"] = missing("not_present", made["torch"]["version"]["source"]["detail"], "cuda = None")
    made["binaries"] = [b for b in made["binaries"] if b["path"].endswith("libc10.so")]
    made["loads"] = []
    return made


def add(environment, *distributions):
    environment["distributions"]["value"] = sorted(environment["distributions"]["value"] + list(distributions), key=lambda d: d["name"])
    return environment


def site_of(environment):
    return environment["site_packages"][0]


def variables(facts, **values):
    facts["variables"] = [{"name": n, "value": v} for n, v in sorted(values.items())]
    return facts


MACHINES = {}


def expect(verdict, findings=(), absent=(), any_of=(), links=None, why=""):
    return {"verdict": verdict, "findings": list(findings), "any_of": list(any_of), "absent": list(absent), "links": links or {}, "why": why}


def add_machine(name, facts, expected):
    assert name not in MACHINES, name
    MACHINES[name] = (facts, expected)


def main():
    import make_machines_list  # noqa: F401  (fills MACHINES)
    for name, (facts, expected) in MACHINES.items():
        folder = OUT / name
        if (folder / "recorded").exists():
            continue
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "facts.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
        (folder / "expect.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")
    print(f"{len(MACHINES)} machines")


if __name__ == "__main__":
    import sys
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
    sys.modules["make_machines"] = sys.modules["__main__"]
    main()
