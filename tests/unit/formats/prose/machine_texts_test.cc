// SPDX-License-Identifier: Apache-2.0
// The small readers of texts that a machine gives about itself.
#include "formats/system/cgroup.h"
#include "formats/system/daemon_json.h"
#include "formats/system/kernel_log.h"
#include "formats/system/nvidia_version.h"
#include "formats/system/os_release.h"
#include "formats/prose/printable.h"
#include "formats/system/toolkit_version.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace machine_texts_test {

TEST(Printable, KeepsTextAndReplacesWhatATerminalObeys) {
  EXPECT_EQ(printable("plain \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80"),
            "plain \xc3\xa9 \xe4\xb8\xad \xf0\x9f\x98\x80");
  EXPECT_EQ(printable("a\x1b[31mb\x7f\tc"), "a?[31mb? c");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "?31m");
  EXPECT_EQ(printable("\xff\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xe4\xb8"), std::string(12, '?'));
  EXPECT_EQ(printable("123456", 4), "1234");
  EXPECT_EQ(printable("123\xc3\xa9", 4), "123");  // no half character at the end
}

TEST(OsRelease, ReadsQuotesAsAShellDoes) {
  OsRelease debian = parse_os_release(
      "PRETTY_NAME=\"Debian GNU/Linux 12 "
      "(bookworm)\"\nVERSION_ID=\"12\"\r\nID=debian\nHOME_URL=\"https://x\"\n");
  EXPECT_EQ(debian.id, "debian");
  EXPECT_EQ(debian.version_id, "12");
  EXPECT_EQ(debian.pretty_name, "Debian GNU/Linux 12 (bookworm)");
  OsRelease odd =
      parse_os_release("# ID=no\n ID='a b'\nPRETTY_NAME=\"x \\\"y\\\" \\$z\nNAME\n=\nVERSION_ID=");
  EXPECT_EQ(odd.id, "a b");
  EXPECT_EQ(odd.pretty_name, "x \"y\" $z");
  EXPECT_EQ(odd.version_id, "");
  EXPECT_EQ(parse_os_release("").id, "");
}

TEST(NvidiaVersion, TellsOpenFromProprietary) {
  struct Case {
    const char *text, *version, *flavour;
  } cases[] = {
      {"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
       "(user@)  \n"
       "GCC version:  gcc version 15.3.0 (GCC) \n",
       "580.159.04", "open"},
      {"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\n"
       "GCC version:  gcc version 12.2.0\n",
       "535.183.01", "proprietary"},
      {"NVRM version: NVIDIA UNIX aarch64 Kernel Module  470.256.02  Thu May  2 14:50:40 UTC "
       "2024\n",
       "470.256.02", "proprietary"},
      {"NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build\n",
       "540.4.0", "open"},
  };
  for (const Case& each : cases) {
    std::optional<NvidiaModule> module = parse_nvidia_version(each.text);
    ASSERT_TRUE(module) << each.text;
    EXPECT_EQ(module->version, each.version);
    EXPECT_EQ(module->flavour, each.flavour);
  }
  EXPECT_FALSE(parse_nvidia_version(""));
  EXPECT_FALSE(parse_nvidia_version("NVRM version: NVIDIA UNIX x86_64 Kernel Mod"));
  EXPECT_FALSE(parse_nvidia_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module"));
  EXPECT_FALSE(parse_nvidia_version("GCC version: Kernel Module 12.2.0"));
}

TEST(NvidiaVersion, KnowsADriverVersion) {
  for (const char* good : {"535.183.01", "580.65.06", "390.157", "540.4.0"})
    EXPECT_TRUE(is_driver_version(good)) << good;
  for (const char* bad :
       {"", "535", "535.", ".1", "535.x", "1.2.3.4.5", "535.123456", "535.183.01-0ubuntu1"}) {
    EXPECT_FALSE(is_driver_version(bad)) << bad;
  }
}

TEST(KernelLog, DropsTimeStampsOfEveryForm) {
  const char* const k_forms[] = {
      "<4>[   12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01",
      "[   12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01",
      "[   12.345678] [T1234] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01",
      "[Sat Nov 21 00:12:00 2026] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01",
      "4,812,5140900,-;NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01\n "
      "SUBSYSTEM=nvidia",
      "Nov 21 00:12:00 somehost kernel: [   12.345678] NVRM: loading NVIDIA UNIX x86_64 Kernel "
      "Module  535.183.01",
      "2026-11-21T00:12:00.123456+00:00 somehost kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel "
      "Module  535.183.01",
  };
  for (const char* form : k_forms) {
    KernelLog log = parse_kernel_log(form);
    ASSERT_EQ(log.lines.size(), 1u) << form;
    EXPECT_EQ(log.lines[0], "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01") << form;
  }
}

TEST(KernelLog, KeepsWhatMattersAndNothingElse) {
  KernelLog log = parse_kernel_log(
      "[    1.0] Command line: BOOT_IMAGE=/vmlinuz root=UUID=1234 nvidia-drm.modeset=1\n"
      "[    1.1] usb 1-1: new device\n"
      "[    2.0] nvidia: module verification failed: signature and/or required key missing - "
      "tainting kernel\n"
      "[    2.1] Lockdown: modprobe: unsigned module loading is restricted; see man "
      "kernel_lockdown.7\n"
      "[    2.2] pci 0000:01:00.0: BAR 1: no space for [mem size 0x400000000 64bit pref]\n"
      "[    2.3] nouveau 0000:01:00.0: NVIDIA GA102 (172000a1)\n"
      "[    2.4] input: HDA NVidia HDMI/DP,pcm=3 as /devices/x\n"
      "[    2.5] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)\n"
      "[    2.6] NVRM: requires use of the NVIDIA open kernel modules.\n"
      "[    2.7] audit: type=1400 name=\"/home/u/nvidia\"\n"
      "[    2.5] NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)\n");
  EXPECT_EQ(
      log.lines,
      (std::vector<std::string>{
          "nvidia: module verification failed: signature and/or required key missing - tainting "
          "kernel",
          "Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7",
          "pci 0000:01:00.0: BAR 1: no space for [mem size 0x400000000 64bit pref]",
          "nouveau 0000:01:00.0: NVIDIA GA102 (172000a1)",
          "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)",
          "NVRM: requires use of the NVIDIA open kernel modules."}));
  EXPECT_TRUE(log.xids.empty());
}

TEST(KernelLog, CountsXidsPerDevice) {
  KernelLog log = parse_kernel_log(
      "[1.0] NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off "
      "the bus.\n"
      "[2.0] NVRM: Xid (PCI:0000:01:00): 13, pid=5, first\n"
      "[3.0] NVRM: Xid (PCI:0000:01:00): 13, pid=6, second\n"
      "[4.0] NVRM: Xid (PCI:0000:C1:00): 13, pid=7, other card\n"
      "[5.0] NVRM: Xid (0000:02:00): 31, old form\n"
      "[6.0] NVRM: Xid (PCI:evil\x1b[2J): 1, x\n"
      "[7.0] NVRM: Xid (PCI:0000:01:00): 99999999999, x\n"
      "[8.0] NVRM: Xid (PCI:0000:01:00):");
  ASSERT_EQ(log.xids.size(), 4u);
  EXPECT_EQ(log.xids[0].number, 79u);
  EXPECT_EQ(log.xids[0].pci, "0000:01:00");
  EXPECT_EQ(log.xids[1].number, 13u);
  EXPECT_EQ(log.xids[1].count, 2u);
  EXPECT_EQ(log.xids[1].text, "NVRM: Xid (PCI:0000:01:00): 13, pid=6, second");
  EXPECT_EQ(log.xids[2].pci, "0000:c1:00");
  EXPECT_EQ(log.xids[3].number, 31u);
}

TEST(KernelLog, BoundsAFlood) {
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += "[1.0] NVRM: line " + std::to_string(i) + std::string(1000, 'x') + "\n";
  KernelLog log = parse_kernel_log(text);
  ASSERT_EQ(log.lines.size(), 200u);
  EXPECT_EQ(log.lines.front().substr(0, 12), "NVRM: line 0");
  EXPECT_EQ(log.lines.back().substr(0, 15), "NVRM: line 4999");
  EXPECT_EQ(log.lines.back().size(), 400u);
}

TEST(Mountinfo, ReadsEscapesAndSkipsBrokenLines) {
  std::vector<Mount> mounts = parse_mountinfo(
      "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
      "30 25 0:27 /var/lib/docker/x /etc/ho\\040sts rw shared:1 master:2 - ext4 /dev/sda1 rw\n"
      "broken\n22 27 0:21 / /x rw -\n- - - - - - - - -\n");
  ASSERT_EQ(mounts.size(), 2u);
  EXPECT_EQ(mounts[1].point, "/etc/ho sts");
  EXPECT_EQ(mounts[1].root, "/var/lib/docker/x");
  EXPECT_EQ(mounts[1].type, "ext4");
  EXPECT_EQ(mounts[1].source, "/dev/sda1");
}

TEST(Mountinfo, ReadsTmpfsSizes) {
  EXPECT_EQ(tmpfs_bytes("rw,size=65536k"), 64u << 20);
  EXPECT_EQ(tmpfs_bytes("rw,size=12334460k,nr_inodes=3083615"), 12334460ull << 10);
  EXPECT_EQ(tmpfs_bytes("size=1000"), 1000u);
  EXPECT_EQ(tmpfs_bytes("rw"), 0u);
  EXPECT_EQ(tmpfs_bytes("size=99999999999999999g"), 0u);
  EXPECT_EQ(tmpfs_bytes("size=50%"), 0u);
}

TEST(Cgroup, FindsTheFoldersOfBothVersions) {
  struct Case {
    const char *name, *cgroup, *mountinfo;
    bool is_v2;
    std::vector<std::string> folders;
  } cases[] = {
      {"v2 on a host",
       "0::/user.slice/s.scope\n",
       "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
       true,
       {"/sys/fs/cgroup/user.slice/s.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}},
      {"v2 in a namespace",
       "0::/\n",
       "1 2 0:1 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
       true,
       {"/sys/fs/cgroup"}},
      {"v1 with a private mount",
       "9:memory:/docker/abc\n8:cpu,cpuacct:/docker/abc\n",
       "1 2 0:1 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
       false,
       {"/sys/fs/cgroup/memory"}},
      {"hybrid",
       "9:memory:/a\n0::/b\n",
       "1 2 0:1 / /sys/fs/cgroup/unified rw - cgroup2 c rw\n1 2 0:1 / /sys/fs/cgroup/memory rw - "
       "cgroup c rw,memory\n",
       false,
       {"/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"}},
      {"path outside the mount",
       "0::/../../other\n",
       "1 2 0:1 / /sys/fs/cgroup rw - cgroup2 c rw\n",
       true,
       {"/sys/fs/cgroup"}},
      {"prefix that is no parent",
       "0::/docker/abcd\n",
       "1 2 0:1 /docker/abc /cg rw - cgroup2 c rw\n",
       true,
       {"/cg"}},
      {"nothing mounted", "0::/\n", "1 2 0:1 / / rw - ext4 /dev/sda rw\n", false, {}},
  };
  for (const Case& each : cases) {
    CgroupFolders found =
        find_cgroup_folders(parse_cgroup(each.cgroup), parse_mountinfo(each.mountinfo), "memory");
    EXPECT_EQ(found.is_v2, each.is_v2) << each.name;
    EXPECT_EQ(found.folders, each.folders) << each.name;
  }
}

TEST(ToolkitVersion, ReadsBothFiles) {
  EXPECT_EQ(
      parse_toolkit_json(
          R"({"cuda":{"name":"CUDA SDK","version":"12.4.1"},"cuda_nvcc":{"version":"12.4.131"}})"),
      "12.4.1");
  EXPECT_EQ(parse_toolkit_json(R"({"cuda_nvcc":{"version":"12.4.131"}})"), "12.4.131");
  for (const char* bad : {"", "{", "[]", "{\"cuda\":5}", "{\"cuda\":{\"version\":[]}}",
                          "{\"cuda\":{\"version\":\"x\"}}"}) {
    EXPECT_EQ(parse_toolkit_json(bad), "") << bad;
  }
  EXPECT_EQ(parse_toolkit_text("CUDA Version 10.2.89\n"), "10.2.89");
  EXPECT_EQ(parse_toolkit_text("nothing"), "");
}

TEST(CompatNote, ReadsListsAndSingleValues) {
  std::optional<CompatNote> note =
      parse_compat_note(R"({"CUDA Version":"13.0","Driver":["535",550,{"x":1}],"Device":"sm_90"})");
  ASSERT_TRUE(note);
  EXPECT_EQ(note->cuda, "13.0");
  EXPECT_EQ(note->drivers, (std::vector<std::string>{"535", "550"}));
  EXPECT_EQ(note->devices, (std::vector<std::string>{"sm_90"}));
  EXPECT_FALSE(parse_compat_note("{"));
  EXPECT_FALSE(parse_compat_note("[1]"));
}

TEST(DaemonJson, FindsTheRuntime) {
  Result<DaemonConfig> with = parse_daemon_json(
      R"({"default-runtime":"nvidia","runtimes":{"nvidia":{"path":"nvidia-container-runtime","args":[]}}})",
      "d");
  ASSERT_TRUE(with);
  EXPECT_TRUE(with->has_nvidia_runtime);
  EXPECT_EQ(with->default_runtime, "nvidia");
  EXPECT_FALSE(with->cdi_enabled);
  Result<DaemonConfig> other = parse_daemon_json(
      R"({"runtimes":{"gpu":{"path":"/usr/bin/nvidia-container-runtime"}},"features":{"cdi":true}})",
      "d");
  EXPECT_TRUE(other->has_nvidia_runtime);
  EXPECT_TRUE(other->cdi_enabled);
  EXPECT_FALSE(parse_daemon_json(R"({"runtimes":[1],"features":5})", "d")->has_nvidia_runtime);
  EXPECT_FALSE(parse_daemon_json(" \n", "d")->has_nvidia_runtime);
  EXPECT_FALSE(parse_daemon_json("{\"a\":1e999}", "d"));
  EXPECT_FALSE(parse_daemon_json("[]", "d"));
  Result<DaemonConfig> broken = parse_daemon_json("{\"runtimes\": {,}", "/etc/docker/daemon.json");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().what, "`/etc/docker/daemon.json`: no JSON object (byte 15)");
}

}  // namespace machine_texts_test
}  // namespace cufit::formats
