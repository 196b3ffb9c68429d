// SPDX-License-Identifier: Apache-2.0
// Parts of described machines for tests of probes: each function adds files to a FakeRoot as the
// real system has them.
#pragma once

#include <string>

#include "support/fake_root.h"

namespace cufit::test {

// The first 64 bytes of an x86-64 shared object: enough for the loader's own test.
inline std::string elf_header() {
  std::string out(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  out.resize(64, '\0');
  out[16] = 3;   // ET_DYN
  out[18] = 62;  // EM_X86_64
  out[52] = 64;  // e_ehsize
  return out;
}

// Debian's: the loader, and a libc.so.6 with the text that tells its version.
inline void add_glibc(FakeRoot& root) {
  root.file("/lib64/ld-linux-x86-64.so.2", elf_header());
  root.file(
      "/usr/lib/x86_64-linux-gnu/libc.so.6",
      elf_header() + std::string(300000, 'x') +
          "GNU C Library (Debian GLIBC 2.36-9+deb12u8) stable release version 2.36.\nCopyright");
}

inline void add_proc(FakeRoot& root, const std::string& kernel = "6.1.0-26-amd64") {
  root.file("/proc/sys/kernel/osrelease", kernel + "\n").file("/proc/self/exe", elf_header());
  root.file("/proc/version", "Linux version " + kernel + " (debian-kernel@lists.debian.org)\n");
  root.file("/proc/meminfo",
            "MemTotal:       65536000 kB\nMemFree:  1 kB\nMemAvailable:   60000000 kB\n");
  root.file("/proc/self/status",
            "Name:\tcufit\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-14,31\n");
  root.file("/proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max locked memory         8388608              unlimited            bytes     \n");
  root.file("/proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD Ryzen 9 5950X\n\nprocessor\t: 1\n");
  root.file("/proc/sys/kernel/random/boot_id", "4a31d51d-7b06-491f-8450-a12738990dc6\n");
}

// A machine of its own: first namespace, a disk at "/", cgroup v2 without limits, shared memory of
// half the RAM.
inline void add_bare_host(FakeRoot& root) {
  root.link("/proc/self/ns/pid", "pid:[4026531836]");
  root.file("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-1.scope\n");
  root.file("/proc/self/mountinfo",
            "22 27 0:21 / /proc rw - proc proc rw\n"
            "25 24 0:23 / /dev/shm rw,nosuid - tmpfs tmpfs rw,size=32768000k\n"
            "27 1 254:0 / / rw,relatime - ext4 /dev/nvme0n1p2 rw\n"
            "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  root.file("/sys/fs/cgroup/user.slice/memory.max", "max\n");
  root.file("/etc/os-release",
            "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nVERSION_ID=\"12\"\nID=debian\n");
}

struct Card {
  std::string address = "0000:01:00.0", device = "0x2204", class_code = "0x030000",
              driver = "nvidia";
  std::string windows =  // registers 16 MiB, memory 256 MiB, 32 MiB
      "0x00000000fb000000 0x00000000fbffffff 0x0000000000040200\n"
      "0x0000007fd0000000 0x0000007fdfffffff 0x000000000014220c\n"
      "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
      "0x0000007fe0000000 0x0000007fe1ffffff 0x000000000014220c\n";
};

inline void add_card(FakeRoot& root, const Card& card) {
  const std::string folder = "/sys/bus/pci/devices/" + card.address;
  root.file(folder + "/vendor", "0x10de\n").file(folder + "/device", card.device + "\n");
  root.file(folder + "/class", card.class_code + "\n").file(folder + "/resource", card.windows);
  root.file(folder + "/subsystem_vendor", "0x10de\n")
      .file(folder + "/subsystem_device", "0x147D\n");
  root.file(folder + "/current_link_speed", "8.0 GT/s PCIe\n")
      .file(folder + "/max_link_speed", "16.0 GT/s PCIe\n");
  root.file(folder + "/current_link_width", "8\n").file(folder + "/max_link_width", "16\n");
  if (!card.driver.empty())
    root.link(folder + "/driver", "../../../../bus/pci/drivers/" + card.driver);
}

inline void add_module(FakeRoot& root, const std::string& version, bool open) {
  root.file("/sys/module/nvidia/version", version + "\n").folder("/sys/module/nvidia_uvm");
  root.file("/proc/driver/nvidia/version",
            open ? "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + version +
                       "  Release Build  (user@)\n"
                 : "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " + version +
                       "  Sun May 12 19:39:15 UTC 2024\n");
  root.file("/proc/driver/nvidia/gpus/0000:01:00.0/information",
            "Model: \t\t x\nDevice Minor: \t 0\n");
}

inline void add_library(FakeRoot& root, const std::string& folder, const std::string& version) {
  for (const char* stem : {"libcuda.so", "libnvidia-ml.so"}) {
    root.file(folder + "/" + stem + "." + version, elf_header());
    root.link(folder + "/" + stem + ".1", std::string(stem) + "." + version);
  }
}

}  // namespace cufit::test
