// SPDX-License-Identifier: Apache-2.0
// Kernel driver, device nodes, containers, WSL, health and state of GPUs: each check fires, stays
// silent, and says `unknown` where the deciding fact is missing.
#include <gtest/gtest.h>

#include <functional>

#include "checks/machine_checks.h"
#include "unit/checks/world.h"

namespace cufit::checks {
namespace machine_test {

using namespace world;

template <class T>
Fact<T> gone(WhyNot why = WhyNot::not_present) {
  return missing<T>(why, SourceKind::file, "/tried", "note");
}

struct Case {
  const char* what;
  std::function<void(World&)> change;
  Texts want;
};

void expect_all(Check check, const std::function<World()>& base, const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    World w = base();
    one.change(w);
    EXPECT_EQ(brief(run(check, w)), one.want) << one.what;
  }
}

facts::DeviceNode node(const char* path, const char* mode = "crw-rw-rw-", bool usable = true) {
  facts::DeviceNode made;
  made.path = path;
  made.mode = mode ? file<std::string>(mode, path) : gone<std::string>();
  made.usable = usable;
  return made;
}

World bare() {  // a GPU on the bus, no driver loaded
  World w;
  w.facts.pci = file(std::vector<facts::PciGpu>{pci_gpu(0, "2204")}, "/sys/bus/pci/devices");
  w.facts.kernel.version = gone<std::string>();
  w.facts.kernel.package_version = gone<std::string>();
  w.facts.kernel.module_on_disk = gone<std::string>();
  w.facts.kernel.log = file(std::vector<std::string>{}, "/dev/kmsg");
  return w;
}

World installed() {
  World w = bare();
  w.facts.kernel.package_version = file<std::string>("550.54.14", "/var/lib/dkms/nvidia");
  w.facts.kernel.module_on_disk = file<std::string>("/lib/modules/x/nvidia.ko", "/lib/modules/x");
  return w;
}

TEST(KernelModule, NamesTheOneReasonWhyNothingIsLoaded) {
  using V = std::vector<std::string>;
  expect_all(
      check_kernel_module, installed,
      {
          {"loaded", [](World& w) { w.driver("550.54.14"); }, {}},
          {"nothing said why", [](World&) {}, {"module_not_loaded/error"}},
          {"no package",
           [](World& w) {
             w.facts.kernel.package_version = gone<std::string>();
             w.facts.kernel.module_on_disk = gone<std::string>();
           },
           {"driver_not_installed/error"}},
          {"package status unreadable",
           [](World& w) {
             w.facts.kernel.package_version = gone<std::string>(WhyNot::no_permission);
             w.facts.kernel.module_on_disk = gone<std::string>();
           },
           {"driver_not_installed/unknown"}},
          {"not built",
           [](World& w) { w.facts.kernel.module_on_disk = gone<std::string>(); },
           {"module_not_built_for_kernel/error"}},
          {"modules unreadable",
           [](World& w) {
             w.facts.kernel.module_on_disk = gone<std::string>(WhyNot::no_permission);
           },
           {"module_not_built_for_kernel/unknown"}},
          {"rejected",
           [](World& w) {
             w.facts.kernel.log =
                 file(V{"Loading of module with unavailable key is rejected"}, "/dev/kmsg");
           },
           {"secure_boot_unsigned_module/error"}},
          {"a taint line alone is no rejection",
           [](World& w) {
             w.facts.kernel.log = file(V{"nvidia: module verification failed"}, "/dev/kmsg");
           },
           {"module_not_loaded/error"}},
          {"Secure Boot on and the log unreadable",
           [](World& w) {
             w.facts.system.secure_boot = file(true, "efivars");
             w.facts.kernel.log = gone<V>(WhyNot::no_permission);
           },
           {"secure_boot_unsigned_module/unknown"}},
          {"nouveau bound",
           [](World& w) {
             (*w.facts.pci.value)[0].driver = file<std::string>("nouveau", "driver");
           },
           {"nouveau_conflict/error"}},
          {"passed through to a virtual machine",
           [](World& w) {
             w.driver("550.54.14");
             (*w.facts.pci.value)[0].driver = file<std::string>("vfio-pci", "driver");
           },
           {"nouveau_conflict/note/other"}},
          {"a pasted text that does not say", [](World& w) { w.facts.kernel.version = {}; }, {}},
          {"WSL has no module",
           [](World& w) { w.facts.system.wsl = file<std::string>("2", "osrelease"); },
           {}},
      });
}

TEST(NoNvidiaGpu, NeedsAnAnswerOfTheBus) {
  expect_all(
      check_no_nvidia_gpu,
      [] {
        World w = bare();
        w.facts.pci = file(std::vector<facts::PciGpu>{}, "pci");
        return w;
      },
      {
          {"none", [](World&) {}, {"no_nvidia_gpu/error"}},
          {"bus unreadable",
           [](World& w) { w.facts.pci = gone<std::vector<facts::PciGpu>>(WhyNot::no_permission); },
           {"no_nvidia_gpu/unknown"}},
          {"never asked", [](World& w) { w.facts.pci = {}; }, {}},
          {"there is one",
           [](World& w) {
             w.facts.pci = file(std::vector<facts::PciGpu>{pci_gpu(0, "2204")}, "pci");
           },
           {}},
          {"Jetson", [](World& w) { w.facts.system.jetson = file<std::string>("Orin", "dt"); }, {}},
      });
}

TEST(PciResources, NeedsAGpuThatDoesNotWork) {
  expect_all(
      check_pci_resources, bare,
      {
          {"size not known", [](World&) {}, {}},
          {"no window",
           [](World& w) { (*w.facts.pci.value)[0].bar1_bytes = file<uint64_t>(0, "resource"); },
           {"platform_pci_resources/error"}},
          {"a window",
           [](World& w) { (*w.facts.pci.value)[0].bar1_bytes = file<uint64_t>(1, "resource"); },
           {}},
          {"works all the same",
           [](World& w) {
             (*w.facts.pci.value)[0].bar1_bytes = file<uint64_t>(0, "resource");
             w.gpu("NVIDIA GeForce RTX 3090", "8.6");
           },
           {}},
      });
}

World with_nodes() {
  World w;
  w.gpu("NVIDIA GeForce RTX 3090", "8.6")
      .driver("550.54.14")
      .cuinit(100)
      .libcuda("driver", "550.54.14");
  w.facts.kernel.nodes = {node("/dev/nvidia0"), node("/dev/nvidiactl"), node("/dev/nvidia-uvm")};
  return w;
}

TEST(DeviceNodes, TellsMissingFromForbiddenFromTakenAway) {
  const auto docker = [](World& w) {
    w.facts.system.container = file<std::string>("docker", "/.dockerenv");
  };
  expect_all(
      check_device_nodes, with_nodes,
      {
          {"all there", [](World&) {}, {}},
          {"uvm missing and CUDA failed",
           [](World& w) { w.facts.kernel.nodes.back() = node("/dev/nvidia-uvm", nullptr); },
           {"dev_nodes_missing/error"}},
          {"uvm missing and CUDA works",
           [](World& w) {
             w.cuinit(0).facts.kernel.nodes.back() = node("/dev/nvidia-uvm", nullptr);
           },
           {}},
          {"uvm missing and nobody asked CUDA",
           [](World& w) {
             w.facts.cuda = {};
             w.facts.kernel.nodes.back() = node("/dev/nvidia-uvm", nullptr);
           },
           {"dev_nodes_missing/unknown"}},
          {"missing in a container",
           [&](World& w) {
             docker(w);
             w.facts.cuda = {};
             w.facts.kernel.nodes.back() = node("/dev/nvidia-uvm", nullptr);
           },
           {"dev_nodes_missing/error/container"}},
          {"group only",
           [](World& w) { w.facts.kernel.nodes[0] = node("/dev/nvidia0", "crw-rw----", false); },
           {"dev_nodes_no_permission/error"}},
          {"open to all and refused",
           [&](World& w) {
             docker(w);
             w.facts.kernel.nodes[0] = node("/dev/nvidia0", "crw-rw-rw-", false);
           },
           {"container_cgroup_devices_lost/error"}},
          {"NVML 999 in a container",
           [&](World& w) {
             docker(w);
             w.facts.nvml.init_result = known(999, SourceKind::nvml, "nvmlInit_v2");
           },
           {"container_cgroup_devices_lost/error"}},
          {"nodes never listed", [](World& w) { w.facts.kernel.nodes.clear(); }, {}},
      });
}

TEST(ContainerGpu, FollowsTheTieBreakers) {
  const auto base = [] {
    World w = with_nodes();
    w.facts.system.container = file<std::string>("docker", "/.dockerenv");
    return w;
  };
  expect_all(check_container_gpu, base,
             {
                 {"nodes and libcuda", [](World&) {}, {}},
                 {"nothing given",
                  [](World& w) {
                    w.facts.kernel.nodes.clear();
                    w.facts.driver_libraries.clear();
                  },
                  {"container_no_gpu_requested/error"}},
                 {"the image's compat libcuda is not the host's",
                  [](World& w) {
                    w.facts.kernel.nodes.clear();
                    w.facts.driver_libraries[0].origin = "compat";
                  },
                  {"container_no_gpu_requested/error"}},
                 {"Kubernetes has words of its own",
                  [](World& w) {
                    w.facts.kernel.nodes.clear();
                    w.facts.driver_libraries.clear();
                    w.facts.system.container = file<std::string>("kubernetes", "env");
                  },
                  {"container_no_gpu_requested/error/kubernetes"}},
                 {"utility only",
                  [](World& w) { w.facts.driver_libraries[0].soname = "libnvidia-ml.so.1"; },
                  {"container_driver_capabilities/error"}},
                 {"nodes by hand",
                  [](World& w) { w.facts.driver_libraries.clear(); },
                  {"container_driver_capabilities/error/devices_only"}},
                 {"not a container",
                  [](World& w) {
                    w.facts.kernel.nodes.clear();
                    w.facts.system.container = file<std::string>("none", "");
                  },
                  {}},
                 {"works", [](World& w) { w.cuinit(0).facts.kernel.nodes.clear(); }, {}},
             });
}

TEST(ContainerHost, ToolkitMattersOnlyWhereDockerIs) {
  const auto base = [] {
    World w;
    w.gpu("NVIDIA GeForce RTX 3090", "8.6");
    w.facts.engine.docker = file<std::string>("/usr/bin/docker", "PATH");
    w.facts.engine.toolkit = file<std::string>("/usr/bin/nvidia-ctk", "PATH");
    w.facts.engine.runtime_registered = file(true, "daemon.json");
    return w;
  };
  expect_all(
      check_container_host, base,
      {
          {"registered", [](World&) {}, {}},
          {"no toolkit",
           [](World& w) { w.facts.engine.toolkit = gone<std::string>(); },
           {"container_toolkit_missing/note"}},
          {"unreadable",
           [](World& w) { w.facts.engine.toolkit = gone<std::string>(WhyNot::no_permission); },
           {"container_toolkit_missing/unknown"}},
          {"no docker",
           [](World& w) {
             w.facts.engine.toolkit = gone<std::string>();
             w.facts.engine.docker = gone<std::string>();
           },
           {}},
          {"not registered",
           [](World& w) { w.facts.engine.runtime_registered = file(false, "daemon.json"); },
           {"container_runtime_not_registered/note"}},
          {"CDI instead",
           [](World& w) {
             w.facts.engine.runtime_registered = file(false, "daemon.json");
             w.facts.engine.cdi_specs = {"/etc/cdi/nvidia.yaml"};
           },
           {}},
          {"snap",
           [](World& w) {
             w.facts.engine.runtime_registered = file(false, "daemon.json");
             w.facts.engine.snap_docker = file(true, "/snap");
           },
           {"container_runtime_not_registered/warning/snap"}},
      });
}

TEST(ContainerShm, TheDefaultIsTooSmall) {
  const auto base = [] {
    World w;
    w.gpu("NVIDIA GeForce RTX 3090", "8.6");
    w.facts.system.container = file<std::string>("docker", "/.dockerenv");
    w.facts.system.shm_bytes = file<uint64_t>(64u << 20, "/dev/shm");
    return w;
  };
  expect_all(
      check_container_shm, base,
      {
          {"64 MiB", [](World&) {}, {"shm_too_small/warning"}},
          {"one more",
           [](World& w) { w.facts.system.shm_bytes = file<uint64_t>((64u << 20) + 1, "/dev/shm"); },
           {}},
          {"unreadable",
           [](World& w) { w.facts.system.shm_bytes = gone<uint64_t>(WhyNot::no_permission); },
           {"shm_too_small/unknown"}},
          {"a host",
           [](World& w) { w.facts.system.container = file<std::string>("none", ""); },
           {}},
      });
}

TEST(Wsl, SeparatesWindowsFromLinux) {
  const auto base = [] {
    World w;
    w.facts.system.wsl = file<std::string>("2", "osrelease");
    w.facts.kernel.nodes = {node("/dev/dxg")};
    w.libcuda("wsl", "");
    return w;
  };
  expect_all(
      check_wsl, base,
      {
          {"fine", [](World&) {}, {}},
          {"WSL 1",
           [](World& w) { w.facts.system.wsl = file<std::string>("1", "osrelease"); },
           {"wsl_host_too_old/error/wsl1"}},
          {"no dxg", [](World& w) { w.facts.kernel.nodes.clear(); }, {"wsl_host_too_old/error"}},
          {"no driver on Windows",
           [](World& w) { w.facts.driver_libraries.clear(); },
           {"driver_not_installed/error/wsl"}},
          {"not on the path",
           [](World& w) { w.facts.driver_libraries[0].loads = false; },
           {"wsl_libcuda_not_found/error"}},
          {"CUDA works", [](World& w) { w.cuinit(0).facts.kernel.nodes.clear(); }, {}},
      });
}

TEST(Fabric, OnlyNvswitchSystemsNeedIt) {
  const auto base = [] {
    World w;
    w.gpu("NVIDIA H100 80GB HBM3", "9.0").driver("550.54.14").cuinit(802);
    w.facts.kernel.nvswitch = true;
    w.facts.kernel.fabric_manager = file<std::string>("stopped", "/run");
    return w;
  };
  expect_all(
      check_fabric, base,
      {
          {"802", [](World&) {}, {"fabric_manager/error"}},
          {"running and 802",
           [](World& w) { w.facts.kernel.fabric_manager = file<std::string>("running", "/run"); },
           {"fabric_manager/error/running"}},
          {"works", [](World& w) { w.cuinit(0); }, {}},
          {"no answer, stopped",
           [](World& w) { w.facts.cuda.init_result = {}; },
           {"fabric_manager/warning"}},
          {"no answer, no switch",
           [](World& w) {
             w.facts.cuda.init_result = {};
             w.facts.kernel.nvswitch = false;
           },
           {}},
          {"another error", [](World& w) { w.cuinit(100); }, {}},
      });
}

TEST(Health, JudgesWhatIsNotCorrected) {
  const auto base = [] {
    World w;
    w.gpu("NVIDIA A100-SXM4-80GB", "8.0");
    return w;
  };
  const auto yes = known(true, SourceKind::nvml, "nvmlDeviceGetRemappedRows");
  expect_all(check_memory_health, base,
             {
                 {"no counters", [](World&) {}, {}},
                 {"corrected",
                  [](World& w) {
                    w.facts.nvml.gpus[0].ecc_corrected_volatile =
                        known<uint64_t>(900, SourceKind::nvml, "x");
                  },
                  {}},
                 {"uncorrected long ago",
                  [](World& w) {
                    w.facts.nvml.gpus[0].ecc_uncorrected_aggregate =
                        known<uint64_t>(1, SourceKind::nvml, "x");
                  },
                  {}},
                 {"uncorrected now",
                  [](World& w) {
                    w.facts.nvml.gpus[0].ecc_uncorrected_volatile =
                        known<uint64_t>(1, SourceKind::nvml, "x");
                  },
                  {"gpu_memory_ecc/warning/uncorrected"}},
                 {"pending",
                  [&](World& w) { w.facts.nvml.gpus[0].remap_pending = yes; },
                  {"gpu_memory_ecc/warning/remap_pending"}},
                 {"failed",
                  [&](World& w) {
                    w.facts.nvml.gpus[0].remap_failed = yes;
                    w.facts.nvml.gpus[0].remap_pending = yes;
                  },
                  {"gpu_memory_ecc/error/remap_failed"}},
                 {"pages",
                  [&](World& w) { w.facts.nvml.gpus[0].retirement_pending = yes; },
                  {"gpu_memory_ecc/warning/retirement_pending"}},
             });
  const auto xid = [](uint32_t number) {
    return [number](World& w) {
      w.facts.kernel.xids.push_back({number, "0000:01:00", "NVRM: Xid", 1});
    };
  };
  expect_all(check_xids, base,
             {
                 {"79, no answer since", xid(79), {"gpu_fell_off_bus/error"}},
                 {"79, answers again",
                  [&](World& w) {
                    xid(79)(w);
                    w.facts.nvml.gpus[0].memory_used_bytes =
                        known<uint64_t>(1, SourceKind::nvml, "x");
                  },
                  {"gpu_fell_off_bus/warning/back"}},
                 {"48", xid(48), {"gpu_memory_ecc/error/xid"}},
                 {"63 and nothing pending",
                  [&](World& w) {
                    xid(63)(w);
                    w.facts.nvml.gpus[0].remap_pending = known(false, SourceKind::nvml, "x");
                  },
                  {}},
                 {"13 and 31 are one",
                  [&](World& w) {
                    xid(13)(w);
                    xid(31)(w);
                  },
                  {"app_kernel_fault/note"}},
                 {"119", xid(119), {"gsp_firmware_hang/error"}},
                 {"74", xid(74), {"nvlink_error/error"}},
                 {"a number without a root cause", xid(9999), {}},
             });
}

TEST(GpuState, NormalStatesAreNoFinding) {
  const auto base = [] {
    World w;
    w.gpu("NVIDIA A100-SXM4-80GB", "8.0");
    return w;
  };
  const auto throttle = [](const char* reason) {
    return [reason](World& w) {
      w.facts.nvml.gpus[0].throttle =
          known(std::vector<std::string>{reason}, SourceKind::nvml, "x");
    };
  };
  const auto memory = [](uint64_t used) {
    return [used](World& w) {
      w.facts.nvml.gpus[0].memory_total_bytes = known<uint64_t>(100, SourceKind::nvml, "x");
      w.facts.nvml.gpus[0].memory_used_bytes = known(used, SourceKind::nvml, "x");
    };
  };
  const auto mode = [](const char* name) {
    return [name](World& w) {
      w.facts.nvml.gpus[0].compute_mode = known<std::string>(name, SourceKind::nvml, "x");
    };
  };
  const auto mig = known(true, SourceKind::nvml, "nvmlDeviceGetMigMode");
  expect_all(
      check_gpu_state, base,
      {
          {"power cap under load", throttle("sw_power_cap"), {}},
          {"heat", throttle("hw_thermal_slowdown"), {"gpu_throttled/warning"}},
          {"power brake", throttle("hw_power_brake_slowdown"), {"gpu_throttled/warning/power"}},
          {"little used", memory(49), {}},
          {"half used, names unknown", memory(50), {"gpu_memory_in_use/note/unnamed"}},
          {"no size (unified memory)",
           [](World& w) {
             w.facts.nvml.gpus[0].memory_used_bytes = known<uint64_t>(9, SourceKind::nvml, "x");
           },
           {}},
          {"default", mode("default"), {}},
          {"prohibited", mode("prohibited"), {"gpu_mode_config/error/prohibited"}},
          {"exclusive", mode("exclusive_process"), {"gpu_mode_config/note/exclusive"}},
          {"MIG without instances",
           [&](World& w) { w.facts.nvml.gpus[0].mig_current = mig; },
           {"gpu_mode_config/error/mig_empty"}},
          {"MIG with two",
           [&](World& w) {
             w.facts.nvml.gpus[0].mig_current = mig;
             w.facts.nvml.gpus[0].mig_instances.resize(2);
           },
           {"gpu_mode_config/note/mig_one_instance"}},
      });
  const auto link = [](uint32_t width, uint32_t most, uint32_t gen) {
    return [=](World& w) {
      w.facts.nvml.gpus[0].pcie_width = known(width, SourceKind::nvml, "x");
      w.facts.nvml.gpus[0].pcie_width_max = known(most, SourceKind::nvml, "x");
      w.facts.nvml.gpus[0].pcie_gen = known(gen, SourceKind::nvml, "x");
      w.facts.nvml.gpus[0].pcie_gen_max = known(5u, SourceKind::nvml, "x");
    };
  };
  expect_all(check_pcie_link, base,
             {
                 {"idle: low generation, all lanes", link(16, 16, 1), {}},
                 {"x8 of x16", link(8, 16, 5), {"pcie_link_degraded/note"}},
                 {"x8 of x8", link(8, 8, 5), {}},
                 {"not known", [](World&) {}, {}},
             });
}

}  // namespace machine_test
}  // namespace cufit::checks
