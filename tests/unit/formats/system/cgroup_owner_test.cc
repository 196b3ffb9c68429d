// SPDX-License-Identifier: Apache-2.0
// Lines as machines have them; where one was seen stands beside it (a repository on GitHub and its file).
#include "formats/system/cgroup_owner.h"

#include <gtest/gtest.h>

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace cgroup_owner_test {

const std::string k_outer = "fbc411e743aa89de421746b3fc92e4fa475d0f2dc92967fb39c2f78574799701";
const std::string k_inner = "e0d51863af3b89d990370749541ea926418346f6f1c92c255e4862f6a1c04d80";
const std::string k_uid = "5f413373-db04-4240-a645-993a3fbcffc3";

// runtime, container or its name, pod, job, step, unit; "-" for none.
std::string said(const std::string& text) {
  const CgroupOwner owner = parse_cgroup_owner(text);
  const auto shown = [](const std::string& part) { return part.empty() ? "-" : part; };
  EXPECT_TRUE(owner.container.empty() || owner.container_name.empty());
  return join(
      {shown(owner.runtime), shown(owner.container + owner.container_name), shown(owner.pod_uid),
       shown(owner.slurm_job), shown(owner.slurm_step), shown(owner.unit)},
      " ");
}

TEST(CgroupOwner, Containers) {
  const std::string pod_slice =
      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod5f413373_db04_4240_a645_"
      "993a3fbcffc3.slice";
  const std::string pod = " " + k_uid + " - - -";
  const std::pair<std::string, std::string> cases[] = {
      // docker: systemd's driver (neuvector, share/system/cgroup_test.go), cgroupfs, a parent of --cgroup-parent.
      {"0::/system.slice/docker-" + k_outer + ".scope\n", "docker " + k_outer + " - - - -"},
      {"12:pids:/docker/" + k_outer + "\n1:name=systemd:/docker/" + k_outer + "\n",
       "docker " + k_outer + " - - - -"},
      {"0::/actions_job/" + k_outer + "\n", "- " + k_outer + " - - - -"},
      {"10:net_prio:/" + k_outer + "\n", "- " + k_outer + " - - - -"},
      // Rootless.
      {"0::/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" + k_outer + ".scope",
       "docker " + k_outer + " - - - -"},
      // In docker, in a cgroup namespace of its neighbour.
      {"0::/docker/" + k_outer + "/docker/" + k_inner + "\n", "docker " + k_inner + " - - - -"},
      {"0::/../docker-" + k_outer + ".scope\n", "docker " + k_outer + " - - - -"},
      {"0::/system.slice/docker-" + k_outer + ".scope (deleted)\n",
       "docker " + k_outer + " - - - -"},
      // v1 and v2 at once: v2's line is the engine's.
      {"3:devices:/docker/" + k_outer + "\n0::/system.slice/containerd.service\n",
       "docker " + k_outer + " - - - -"},
      // Kubernetes: containerd, cri-o with conmon's "/container", cgroupfs, static pod.
      {"0::" + pod_slice + "/cri-containerd-" + k_inner + ".scope\n",
       "containerd " + k_inner + pod},
      {"0::" + pod_slice + "/crio-" + k_inner + ".scope/container\n", "cri-o " + k_inner + pod},
      {"0::" + pod_slice + "/crio-conmon-" + k_inner + ".scope\n",
       "- - " + k_uid + " - - crio-conmon-" + k_inner + ".scope"},
      {"4:memory:/kubepods/burstable/pod" + k_uid + "/" + k_inner + "\n", "- " + k_inner + pod},
      {"4:memory:/kubepods/pod" + k_uid + "/crio-" + k_inner + "\n", "cri-o " + k_inner + pod},
      {"0::/kubepods.slice/kubepods-pod87a18a64b74a454ab10ba4a36059d0a3.slice/docker-" + k_inner +
           ".scope",
       "docker " + k_inner + " 87a18a64b74a454ab10ba4a36059d0a3 - - -"},
      // opentelemetry-java, ContainerResourceTest.
      {"11:devices:/system.slice/containerd.service/kubepods-pod5f413373_db04_4240_a645_"
       "993a3fbcffc3.slice:cri-containerd:" +
           k_inner,
       "containerd " + k_inner + pod},
      {"1:name=systemd:/system.slice/containerd.service/kubepods-pod5f413373_db04_4240_a645_"
       "993a3fbcffc3.slice:cri-containerd:" +
           k_inner,
       "containerd " + k_inner + pod},
      // kind: the kubelet runs in a docker container.
      {"0::/system.slice/docker-" + k_outer +
           ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
           "kubelet-kubepods-besteffort-pod5f413373_db04_4240_a645_993a3fbcffc3.slice/"
           "cri-containerd-" +
           k_inner + ".scope\n",
       "containerd " + k_inner + pod},
      // docker in a pod: the pod stays, the container is docker's.
      {"0::" + pod_slice + "/cri-containerd-" + k_outer + ".scope/docker/" + k_inner,
       "docker " + k_inner + pod},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(said(text), wanted) << text;
}

TEST(CgroupOwner, ContainersOfPodmanAndMachines) {
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";
  const std::pair<std::string, std::string> cases[] = {
      {"0::/machine.slice/libpod-" + k_outer + ".scope\n", "podman " + k_outer + " - - - -"},
      {"0::" + user + "/user.slice/libpod-" + k_outer + ".scope/container\n",
       "podman " + k_outer + " - - - -"},
      {"0::/libpod_parent/libpod-" + k_outer, "podman " + k_outer + " - - - -"},
      // Quadlets: the unit is the user's own.
      {"0::" + user + "/app.slice/train.service/libpod-payload-" + k_outer,
       "podman " + k_outer + " - - - train.service"},
      {"0::/machine.slice/libpod-conmon-" + k_outer + ".scope",
       "- - - - - libpod-conmon-" + k_outer + ".scope"},
      {"0::/system.slice/nerdctl-" + k_outer + ".scope", "containerd " + k_outer + " - - - -"},
      // LXC, lxd and incus, Proxmox; the monitor is no container.
      {"0::/lxc.payload.web/system.slice/train.service\n", "lxc web - - - train.service"},
      {"1:name=systemd:/lxc/101/ns/init.scope\n", "lxc 101 - - - init.scope"},
      {"0::/lxc.monitor.web\n", "- - - - - -"},
      {"0::/machine.slice/machine-my\\x2dbox.scope/payload/init.scope\n",
       "nspawn my-box - - - init.scope"},
      {"0::/machine.slice/systemd-nspawn@web.service/payload\n", "nspawn web - - - -"},
      {"0::/machine.slice/machine-lxc\\x2d1234\\x2dweb.scope\n", "lxc web - - - -"},
      {"0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope\n", "- - - - - machine-qemu-1-vm.scope"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(said(text), wanted) << text;
}

TEST(CgroupOwner, JobsOfSlurm) {
  const std::pair<std::string, std::string> cases[] = {
      // NordicHPC/sonar, src/slurm.rs: a node of Fox in 2025, and before.
      {"0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n", "- - - 1392969 0 -"},
      {"10:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n",
       "- - - 280678 interactive -"},
      // Several slurmd on a node.
      {"0::/system.slice/gx10-ac12_slurmstepd.scope/job_12/step_batch/user/task_0\n",
       "- - - 12 batch -"},
      {"0::/system.slice/slurmstepd_node1.scope/job_12/step_extern/user/task_special\n",
       "- - - 12 extern -"},
      {"4:memory:/slurm_node1/uid_0/job_7/step_4294967291\n", "- - - 7 batch -"},
      // One controller has the step, one the job alone, systemd's has the daemon.
      {"9:cpuset:/slurm/uid_1000/job_7\n4:memory:/slurm/uid_1000/job_7/step_2/task_0\n"
       "1:name=systemd:/system.slice/slurmd.service\n",
       "- - - 7 2 -"},
      // slurmstepd itself, and folders that look like a job's elsewhere.
      {"0::/system.slice/slurmstepd.scope/system\n", "- - - - - -"},
      {"0::/user.slice/job_7/step_1\n", "- - - - - -"},
      {"0::/system.slice/slurmstepd.scope/job_7;rm/step_1\n", "- - - - - -"},
      // podman in a job.
      {"0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0/libpod-" + k_outer,
       "podman " + k_outer + " - 7 0 -"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(said(text), wanted) << text;
  EXPECT_EQ(slurm_step_name("4294967290"), "interactive");
  EXPECT_EQ(slurm_step_name("4294967292"), "extern");
  EXPECT_EQ(slurm_step_name("3"), "3");
  EXPECT_EQ(slurm_step_name("3 4"), "");
}

TEST(CgroupOwner, UnitsOfSystemd) {
  const std::string user = "/user.slice/user-1000.slice";
  const std::pair<std::string, std::string> cases[] = {
      {"0::/system.slice/train.service\n", "train.service"},
      {"0::/system.slice/system-train.slice/train@a\\x2db.service\n", "train@a-b.service"},
      {"0::" + user + "/session-3.scope\n", "session-3.scope"},
      {"0::" + user + "/user@1000.service/app.slice/app-gnome-my\\x2dide-812.scope\n",
       "app-gnome-my-ide-812.scope"},
      {"0::" + user + "/user@1000.service\n", "user@1000.service"},
      {"0::/init.scope\n", "init.scope"},
      {"0::/system.slice/_cpu.service\n", "cpu.service"},
      {"5:cpu:/\n1:name=systemd:/system.slice/train.service\n0::/\n", "train.service"},
      // A controller's folder is no unit of systemd.
      {"5:cpu:/a.service\n", "-"},
      {"0::/\n", "-"},
      {"", "-"},
  };
  for (const auto& [text, wanted] : cases) EXPECT_EQ(said(text), "- - - - - " + wanted) << text;
}

// Whoever may make cgroups gives them names.
TEST(CgroupOwner, HostileNamesStaySmallAndPrintable) {
  const CgroupOwner escaped = parse_cgroup_owner(
      "0::/machine.slice/machine-a\\x1b[2J\\x0a\\xff.scope/x\\x1b]0;\\x07.service\n");
  EXPECT_EQ(escaped.container_name, "a?[2J??");
  EXPECT_EQ(escaped.unit, "x?]0;?.service");
  const CgroupOwner raw = parse_cgroup_owner("0::/lxc.payload.a\x1b[31m\xe2\x80\xaez\n");
  EXPECT_EQ(raw.container_name, "a?[31m?z");
  EXPECT_EQ(parse_cgroup_owner("0::/a\\x2\\x.service").unit, "a\\x2\\x.service");
  EXPECT_EQ(parse_cgroup_owner("0::/lxc.payload." + std::string(5000, 'a')).container_name.size(),
            128u);
  // Not ids: a digit too few, a capital letter, a name that begins as one.
  for (const std::string& id : {k_outer.substr(1), "F" + k_outer.substr(1), k_outer + "0"})
    EXPECT_EQ(said("0::/system.slice/docker-" + id + ".scope").substr(0, 4), "- - ") << id;
  EXPECT_EQ(said("0::/kubepods/podnot-a-uid/x"), "- - - - - -");
  // A path of parts without end, lines without end.
  std::string deep = "0::", lines;
  for (int i = 0; i < 20000; ++i) deep += "/a";
  EXPECT_EQ(said(deep + "/docker/" + k_outer), "- - - - - -");
  for (int i = 0; i < 10000; ++i) lines += "0::/b\n";
  EXPECT_EQ(said(lines + "0::/docker/" + k_outer), "- - - - - -");
}

}  // namespace cgroup_owner_test
}  // namespace cufit::formats
