# SPDX-License-Identifier: Apache-2.0
"""The crafted machines: one call each, with what is expected of it and why. Used by make_machines.py only."""
from make_machines import (CUDNN_PARTS, GIB, add, add_machine, cpu_env, cuda, cuda_device, dist, driver_library, env, expect, known,
                           machine, missing, node, nodes, no_driver, nvml, nvml_gpu, pci_gpu, site_of, system, uninstalled, variables)

C = lambda arch, count=400: ["cubin", arch, "", count]
P = lambda arch, isa, count=400: ["ptx", arch, isa, count]
ANY_ARCH = ["arch_gpu_too_new", "arch_gpu_too_old"]

# --- the four situations of the articles ---------------------------------------------------------------------------

add_machine("rtx3090-driver520-cu121", machine("GeForce RTX 3090", "520.61.05", envs=[env("2.3.1")]), expect(
    "broken", ["driver_too_old"], ANY_ARCH + ["torch_not_cuda_build", "gpu_memory_in_use"], links={"torch": "ok"},
    why="CUDA 12 wheels need 525.60.13 (minor-version floor); 520 belongs to the CUDA 11 family. Not an out-of-memory and not the card"))

add_machine("a800-driver470-cu121", machine("A800 SXM4 80GB", "470.129.06", envs=[env("2.3.1")]), expect(
    "broken", ["driver_too_old"], ANY_ARCH,
    why="sm_80 code is there; 470 is below 525.60.13. Ways out: a newer driver, cu118, or cuda-compat (A800 is a data-centre GPU)"))

add_machine("rtx4090-driver535-cu121", machine("GeForce RTX 4090", "535.183.01", envs=[env("2.3.1")]), expect(
    "works", [], ANY_ARCH + ["driver_too_old", "driver_minor_compat", "ptx_jit_only", "pcie_link_degraded", "cuda_libs_shadowed"],
    why="sm_86 machine code runs on 8.9; 535 reports CUDA 12.2 >= 12.1. Link generation 1 while idle is no defect"))

container = machine("GeForce RTX 4090", "535.183.01", envs=[env("2.3.1", "/opt/venv", kind="image", found_by="PATH")], container="docker", shm=64 << 20,
                    init=100, nvml_init=9)
container["kernel"]["nodes"] = [node("/dev/nvidiactl", None), node("/dev/nvidia-uvm", None)]
container["driver_libraries"] = []
container["nvml"]["init_result"] = missing("not_present", "libnvidia-ml.so.1", "no such library", "nvml")
container["cuda"] = {"init_result": missing("not_present", "libcuda.so.1", "no such library", "cuda")}
variables(container, NVIDIA_VISIBLE_DEVICES="all", NVIDIA_DRIVER_CAPABILITIES="compute,utility")
add_machine("container-without-gpus-all", container, expect(
    "broken", ["container_no_gpu_requested"],
    ["driver_not_installed", "container_driver_capabilities", "dev_nodes_missing", "driver_too_old", "libcuda_missing", "no_nvidia_gpu"],
    why="The host's driver is loaded, the container has neither nodes nor libcuda; NVIDIA_VISIBLE_DEVICES=all is the image's default"))

# --- device code (landscape 8.6) -----------------------------------------------------------------------------------

add_machine("l40s-sm89-cu130", machine("L40S", "580.95.05", envs=[env("2.11.0")]), expect(
    "works", [], ANY_ARCH + ["ptx_jit_only", "driver_too_old"], links={"torch": "ok"},
    why="No sm_89 list is complete in the wheel, and none is needed: sm_86 code runs on 8.9"))
add_machine("b300-sm100f", machine("B300", "580.95.05", "open", envs=[env("2.11.0", files=[C("90"), C("100f"), C("120")])]), expect(
    "works", [], ANY_ARCH, links={"torch": "ok"}, why="100f is the family of 10.0 and 10.3"))
add_machine("b300-sm100a-only", machine("B300", "580.95.05", "open", envs=[env("2.11.0", files=[C("90"), C("100a"), C("120")])]), expect(
    "broken", ["arch_gpu_too_new"], ["driver_too_old"], links={"torch": "broken"}, why="100a is exactly 10.0"))
add_machine("b200-ptx90a-only", machine("B200", "580.95.05", "open", envs=[env("2.11.0", files=[C("80"), C("90a"), P("90a", "8.0")])]), expect(
    "broken", ["arch_gpu_too_new"], ["ptx_jit_only", "ptx_newer_than_driver"], links={"torch": "broken"},
    why="PTX with the suffix a runs on exactly 9.0 and is never compiled for a newer GPU"))


def jetson(name, cc_files, model, l4t):
    facts = machine(name, "540.4.0", envs=[env("2.11.0", files=cc_files, arch="aarch64")], jetson=model, arch="aarch64", kernel=l4t,
                    driver_cuda=12060)
    facts["pci"] = known([], "/sys/bus/pci/devices")
    facts["kernel"]["nodes"] = [node("/dev/nvidia0"), node("/dev/nvidiactl")]
    gpu = facts["nvml"]["gpus"][0]
    for field in ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes"):
        gpu[field] = missing("not_supported", "nvmlDeviceGetMemoryInfo_v2", "Not Supported", "nvml")
    facts["cuda"]["devices"][0]["integrated"] = cuda(True, "cuDeviceGetAttribute")
    return facts


add_machine("orin-sm80-sm86-wheel", jetson("Jetson AGX Orin 64GB", [C("80"), C("86"), C("90")], "NVIDIA Jetson AGX Orin", "5.15.148-tegra"),
            expect("broken", ["jetson_wrong_wheel"], ["torch_not_cuda_build", "driver_too_old"], links={"torch": "broken"},
                   why="8.7 takes only its own machine code: 8.0 and 8.6 are excluded although the major is equal"))
add_machine("xavier-sm70-wheel", jetson("Jetson AGX Xavier", [C("70"), C("75"), C("80")], "NVIDIA Jetson AGX Xavier", "5.10.216-tegra"),
            expect("broken", ["jetson_wrong_wheel"], ["driver_too_old"], links={"torch": "broken"}, why="7.2 takes only its own machine code; 7.0 is excluded"))

add_machine("gtx1080-cu128", machine("GeForce GTX 1080", "580.95.05", envs=[env("2.8.0")]), expect(
    "broken", ["arch_gpu_too_old"], ["driver_too_old", "arch_gpu_too_new", "driver_dropped_gpu"], links={"torch": "broken", "kernel_driver": "ok"},
    why="cu128 begins at 7.0. Tools that look for a 6 in '8.6' say yes"))
add_machine("v100-driver580-cu130", machine("Tesla V100 SXM2 32GB", "580.95.05", envs=[env("2.11.0")]), expect(
    "broken", ["arch_gpu_too_old"], ["driver_too_old", "driver_dropped_gpu"], links={"torch": "broken"},
    why="580 drives Volta, CUDA 13 has no code for 7.0; cu126 up to torch 2.14 has"))
add_machine("ptx-isa88-driver535", machine("GeForce RTX 4090", "535.183.01", envs=[env("2.7.1", files=[C("90"), P("80", "8.8")])]), expect(
    "broken", ["ptx_newer_than_driver"], ["driver_too_old"] + ANY_ARCH, why="PTX ISA 8.8 came with CUDA 12.9; the JIT of 535 (12.2) refuses it: error 222"))
add_machine("rtx5090-cu126", machine("GeForce RTX 5090", "570.172.08", "open", envs=[env("2.7.1")]), expect(
    "broken", ["arch_gpu_too_new"], ["driver_too_old", "driver_kernel_module_flavour"], links={"torch": "broken"},
    why="cu126 ends at 9.0 and has no PTX; cu128 has 12.0"))
add_machine("rtx3090-torch215-cu132", machine("GeForce RTX 3090", "580.95.05", envs=[env("2.15.0")]), expect(
    "limited", ["driver_minor_compat"], ["driver_too_old"] + ANY_ARCH, links={"torch": "ok"},
    why="CUDA 13.2 on a 13.0 driver: minor-version compatibility, machine code runs, a JIT of 13.2 PTX would not"))
# Pascal works only with the proprietary kernel module, Blackwell only with the open one: no driver runs both at once.
pair = machine(["GeForce GTX 1080", "GeForce RTX 5090"], "580.95.05", "proprietary", envs=[env("2.8.0")])
for part, key in (("nvml", "gpus"), ("cuda", "devices")):
    pair[part][key] = pair[part][key][:1]
pair["cuda"]["device_count"] = cuda(1, "cuDeviceGetCount")
pair["kernel"]["nodes"] = nodes(1)
pair["kernel"]["log"] = known(["NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:2b85) installed in this system requires use of the NVIDIA open kernel modules."], "/dev/kmsg")
add_machine("gtx1080-and-rtx5090-cu128", pair, expect(
    "broken", ["mixed_gpu_generations"], ["driver_too_old", "driver_kernel_module_flavour"],
    why="cu128 has no code for 6.1; the 5090 would have code and needs the open kernel module, with which the 1080 does not start"))
add_machine("gtx1080-and-rtx3090-cu128", machine(["GeForce GTX 1080", "GeForce RTX 3090"], "580.95.05", envs=[env("2.8.0")]), expect(
    "limited", [], ["driver_too_old", "driver_kernel_module_flavour"], any_of=["mixed_gpu_generations", "arch_gpu_too_old"],
    why="cu128 begins at 7.0: the 3090 runs, the 1080 does not; cu126 up to 2.14 serves both"))

gb10 = machine("DGX Spark GB10", "580.95.05", "open", envs=[env("2.11.0", files=[C("80"), C("90"), C("100"), C("110"), C("120"), P("120", "9.0")], arch="aarch64")],
               arch="aarch64", distribution="DGX OS 7.2", ident="ubuntu 24.04", glibc="2.39", glibcxx="3.4.33", cpus=20, ram=120 * GIB)
for field in ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes", "memory_reserved_bytes"):
    gb10["nvml"]["gpus"][0][field] = missing("not_supported", "nvmlDeviceGetMemoryInfo_v2", "Not Supported", "nvml")
gb10["cuda"]["devices"][0]["integrated"] = cuda(True, "cuDeviceGetAttribute")
add_machine("gb10-memory-not-supported", gb10, expect(
    "works", [], ANY_ARCH + ["gpu_memory_in_use", "gpu_memory_exhausted"], links={"torch": "ok"},
    why="12.0 code runs on 12.1; NVML has no memory size because the memory is the host's"))

# --- user-mode driver ----------------------------------------------------------------------------------------------

compat804 = machine("GeForce RTX 4090", "535.183.01", envs=[env("2.11.0", "/opt/venv", kind="image", found_by="PATH")], init=804, driver_cuda=13000, container="docker")
compat804["nvml"]["cuda_version"] = nvml(12020, "nvmlSystemGetCudaDriverVersion_v2")
COMPAT = dict(compat_cuda="13.0", compat_drivers=["535", "550", "565", "570", "575"], compat_devices=[])
compat804["driver_libraries"] = [
    driver_library("libcuda.so.1", "580.95.05", "/usr/local/cuda-13.0/compat", "compat", True, "LD_LIBRARY_PATH", **COMPAT),
    driver_library("libcuda.so.1", "535.183.01", loads=False), driver_library("libnvidia-ml.so.1", "535.183.01")]
variables(compat804, LD_LIBRARY_PATH="/usr/local/cuda-13.0/compat")
add_machine("rtx4090-compat-804", compat804, expect(
    "broken", ["compat_libcuda_unsupported"], ["driver_lib_mismatch", "libcuda_shadowed", "driver_too_old"],
    why="GeForce refuses forward compatibility: cuInit answers 804"))

compat_ok = machine("A100 SXM4 80GB", "535.183.01", envs=[env("2.11.0")], driver_cuda=13000)
compat_ok["nvml"]["cuda_version"] = nvml(12020, "nvmlSystemGetCudaDriverVersion_v2")
compat_ok["driver_libraries"] = [
    driver_library("libcuda.so.1", "580.95.05", "/usr/local/cuda-13.0/compat", "compat", True, "LD_LIBRARY_PATH", **COMPAT),
    driver_library("libcuda.so.1", "535.183.01", loads=False), driver_library("libnvidia-ml.so.1", "535.183.01")]
variables(compat_ok, LD_LIBRARY_PATH="/usr/local/cuda-13.0/compat")
add_machine("a100-compat-active", compat_ok, expect(
    ["works", "limited"], [], ["compat_libcuda_unsupported", "driver_too_old", "driver_lib_mismatch", "libcuda_shadowed"],
    why="Forward compatibility on a data-centre GPU: branch 535 is in the compat package's list and cuInit succeeded"))

mismatch = machine("GeForce RTX 3090", "535.161.07", envs=[env("2.3.1")], init=803, nvml_init=18)
mismatch["driver_libraries"] = [driver_library("libcuda.so.1", "535.183.01"), driver_library("libnvidia-ml.so.1", "535.183.01")]
mismatch["kernel"]["package_version"] = known("535.183.01", "/var/lib/dpkg/status")
add_machine("driver-library-mismatch", mismatch, expect(
    "broken", ["driver_lib_mismatch"], ["libcuda_shadowed", "driver_too_old", "driver_not_installed"],
    why="The package was updated, the old module is still loaded: NVML 18, cuInit 803; both versions belong to the host"))

stub = machine("GeForce RTX 3090", "550.127.05", envs=[env("2.6.0")], init=34)
stub["driver_libraries"] = [
    driver_library("libcuda.so.1", "", "/usr/local/cuda-12.4/lib64/stubs", "stub", True, "LD_LIBRARY_PATH"),
    driver_library("libcuda.so.1", "550.127.05", loads=False), driver_library("libnvidia-ml.so.1", "550.127.05")]
variables(stub, LD_LIBRARY_PATH="/usr/local/cuda-12.4/lib64/stubs")
add_machine("stub-libcuda-in-ld-library-path", stub, expect(
    "broken", ["libcuda_shadowed"], ["driver_lib_mismatch", "driver_too_old"], why="The toolkit's stub is for linking; cuInit answers 34"))

hang = machine("GeForce RTX 3090", "550.127.05", envs=[env("2.6.0")])
hang["nvml"] = {"library": nvml("libnvidia-ml.so.1", "dlopen"), "init_result": missing("timeout", "nvmlInit_v2", "no answer within 10 s", "nvml")}
hang["cuda"] = {"library": cuda("libcuda.so.1", "dlopen"), "init_result": missing("timeout", "cuInit", "no answer within 10 s", "cuda")}
add_machine("driver-hangs", hang, expect(
    "broken", ["driver_probe_hung"], ["driver_not_installed", "driver_too_old", "no_nvidia_gpu"],
    why="torch makes the same cuInit call and hangs too; why the driver hangs is not known and is not guessed"))

# --- kernel driver -------------------------------------------------------------------------------------------------

nouveau = no_driver(machine("GeForce RTX 3090", "550.127.05", envs=[env("2.6.0")]))
nouveau["pci"]["value"][0]["driver"] = known("nouveau", "/sys/bus/pci/devices/0000:01:00.0/driver")
nouveau["kernel"]["nouveau_loaded"] = known(True, "/sys/module/nouveau")
add_machine("nouveau-owns-gpu", nouveau, expect(
    "broken", ["nouveau_conflict"], ["driver_not_installed", "module_not_built_for_kernel", "no_nvidia_gpu"], why="The module is built and cannot bind: nouveau did first"))

secure = no_driver(machine("GeForce RTX 3090", "550.127.05", envs=[env("2.6.0")], secure_boot=True))
secure["kernel"]["log"] = known(["Loading of module with unavailable key is rejected", "nvidia: module verification failed: signature and/or required key missing - tainting kernel"], "/dev/kmsg")
add_machine("secure-boot-unsigned", secure, expect(
    "broken", ["secure_boot_unsigned_module"], ["driver_not_installed", "module_not_built_for_kernel"], why="The kernel's own words: the key is not enrolled"))

unbuilt = no_driver(machine("GeForce RTX 3090", "550.127.05", envs=[env("2.6.0")], kernel="6.8.0-71-generic"))
unbuilt["kernel"]["module_on_disk"] = missing("not_present", "/lib/modules/6.8.0-71-generic")
add_machine("module-not-built-after-kernel-update", unbuilt, expect(
    "broken", ["module_not_built_for_kernel"], ["driver_not_installed", "secure_boot_unsigned_module"], why="550.127.05 is installed, no nvidia.ko for the running kernel"))

add_machine("driver-not-installed", uninstalled(machine("GeForce RTX 4090", "580.95.05", envs=[env("2.11.0")])), expect(
    "broken", ["driver_not_installed"], ["no_nvidia_gpu", "module_not_built_for_kernel", "driver_too_old"], why="A GPU on the bus, no module, no package, no library"))

nogpu = uninstalled(machine("GeForce RTX 4090", "580.95.05", envs=[env("2.11.0")]))
nogpu["pci"] = known([], "/sys/bus/pci/devices")
add_machine("no-gpu-at-all", nogpu, expect("broken", ["no_nvidia_gpu"], ["driver_not_installed", "cuda_lib_not_found"], why="Nothing of vendor 10de on the PCI bus"))

perm = machine("GeForce RTX 3090", "550.127.05", envs=[env("2.6.0")], init=100, nvml_init=4)
perm["kernel"]["nodes"] = nodes(1, "crw-rw----", False)
add_machine("no-permission-on-nodes", perm, expect(
    "broken", ["dev_nodes_no_permission"], ["driver_not_installed", "container_cgroup_devices_lost", "dev_nodes_missing"], why="Mode 0660 and this user is not in the group"))

fabric = machine(["H100 SXM5 80GB", "H100 SXM5 80GB"], "550.127.05", "open", envs=[env("2.6.0")], init=802)
fabric["kernel"]["nvswitch"] = True
fabric["kernel"]["fabric_manager"] = known("stopped", "/run/nvidia-fabricmanager")
add_machine("h100-fabric-manager-down", fabric, expect("broken", ["fabric_manager"], ["driver_lib_mismatch"], why="NVSwitch system, fabric manager stopped, cuInit answers 802"))

# --- GPUs together -------------------------------------------------------------------------------------------------

def asked_together(facts, bus, via, acs="off", iommu=None, links=0, topology="hostbridge", p2p="ok", sum_said="ok"):
    """What `doctor --deep` adds on a machine with two GPUs."""
    python = "/srv/venv/bin/python"
    for i in range(2):
        gpu, device, pci = facts["nvml"]["gpus"][i], facts["cuda"]["devices"][i], facts["pci"]["value"][i]
        peer = {"index": 1 - i, "topology": nvml(topology, "nvmlDeviceGetTopologyCommonAncestor"), "p2p": nvml(p2p, "nvmlDeviceGetP2PStatus"),
                "p2p_nvlink": nvml("ok" if links else "not_supported", "nvmlDeviceGetP2PStatus")}
        gpu["peers"] = [{name: value for name, value in peer.items() if value != 0}]
        other = {"ordinal": 1 - i, "access": cuda(p2p == "ok", "cuDeviceCanAccessPeer")}
        device["peers"] = [{name: value for name, value in other.items() if value != 0}]
        if links:
            gpu.update(nvlinks_active=nvml(links, "nvmlDeviceGetNvLinkState"), nvlinks_total=nvml(links, "nvmlDeviceGetNvLinkState"),
                       nvlink_version=nvml(6, "nvmlDeviceGetNvLinkVersion"), nvlink_mbps=nvml(26562, "nvmlDeviceGetFieldValues"),
                       nvlink_remotes=nvml(["switch"] * links, "nvmlDeviceGetNvLinkRemotePciInfo"))
        group = "/sys/bus/pci/devices/%s/iommu_group" % pci["address"]
        pci["iommu"] = known(iommu, group + "/type") if iommu else missing("not_present", group)
        pci["bridges"] = [{"address": "0000:00:01.0", "acs": known(acs, "/sys/bus/pci/devices/0000:00:01.0/config")}]
    speed = bus * 1.1e9
    facts["together"] = {
        "sum": known(sum_said, python, "command"), "env": "/srv/venv", "torch": "2.11.0+cu130", "nccl": "2.28.9", "ranks": 2, "via": via,
        "sum_bytes": known(1 << 30, python, "command"), "bus_bytes_per_second": known(bus * 1e9, python, "command"),
        "small_seconds": known(1.6e-05, python, "command"), "copies": known("ok", python, "command"),
        "copy_bytes": known(1 << 28, python, "command"),
        "pairs": [{"to": 1, "bytes_per_second": speed}, {"from": 1, "bytes_per_second": speed}],
    }
    return facts

add_machine("h100-pair-together", asked_together(machine(["H100 SXM5 80GB", "H100 SXM5 80GB"], "580.95.05", "open", envs=[env("2.11.0")]), 340, ["P2P/CUMEM"], links=18),
            expect("works", [], ["gpu_exchange_slow", "gpu_exchange_wrong", "nccl_p2p_iommu_acs"], why="478 GB/s by 18 links of 26.562 GB/s, of which a sum gets 71 %"))
add_machine("a100-pcie-pair-acs", asked_together(machine(["A100 PCIe 80GB", "A100 PCIe 80GB"], "580.95.05", "open", envs=[env("2.11.0")]), 6.2, ["P2P/IPC"],
            acs="SrcValid ReqRedir CmpltRedir UpstreamFwd", iommu="DMA-FQ"),
            expect("works", ["nccl_p2p_iommu_acs"], ["gpu_exchange_slow"], why="6.2 of 31.5 GB/s, and what both exchange goes up through a root port with ACS on"))

apart = asked_together(machine(["GeForce RTX 4090", "GeForce RTX 4090"], "580.95.05", envs=[env("2.11.0")]), 0, [], topology="node", p2p="not_supported")
for name in ("sum_bytes", "bus_bytes_per_second", "small_seconds"):
    del apart["together"][name]
apart["together"].update(sum=known("failed", "/srv/venv/bin/python", "command"), interfaces=["ens3", "lo"],
                         said="rank 0, sum of 8 bytes: DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3690, internal error",
                         warning="NCCL WARN Bootstrap : no socket interface found", copies_said="from 1 to 0: 1 of 67108864 values are wrong: value 7 is 0 instead of 14")
apart["together"]["copies"]["value"] = "wrong"
apart["together"]["pairs"] = [{"to": 1, "bytes_per_second": 1.2e10}, {"from": 1, "bytes_per_second": 1.2e10, "wrong": "1 of 67108864 values are wrong: value 7 is 0 instead of 14"}]
variables(apart, NCCL_SOCKET_IFNAME="eth7")
add_machine("rtx4090-pair-apart", apart, expect("limited", ["nccl_network_config", "gpu_exchange_wrong"], ["gpu_exchange_failed"], why="NCCL names the interface; a copy arrives changed, and nothing that was read explains it"))

# --- hardware ------------------------------------------------------------------------------------------------------

ecc = machine("A100 SXM4 80GB", "550.127.05", "open", envs=[env("2.6.0")])
ecc["nvml"]["gpus"][0].update(remap_pending=nvml(True, "nvmlDeviceGetRemappedRows"), remapped_uncorrectable=nvml(1, "nvmlDeviceGetRemappedRows"),
                              ecc_uncorrected_aggregate=nvml(1, "nvmlDeviceGetTotalEccErrors"))
add_machine("a100-row-remap-pending", ecc, expect("limited", ["gpu_memory_ecc"], ["driver_too_old"], why="A bad row waits for a reset; the GPU still computes"))

bus = machine("GeForce RTX 3090", "550.127.05", envs=[env("2.6.0")], init=100, nvml_init=0)
bus["nvml"]["gpus"] = []
bus["kernel"]["xids"] = [{"number": 79, "pci": "0000:01:00", "count": 1, "text": "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', GPU has fallen off the bus."}]
bus["kernel"]["log"] = known(["NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', GPU has fallen off the bus."], "/dev/kmsg")
add_machine("gpu-fallen-off-bus", bus, expect("broken", ["gpu_fell_off_bus"], ["driver_not_installed", "dev_nodes_missing", "cuda_visible_devices"], why="Xid 79, and the driver lists no GPU any more"))

mig = machine("A100 SXM4 80GB", "550.127.05", "open", envs=[env("2.6.0")])
mig["nvml"]["gpus"][0].update(mig_current=nvml(True, "nvmlDeviceGetMigMode"), mig_pending=nvml(True, "nvmlDeviceGetMigMode"), mig_instances=[
    {"name": "3g.40gb", "uuid": "MIG-00000000-0000-0000-0000-00000000000" + str(i), "memory_bytes": nvml(40 * GIB, "nvmlDeviceGetMemoryInfo_v2")} for i in range(2)])
mig["cuda"]["devices"][0].update(name=cuda("NVIDIA A100-SXM4-80GB MIG 3g.40gb", "cuDeviceGetName"), memory_total_bytes=cuda(40 * GIB, "cuDeviceTotalMem_v2"))
add_machine("a100-mig", mig, expect(["works", "limited"], ["gpu_mode_config"], ["cuda_visible_devices", "gpu_memory_in_use"], why="Two instances: a process sees one of them"))

# --- containers, WSL -----------------------------------------------------------------------------------------------

pod = machine(["A100 SXM4 80GB", "A100 SXM4 80GB"], "550.127.05", "open", envs=[env("2.6.0", "/opt/venv", kind="image", found_by="PATH")], container="kubernetes", shm=64 << 20, cpus=16)
pod["system"]["cpu_limit"] = known(4.0, "/sys/fs/cgroup/cpu.max")
pod["system"]["memory_limit_bytes"] = known(32 * GIB, "/sys/fs/cgroup/memory.max")
add_machine("kubernetes-shm-64mib", pod, expect("limited", ["shm_too_small"], ["container_no_gpu_requested", "container_toolkit_missing"], why="The default /dev/shm of a pod; two GPUs, so NCCL uses it"))

lost = machine("A100 SXM4 80GB", "550.127.05", "open", envs=[env("2.6.0", "/opt/venv", kind="image", found_by="PATH")], container="docker", init=100, nvml_init=999, shm=8 * GIB)
lost["kernel"]["nodes"] = nodes(1, "crw-rw-rw-", False)
add_machine("container-lost-its-devices", lost, expect("broken", ["container_cgroup_devices_lost"], ["dev_nodes_missing", "container_no_gpu_requested", "dev_nodes_no_permission"],
                                                      why="Nodes are 0666 and still refused, NVML 999: the cgroup's device list was rewritten"))

utility = machine("L40S", "550.127.05", "open", envs=[env("2.6.0", "/opt/venv", kind="image", found_by="PATH")], container="docker", init=100, shm=8 * GIB)
utility["driver_libraries"] = [driver_library("libnvidia-ml.so.1", "550.127.05")]
utility["cuda"] = {"init_result": missing("not_present", "libcuda.so.1", "no such library", "cuda")}
variables(utility, NVIDIA_VISIBLE_DEVICES="all", NVIDIA_DRIVER_CAPABILITIES="utility")
add_machine("container-utility-only", utility, expect("broken", ["container_driver_capabilities"], ["container_no_gpu_requested", "driver_libs_missing", "dev_nodes_missing"],
                                                     why="nvidia-smi works, libcuda was not injected"))


def wsl2():
    facts = machine("GeForce RTX 4090", "580.95.05", envs=[env("2.11.0")], wsl="2", kernel="6.6.87.2-microsoft-standard-WSL2", shm=16 * GIB)
    facts["pci"] = known([], "/sys/bus/pci/devices")
    for name in ("version", "flavour"):
        facts["kernel"][name] = missing("not_present", "/sys/module/nvidia")
    facts["kernel"].update(module_on_disk=missing("not_present", "/lib/modules"), package_version=missing("not_present", "/var/lib/dpkg/status"), nodes=[node("/dev/dxg")])
    facts["driver_libraries"] = [driver_library("libcuda.so.1", "", "/usr/lib/wsl/lib", "wsl"), driver_library("libnvidia-ml.so.1", "", "/usr/lib/wsl/lib", "wsl")]
    facts["nvml"]["gpus"][0]["processes"] = missing("not_supported", "nvmlDeviceGetComputeRunningProcesses_v3", "Not Supported", "nvml")
    return facts


add_machine("wsl2-works", wsl2(), expect("works", [], ["driver_not_installed", "no_nvidia_gpu", "libcuda_shadowed", "driver_lib_mismatch", "dev_nodes_missing"],
                                         why="The driver belongs to Windows; Linux has /dev/dxg and /usr/lib/wsl/lib"))
wsl1 = uninstalled(wsl2())
wsl1["system"]["wsl"] = known("1", "/proc/sys/kernel/osrelease")
wsl1["system"]["kernel"] = known("4.4.0-19041-Microsoft", "/proc/sys/kernel/osrelease")
add_machine("wsl1", wsl1, expect("broken", ["wsl_host_too_old"], ["driver_not_installed", "no_nvidia_gpu"], why="WSL 1 has no kernel and passes no GPU in"))
lost_wsl = wsl2()
lost_wsl["driver_libraries"] = [driver_library("libcuda.so.1", "", "/usr/lib/wsl/lib", "wsl", False, "scan")]
lost_wsl["nvml"] = {"init_result": missing("not_present", "libnvidia-ml.so.1", "no such library", "nvml")}
lost_wsl["cuda"] = {"init_result": missing("not_present", "libcuda.so.1", "no such library", "cuda")}
add_machine("wsl2-libcuda-not-found", lost_wsl, expect("broken", ["wsl_libcuda_not_found"], ["driver_not_installed", "driver_libs_missing"],
                                                      why="The file is in /usr/lib/wsl/lib and no search path leads there"))

# --- environments --------------------------------------------------------------------------------------------------

add_machine("cpu-wheel", machine("GeForce RTX 4090", "580.95.05", envs=[cpu_env()]), expect(
    "broken", ["torch_not_cuda_build"], ["driver_too_old", "cuda_lib_not_found"] + ANY_ARCH, why="2.7.1+cpu: no CUDA in it"))

two = env("2.7.1", "/home/user/miniconda3/envs/train", kind="conda", found_by="CONDA_PREFIX", installer="conda")
add(two, dist("pytorch", "2.5.1", site_of(two), kind="conda-meta", installer="conda", location="/home/user/miniconda3/envs/train/conda-meta/pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.json",
              tag="py3.12_cuda12.4_cudnn9.1.0_0"))
add_machine("conda-and-pip-torch", machine("GeForce RTX 4090", "580.95.05", envs=[two]), expect(
    None, ["torch_install_broken"], ["driver_too_old", "dependency_too_new"], why="conda's 2.5.1 and pip's 2.7.1 share one torch folder"))

flash = env("2.7.1")
add(flash, dist("flash-attn", "2.7.4.post1", site_of(flash)))
flash["binaries"].append({"path": "lib/python3.12/site-packages/flash_attn_2_cuda.cpython-312-x86_64-linux-gnu.so", "package": "flash-attn", "size_bytes": 400000000,
                          "needed": ["libc10.so", "libtorch.so", "libtorch_cpu.so", "libtorch_python.so", "libcudart.so.12", "libc10_cuda.so", "libtorch_cuda.so"],
                          "device_code": [{"kind": "cubin", "arch": "80", "count": 70}, {"kind": "cubin", "arch": "90", "count": 70}], "glibc": "2.17", "cxx11_abi": "0",
                          "python_tag": "cpython-312", "unresolved": ["_ZN3c105ErrorC2ENS_14SourceLocationESs"], "unresolved_count": 9})
add_machine("flash-attn-old-abi", machine("GeForce RTX 4090", "580.95.05", envs=[flash]), expect(
    "limited", ["ext_abi_mismatch"], ["ext_arch_missing", "ext_cuda_major_mismatch", "driver_too_old"], links={"torch": "ok", "extensions": "broken"},
    why="Built with the old C++ ABI for torch 2.6; torch 2.7 has the new one. Torch itself works"))

vision = env("2.7.1", extra=[("torchvision", "0.21.0")])
for d in vision["distributions"]["value"]:
    if d["name"] == "torchvision":
        d["needs"] = ["numpy", "torch==2.6.0", "pillow!=8.3.*,>=5.3.0"]
add_machine("torchvision-of-another-torch", machine("GeForce RTX 4090", "580.95.05", envs=[vision]), expect(
    "limited", ["torch_family_mismatch"], ["ext_abi_mismatch"], why="torchvision 0.21.0 asks for torch 2.6.0"))

cudnn = env("2.11.0")
for d in cudnn["distributions"]["value"]:
    if d["name"] == "nvidia-cudnn-cu13":
        d["version"] = "9.20.0.48"
    if d["name"] == "torch":
        d["needs"] = [n.replace("9.19.0.56", "9.20.0.48") for n in d["needs"]]
for l in cudnn["loads"]:
    if "cudnn" in l["name"]:
        l.update(version="9.20.0.48", package="nvidia-cudnn-cu13 9.20.0.48")
cudnn["loads"].append({"name": "libcudnn_engines_tensor_ir.so.9", "path": "", "by": "dlopen", "asked_by": site_of(cudnn) + "/nvidia/cudnn/lib/libcudnn_graph.so.9", "cuda_major": "13"})
add_machine("cudnn-sublibrary-missing", machine("GeForce RTX 4090", "580.95.05", envs=[cudnn]), expect(
    "limited", ["cuda_lib_not_found"], ["cuda_libs_shadowed", "nvidia_pip_pkg_conflict"],
    why="nvidia-cudnn-cu13 9.20.0.48 was published without libcudnn_engines_tensor_ir"))

shadow = env("2.7.1")
for l in shadow["loads"]:
    if l["name"] == "libcublasLt.so.12":
        shadow["shadowed"].append(dict(l))
        l.update(path="/usr/local/cuda-12.1/lib64/libcublasLt.so.12", by="LD_LIBRARY_PATH", asked_by=site_of(shadow) + "/nvidia/cublas/lib/libcublas.so.12", package="", version="12.1.3.1", inside=False)
add_machine("ld-library-path-other-cuda", variables(machine("GeForce RTX 4090", "580.95.05", envs=[shadow]), LD_LIBRARY_PATH="/usr/local/cuda-12.1/lib64"), expect(
    "limited", ["cuda_libs_shadowed"], ["cuda_lib_not_found", "libcuda_shadowed"], why="cuBLAS of the wheel, cuBLASLt of the toolkit: libcublas has a RUNPATH, which LD_LIBRARY_PATH precedes"))

both = env("2.11.0", extra=[("nvidia-cudnn-cu12", "9.10.2.21")])
add_machine("cudnn-of-two-cuda-majors", machine("GeForce RTX 4090", "580.95.05", envs=[both]), expect(
    "limited", ["nvidia_pip_pkg_conflict"], ["cuda_lib_not_found"], why="nvidia-cudnn-cu12 and -cu13 write the same files below nvidia/cudnn"))

add_machine("centos7-glibc-217", machine("Tesla V100 PCIe 32GB", "550.127.05", envs=[env("2.7.1")], distribution="CentOS Linux 7 (Core)", ident="centos 7", kernel="3.10.0-1160.el7.x86_64", glibc="2.17", glibcxx="3.4.19"), expect(
    "broken", ["glibc_too_old"], ANY_ARCH + ["driver_too_old"], why="libtorch_python.so of 2.7.1 needs GLIBC_2.28"))

add_machine("cuda-visible-devices-7", variables(machine("GeForce RTX 4090", "580.95.05", envs=[env("2.11.0")], init=100), CUDA_VISIBLE_DEVICES="7"), expect(
    "broken", ["cuda_visible_devices"], ["dev_nodes_missing", "driver_lib_mismatch", "fabric_manager"], why="There is GPU 0 only; the first invalid entry ends the list"))

numpy = env("2.3.1", extra=[("numpy", "1.26.4")])
old = env("2.3.1", "/home/user/old", active=False, found_by="--env", extra=[("numpy", "2.1.0")])
old["torch"]["version"]["value"] = "2.2.2+cu121"
for d in old["distributions"]["value"]:
    if d["name"] == "torch":
        d["version"] = "2.2.2"
    if d["name"] == "triton":
        d["version"] = "2.3.1"
add_machine("numpy2-in-second-env", machine("GeForce RTX 4090", "535.183.01", envs=[numpy, old]), expect(
    "works", ["dependency_too_new"], ["driver_too_old", "torch_family_mismatch"], why="The active environment is fine; NumPy 2 meets torch 2.2.2 in the other one"))

bnb = env("2.15.0", extra=[("bitsandbytes", "0.48.2")])
bnb["binaries"] += [{"path": f"lib/python3.12/site-packages/bitsandbytes/libbitsandbytes_cuda{n}.so", "package": "bitsandbytes", "needed": ["libcudart.so.12" if n < 130 else "libcudart.so.13"],
                     "device_code": [{"kind": "cubin", "arch": "80", "count": 9}, {"kind": "cubin", "arch": "86", "count": 9}]} for n in (126, 128, 130)]
add_machine("bitsandbytes-without-cuda132", machine("GeForce RTX 4090", "595.58.03", envs=[bnb]), expect(
    "limited", ["ext_binary_missing"], ["ext_cuda_major_mismatch", "driver_too_old"], links={"torch": "ok"}, why="0.48.2 wants the exact library; it has 12.6, 12.8 and 13.0"))

# --- a real H200, from the outputs that its owner kept (nvidia-smi -q -x, collect_env, ldconfig -p, readelf) ---------

h200 = machine("H200 SXM", "580.159.04", "open", envs=[env("2.11.0", "/opt/torch/.venv", python="3.12.3", found_by="PATH")], distribution="Ubuntu 24.04.3 LTS",
               ident="ubuntu 24.04", kernel="6.18.44-fc-v657-gpu", glibc="2.39", glibcxx="3.4.33", cpus=16, ram=125 * GIB, shm=63 * GIB)
h200["pci"]["value"][0].update(address="0000:00:06.0", subsystem_id="10de:18bf", link_speed=known("32.0 GT/s PCIe", "/sys/bus/pci/devices/0000:00:06.0/current_link_speed"),
                               link_speed_max=known("32.0 GT/s PCIe", "/sys/bus/pci/devices/0000:00:06.0/max_link_speed"), bar1_bytes=known(256 * GIB, "/sys/bus/pci/devices/0000:00:06.0/resource"))
h200["nvml"]["gpus"][0].update(
    pci_address=nvml("00000000:00:06.0", "nvmlDeviceGetPciInfo_v3"), memory_total_bytes=nvml(143771 << 20, "nvmlDeviceGetMemoryInfo_v2"),
    memory_used_bytes=nvml(0, "nvmlDeviceGetMemoryInfo_v2"), memory_free_bytes=nvml(143156 << 20, "nvmlDeviceGetMemoryInfo_v2"),
    memory_reserved_bytes=nvml(616 << 20, "nvmlDeviceGetMemoryInfo_v2"), pcie_gen=nvml(5, "nvmlDeviceGetCurrPcieLinkGeneration"),
    pcie_gen_max=nvml(5, "nvmlDeviceGetMaxPcieLinkGeneration"), temperature_c=nvml(36, "nvmlDeviceGetTemperature"), power_watts=nvml(121, "nvmlDeviceGetPowerUsage"),
    power_limit_watts=nvml(700, "nvmlDeviceGetEnforcedPowerLimit"), ecc_corrected_volatile=nvml(0, "nvmlDeviceGetTotalEccErrors"),
    ecc_corrected_aggregate=nvml(0, "nvmlDeviceGetTotalEccErrors"), display_active=nvml(False, "nvmlDeviceGetDisplayActive"))
h200["cuda"]["devices"][0].update(pci_address=cuda("0000:00:06.0", "cuDeviceGetPCIBusId"), memory_total_bytes=cuda(150109880320, "cuDeviceTotalMem_v2"),
                                  memory_free_bytes=cuda(149557477376, "cuMemGetInfo_v2"))
h200["driver_libraries"] = [driver_library(s, "580.159.04", "/usr/local/nvidia/lib64") for s in ("libcuda.so.1", "libnvidia-ml.so.1")]
h200["toolkits"] = [{"path": "/usr/local/cuda", "version": known("13.0.2", "/usr/local/cuda/version.json"), "nvcc": known("/usr/local/cuda/bin/nvcc", "/usr/local/cuda/bin/nvcc"), "found_by": "/usr/local"}]
add_machine("h200-torch211-cu130", h200, expect(
    "works", [], ANY_ARCH + ["torch_wheel_table_differs", "driver_too_old", "driver_minor_compat", "fabric_manager", "gpu_memory_ecc", "cuda_libs_shadowed", "pcie_link_degraded", "container_toolkit_missing"],
    links={"gpu": "ok", "kernel_driver": "ok", "torch": "ok"}, why="Everything fits; the compute check ran"))
