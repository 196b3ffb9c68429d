// SPDX-License-Identifier: Apache-2.0
// Everything cufit knows about one machine: plain values, no behaviour. host/ fills it from the
// live machine, host/files/recording from a file, formats/ + facts/collect_env_facts from
// somebody's pasted text; checks/ and report/ only read it.
//
// To add a fact: a field here, one line in facts_fields.h (that makes it part of recordings and of
// doctor's JSON), and a read_* in host/. Sizes are bytes, temperatures Celsius. Vectors are in a
// stable order (device order, search order, or sorted by name), so that two reports of one machine
// are equal byte for byte.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fact.h"
#include "formats/damage.h"
#include "formats/binary/device_code.h"

namespace cufit::facts {

struct SystemFacts {
  Fact<std::string> distribution;     // PRETTY_NAME of os-release: "Debian GNU/Linux 12 (bookworm)"
  Fact<std::string> distribution_id;  // ID and VERSION_ID: "debian 12"
  Fact<std::string> kernel;           // uname -r
  Fact<std::string> architecture;     // "x86_64", "aarch64"
  Fact<std::string> libc;             // "glibc" or "musl"
  Fact<std::string> glibc;            // "2.36"
  Fact<std::string> glibcxx;          // newest GLIBCXX_ of the system's libstdc++.so.6: "3.4.30"
  Fact<std::string> cpu_model;
  Fact<uint64_t> cpus;     // this process may use (affinity)
  Fact<double> cpu_limit;  // cgroup quota in CPUs; not_present = no limit
  Fact<uint64_t> ram_bytes;
  Fact<uint64_t> ram_available_bytes;
  Fact<uint64_t> memory_limit_bytes;  // cgroup v1/v2; not_present = no limit
  Fact<std::string> cgroup;           // "v1", "v2"
  Fact<uint64_t> shm_bytes;           // size of /dev/shm
  Fact<uint64_t> shm_free_bytes;      // of it, what any user may still take
  Fact<uint64_t> memlock_bytes;       // RLIMIT_MEMLOCK soft; UINT64_MAX = unlimited
  Fact<std::string> wsl;              // "1" or "2"; not_present = not WSL
  // "docker", "podman", "kubernetes", "containerd", "apptainer", "lxc", "none"
  Fact<std::string> container;
  Fact<std::string> jetson;  // /etc/nv_tegra_release or device tree model; not_present elsewhere
  Fact<bool> secure_boot;
  Fact<std::string> boot_id;
  Fact<std::string> uv;  // path of the uv in PATH
  // Version of the system's own libnccl.so.2, of its file name: "2.27.3"; environments have theirs
  Fact<std::string> nccl;
  // File of the current folder that lists torch for its project and whose environment is not there:
  // "uv.lock", "pixi.lock", "poetry.lock", "requirements.txt"
  Fact<std::string> project_lock;
  // Maker of a graphics card that is not NVIDIA's: "AMD" (AMD alone is looked for)
  Fact<std::string> other_gpu;
  Fact<bool> root;  // this process may do all: no `sudo` is needed, and images have none
  // Mirror of PyTorch's own index, of [index] in cufit.toml or of uv's and pip's settings, without a
  // password
  Fact<std::string> pytorch_index;
  // In place of the default Python index: of cufit.toml, or pip's, which uv does not read
  Fact<std::string> default_index;
};

// A PCI bridge above a GPU, read with --deep.
struct PciBridge {
  std::string address;
  // Access Control Services: "off", or what is on: "SrcValid ReqRedir CmpltRedir UpstreamFwd";
  // not_supported = the bridge has none
  Fact<std::string> acs;
};

// One NVIDIA function seen on the PCI bus, whether or not any driver works.
struct PciGpu {
  std::string address;           // "0000:01:00.0"
  std::string device_id;         // "2204", lower case hex
  std::string subsystem_id;      // "10de:18bf"
  std::string class_code;        // "0300" VGA, "0302" 3D controller, "0680" bridge (NVSwitch)
  Fact<std::string> driver;      // "nvidia", "nouveau", "vfio-pci"; not_present = none bound
  Fact<std::string> link_speed;  // "16.0 GT/s PCIe"
  Fact<std::string> link_speed_max;
  Fact<uint32_t> link_width;
  Fact<uint32_t> link_width_max;
  Fact<uint64_t> bar1_bytes;  // size of the BAR that maps memory; 0 = firmware assigned none
  // With --deep. How the IOMMU treats it: "identity" (addresses pass as they are), "DMA", "DMA-FQ"
  // (they are translated); not_present = no IOMMU
  Fact<std::string> iommu;
  std::vector<PciBridge> bridges;  // the root port first
};

struct DeviceNode {
  std::string path;        // "/dev/nvidia0", "/dev/nvidia-uvm", "/dev/nvidiactl", "/dev/dxg"
  Fact<std::string> mode;  // "crw-rw-rw-"; not_present = no node
  bool usable = false;     // this process may open it for reading and writing
  std::string group;       // its group by name, else by number; empty = no node
};

struct XidEvent {
  uint32_t number = 0;
  std::string pci;     // "0000:01:00"
  std::string text;    // the kernel's line without time stamp
  uint32_t count = 1;  // equal numbers of one device are counted together; text is the last one
};

struct KernelDriver {
  Fact<std::string> version;  // of the loaded nvidia module: "535.183.01"
  Fact<std::string> flavour;  // "open" or "proprietary"
  Fact<bool> nouveau_loaded;
  Fact<bool> uvm_loaded;
  Fact<bool> uvm_hmm_disabled;  // nvidia_uvm's uvm_disable_hmm parameter
  // path of nvidia.ko* for the running kernel; not_present = not built for it
  Fact<std::string> module_on_disk;
  // version that is installed (dkms tree, /usr/src/nvidia-*, dpkg/rpm status)
  Fact<std::string> package_version;
  Fact<std::string> fabric_manager;  // "running", "stopped", "not_installed"
  bool nvswitch = false;  // an NVSwitch bridge is on the bus or /dev/nvidia-nvswitch* exists
  // "enabled", "disabled", "mixed" (from NVML or nvidia-persistenced)
  Fact<std::string> persistence;
  std::vector<DeviceNode> nodes;
  // kernel-log lines about NVIDIA, nouveau, module signatures; no time stamps
  Fact<std::vector<std::string>> log;
  std::vector<XidEvent> xids;
};

// One copy of a user-mode driver library on this machine.
struct DriverLibrary {
  std::string soname;  // "libcuda.so.1", "libnvidia-ml.so.1"
  std::string path;    // where it was found
  std::string realpath;
  std::string version;   // from the file name or the ELF: "535.183.01"; empty = unknown
  std::string origin;    // "driver", "stub" (toolkit), "compat" (cuda-compat), "wsl", "package"
  bool loads = false;    // this is the one a new process would load
  std::string found_by;  // "ld.so.cache", "LD_LIBRARY_PATH", "default directory", "scan"
  std::string problem;   // why the loader refuses this file ("file too short"); empty = it is fine
  // Only for "compat", from its .note.cuda.fwd_compatibility:
  std::string compat_cuda;                  // "13.0"
  std::vector<std::string> compat_drivers;  // driver branches it may be put on: "535"
  std::vector<std::string> compat_devices;
};

struct GpuProcess {
  uint32_t pid = 0;
  std::string name;
  Fact<uint64_t> used_bytes;  // not_supported under WSL and in some containers
  std::string kind;           // "compute" or "graphics"
};

struct MigInstance {
  std::string name;  // "1g.10gb"
  std::string uuid;
  Fact<uint64_t> memory_bytes;
};

// With --deep: the way from one GPU to another one, as NVML says.
struct NvmlPeer {
  uint32_t index = 0;  // of the other one
  // What both have in common: "internal" (the board), "single" (a PCIe switch), "multiple"
  // (switches), "hostbridge", "node" (of NUMA), "system" (a link between CPUs)
  Fact<std::string> topology;
  // Direct reads, and whether they go by NVLink: "ok", "chipset_not_supported",
  // "gpu_not_supported", "topology_not_supported", "disabled_by_regkey", "not_supported"
  Fact<std::string> p2p, p2p_nvlink;
};

// What NVML says of one GPU. Fields that a board does not have are not_supported, never zero.
struct NvmlGpu {
  uint32_t index = 0;
  Fact<uint32_t> minor;  // N of its /dev/nvidiaN, by which Slurm numbers GPUs
  // The first nvmlReturn_t of this GPU's calls that is about the GPU itself and not about one
  // field: 14 damaged infoROM, 15 lost (fell off the bus), 16 needs a reset, or whatever refused
  // its handle; 0 = no call said so.
  Fact<int> state_code;
  Fact<std::string> name;
  Fact<std::string> uuid;
  Fact<std::string> serial;
  Fact<std::string> pci_address;         // "0000:01:00.0"
  Fact<std::string> compute_capability;  // "8.9"
  // "geforce", "tesla", "nvidia", "quadro_rtx", ... (NVML brand, lower case)
  Fact<std::string> brand;
  Fact<uint64_t> memory_total_bytes;  // not_supported on unified memory (GB10): "[N/A]"
  Fact<uint64_t> memory_used_bytes;
  Fact<uint64_t> memory_free_bytes;
  Fact<uint64_t> memory_reserved_bytes;  // by the driver
  Fact<bool> mig_current, mig_pending;
  std::vector<MigInstance> mig_instances;
  Fact<bool> ecc_current, ecc_pending;
  Fact<uint64_t> ecc_uncorrected_volatile, ecc_uncorrected_aggregate;
  Fact<uint64_t> ecc_corrected_volatile, ecc_corrected_aggregate;
  Fact<bool> retirement_pending;           // page retirement (before Ampere)
  Fact<bool> remap_pending, remap_failed;  // row remapping (Ampere and newer)
  Fact<uint64_t> remapped_correctable, remapped_uncorrectable;
  // reasons now active: "hw_thermal_slowdown"; idle is not listed
  Fact<std::vector<std::string>> throttle;
  Fact<uint32_t> pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
  Fact<uint32_t> nvlinks_active, nvlinks_total;
  // With --deep: nvmlNvlinkVersion_t, MB/s of one link in one direction, and of each active link
  // what its other end is: "switch", or a GPU's "0000:01:00.0"
  Fact<uint32_t> nvlink_version, nvlink_mbps;
  Fact<std::vector<std::string>> nvlink_remotes;
  std::vector<NvmlPeer> peers;  // with --deep
  Fact<std::string> compute_mode;  // "default", "exclusive_process", "prohibited"
  Fact<bool> persistence;
  Fact<bool> display_active;
  // Names of the board's and the driver's firmware: "96.00.89.00.01", "580.95.05", "G520.0202.00.05"
  Fact<std::string> vbios, gsp_firmware, inforom;
  // What the driver itself asks for after an error: "none", "reset", "reboot", "drain_p2p",
  // "drain_and_reset", "recover_imex_domain", "bus_reset"; drivers before 560 do not say
  Fact<std::string> recovery_action;
  // Registration at the NVLink fabric: "not_supported", "not_started", "in_progress", "completed"
  Fact<std::string> fabric_state;
  Fact<int> fabric_status;  // nvmlReturn_t of a completed registration; 0 = it succeeded
  Fact<uint32_t> clock_max_mhz;  // of the SMs
  // The SMs' clock that was set for applications, and the board's own
  Fact<uint32_t> clock_application_mhz, clock_application_default_mhz;
  Fact<uint32_t> temperature_c, power_watts, power_limit_watts;
  Fact<std::vector<GpuProcess>> processes;
};

struct NvmlFacts {
  Fact<std::string> library;  // path that was opened
  // nvmlReturn_t; missing with timeout/crashed when the child did not answer
  Fact<int> init_result;
  Fact<std::string> driver_version;
  Fact<int> cuda_version;    // 12020 = 12.2
  Fact<uint32_t> gpu_count;  // nvmlDeviceGetCount
  std::vector<NvmlGpu> gpus;
};

// With --deep: whether a device may read another one's memory directly.
struct CudaPeer {
  uint32_t ordinal = 0;  // of the other one
  Fact<bool> access;
};

// One device as the CUDA driver of this process shows it (after CUDA_VISIBLE_DEVICES, MIG,
// cgroups).
struct CudaDevice {
  uint32_t ordinal = 0;
  Fact<std::string> name;
  Fact<std::string> uuid;
  Fact<std::string> pci_address;
  Fact<std::string> compute_capability;
  Fact<uint64_t> memory_total_bytes;
  Fact<uint64_t> memory_free_bytes;  // with our context open
  Fact<bool> integrated;             // shares the host's memory
  // The compute check: context, allocation, a kernel from embedded PTX, result verified. "ok", or
  // the step that failed ("context", "allocate", "load_ptx", "launch", "result"); compute_code is
  // the CUresult of that step.
  Fact<std::string> compute_check;
  Fact<int> compute_code;
  Fact<std::string> memory_test;  // --deep: "ok" or "mismatch at byte N"
  Fact<uint64_t> memory_tested_bytes;
  std::vector<CudaPeer> peers;
};

struct CudaFacts {
  Fact<std::string> library;  // path of the libcuda that answered
  Fact<int> init_result;      // CUresult of cuInit
  Fact<int> driver_version;   // cuDriverGetVersion: 13000
  Fact<int> device_count;
  std::vector<CudaDevice> devices;
  double driver_seconds = 0;  // time inside the driver's own calls
};

struct Toolkit {
  std::string path;           // "/usr/local/cuda-12.4"
  Fact<std::string> version;  // "12.4.1" from version.json or version.txt
  Fact<std::string> nvcc;     // path of nvcc; not_present = runtime parts only
  // "12.4.131": what nvcc says of itself, which is not the toolkit's number
  Fact<std::string> nvcc_version;
  std::string found_by;  // "/usr/local", "CUDA_HOME", "PATH"
  bool on_path = false;  // its nvcc is the first one in PATH
};

struct EnvVariable {
  std::string name;
  std::string value;
};

// What a host offers to containers; all not_present inside an ordinary container.
struct ContainerEngine {
  Fact<std::string> docker;       // path of dockerd/docker
  Fact<std::string> toolkit;  // path of nvidia-ctk or nvidia-container-cli
  // "1.18.0": of dpkg's record of nvidia-container-toolkit
  Fact<std::string> toolkit_version;
  Fact<bool> runtime_registered;  // "nvidia" in docker's daemon.json
  Fact<std::string> default_runtime;
  Fact<bool> snap_docker;
  std::vector<std::string> cdi_specs;
  // Version of the driver whose libcuda.so a spec of nvidia.com/gpu names: "580.95.05". Its source is
  // that spec; of several it is the one that wins.
  Fact<std::string> cdi_driver;
};

// One distribution (dist-info, egg-info or conda-meta record) of an environment.
struct Distribution {
  std::string name;          // normalised (PEP 503): "nvidia-cuda-runtime-cu12"
  std::string display_name;  // as the package writes it, where that differs: "mypy_extensions"
  std::string version;       // "2.11.0", "12.8.90"
  std::string location;      // the metadata folder or conda-meta file
  std::string kind;          // "dist-info", "egg-info", "conda-meta", "leftover" (pip's "~orch")
  std::string installer;     // "pip", "uv", "conda", "poetry", ...; empty = not said
  std::string tag;           // "cp312-cp312-manylinux_2_28_x86_64" of WHEEL, build string of conda
  // Requires-Dist lines that apply here: their markers judged, of extras those that an installed
  // package asks for
  std::vector<std::string> needs;
  bool has_record = true;
  uint32_t files_recorded = 0;  // looked at in RECORD: code, or all (ProbeOptions::every_file)
  uint32_t files_missing = 0;   // gone, or empty where RECORD names a size
  std::string first_missing;    // code first, then the one nearest to the top
  uint32_t files_resized = 0;   // there, and of another size than recorded
  std::string first_resized;
};

// One shared object with CUDA parts.
struct Binary {
  std::string path;     // relative to the environment's root where it lies inside
  std::string package;  // distribution that owns it; empty = none found
  uint64_t size_bytes = 0;
  std::string soname;
  std::vector<std::string> needed, rpath, runpath;
  std::vector<formats::DeviceCode> device_code;
  std::string glibc, glibcxx,
      cxxabi;              // highest version needed: "2.28", "3.4.29", "1.3.13"; empty = none
  std::string cxx11_abi;   // "1", "0"; empty = the file does not tell
  std::string python_tag;  // "cpython-312", "abi3"; empty = none in the name
  // undefined c10/at/torch symbols that nothing in the environment defines
  std::vector<std::string> unresolved;
  uint32_t unresolved_count = 0;  // unresolved holds the first 8
  // CUDA libraries that it needs and that neither the loader's search nor the environment has
  std::vector<std::string> not_found;
  std::vector<formats::Damage> damage;
  std::string unreadable;  // why nothing of it was read ("permission denied"); empty = it was read
};

// One library that importing torch (or an extension) would load, found by simulating glibc's
// search.
struct LoadedLibrary {
  std::string name;  // as asked for: "libcudnn.so.9"
  std::string path;  // empty = found nowhere
  std::string by;    // "RPATH", "RUNPATH", "LD_LIBRARY_PATH", "ld.so.cache", "default directory",
                     // "torch preload", "dlopen"
  std::string asked_by;    // file that needs it
  std::string package;     // owning distribution and version; empty = outside the environment
  std::string version;     // from the file name, the owning package or the ELF; may be empty
  std::string cuda_major;  // "12", "13" where the library belongs to one
  bool inside = false;     // lies inside the environment
};

struct TorchFacts {
  Fact<std::string> version;  // "2.11.0+cu130", version.py
  Fact<std::string> cuda;     // "13.0"; not_present = built without CUDA
  Fact<std::string> hip;
  Fact<bool> debug;
  Fact<std::string> git;
  std::string path;     // the torch package's folder
  std::string variant;  // "cu130", "cpu", "rocm6.4"; empty = not said
  // Only with ProbeOptions::for_collect_env:
  Fact<bool> xnnpack;  // libtorch_cpu holds XNNPACK
  // "LAZY": torch sets CUDA_MODULE_LOADING; not_present = it leaves it alone
  Fact<std::string> module_loading;
};

// An index that a project's pyproject.toml names for uv.
struct ProjectIndex {
  std::string name, url;              // without a password
  bool is_explicit = false;           // for packages alone that are bound to it
  std::vector<std::string> packages;  // of torch's family, bound to it
};

struct PythonEnv {
  std::string path;  // prefix; redacted in recordings
  std::string kind;  // "venv", "conda", "system", "image", "folder" (packages without a Python)
  bool active = false;
  std::string found_by;   // "--env", "VIRTUAL_ENV", "CONDA_PREFIX", "PATH", "default"
  std::string installer;  // how a user installs into it: "pip", "uv", "conda", "poetry", "pdm", ...
  // Folder whose lock (of uv, poetry, pdm, pipenv or pixi) this environment follows: a package that
  // is put in beside the lock is taken out again by its next sync. Empty = none.
  std::string project;
  std::string project_python;                 // its requires-python, ">=3.9"; empty = not said
  std::vector<ProjectIndex> project_indexes;  // of uv
  std::vector<std::string> project_packages;  // of torch's family, that pixi has of conda
  // The EXTERNALLY-MANAGED file of a distribution's own Python: pip refuses it (PEP 668).
  Fact<std::string> externally_managed;
  // Its standard library has ensurepip, without which `-m venv` fails: Debian ships that apart.
  Fact<bool> makes_venv;
  Fact<std::string> python;       // "3.12.3"
  Fact<std::string> interpreter;  // path
  // Of a venv: the program behind its interpreter, all links followed ("/usr/bin/python3.11");
  // not_present: gone, the note names it
  Fact<std::string> base_python;
  std::vector<std::string> site_packages;
  Fact<std::vector<Distribution>> distributions;  // sorted by name
  TorchFacts torch;
  std::vector<Binary> binaries;      // torch's and every package's with CUDA parts, sorted by path
  std::vector<LoadedLibrary> loads;  // in the order in which they would be loaded
  // other copies of the same names that a search path holds, for evidence
  std::vector<LoadedLibrary> shadowed;
  Fact<std::string> torch_run;  // --deep: "ok", or what torch said
};

// One line of lscpu: "Socket(s)" and "2".
struct CpuLine {
  std::string label, value;
};

// What only the report of collect-env shows; read with ProbeOptions::for_collect_env.
struct CollectEnvFacts {
  std::vector<CpuLine> cpu;        // lscpu's lines as far as files tell them, in its order
  Fact<std::string> gcc;           // of the one in PATH: "(Debian 12.2.0-14+deb12u1) 12.2.0"
  Fact<std::string> clang, cmake;  // "14.0.0-1ubuntu1.1"; "version 3.25.1"
  // the files behind ld.so.cache's entries for libcudnn*, sorted
  Fact<std::vector<std::string>> cudnn;
};

// A copy from one GPU to another one, in torch.
struct PeerCopy {
  uint32_t from = 0, to = 0;    // as CUDA numbers them
  double bytes_per_second = 0;  // the best of some
  std::string wrong;            // "1 of 4096 values are wrong: ..."; empty = all are right
};

// --deep: what all GPUs of this host did together, in one environment's torch
// (python/cufit_together).
struct TogetherFacts {
  // The sum over all GPUs (all-reduce): "ok", "wrong", "hung", "failed"; missing: why none was asked
  Fact<std::string> sum;
  std::string env;              // path of the environment
  std::string torch, nccl;      // versions
  uint32_t ranks = 0;           // one for each GPU
  std::string said;             // which rank, in which step, and what: empty where the sum is "ok"
  std::string warning;          // NCCL's last warning
  std::vector<std::string> via;  // how NCCL's channels go: "P2P/CUMEM", "SHM/direct/direct"
  Fact<uint64_t> sum_bytes;
  Fact<double> bus_bytes_per_second;  // 2(n-1)/n of the bytes per second: what each link carries
  Fact<double> small_seconds;         // of a sum of 8 bytes
  Fact<std::string> copies;           // as `sum`, of the copies between pairs
  std::string copies_said;
  Fact<uint64_t> copy_bytes;
  std::vector<PeerCopy> pairs;
  std::vector<std::string> interfaces;  // of the network, where one is asked for
};

struct Facts {
  std::string schema = "cufit.facts/1";
  std::string cufit_version;
  std::string origin = "live";  // "live", "recording", "dump", "text"
  SystemFacts system;
  Fact<std::vector<PciGpu>> pci;
  KernelDriver kernel;
  std::vector<DriverLibrary> driver_libraries;
  NvmlFacts nvml;
  CudaFacts cuda;
  std::vector<Toolkit> toolkits;
  std::vector<EnvVariable> variables;  // only the ones that matter, sorted by name
  ContainerEngine engine;
  std::vector<PythonEnv> envs;  // the active one first
  // Of the current folder what Python imports from there before any package: "torch.py", "torch/".
  std::vector<std::string> local_modules;
  CollectEnvFacts collect_env;
  TogetherFacts together;
  std::vector<std::string> problems;  // cufit's own errors on the way, each names file and place
};

}  // namespace cufit::facts
