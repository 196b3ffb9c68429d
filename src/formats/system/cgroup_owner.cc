// SPDX-License-Identifier: Apache-2.0
#include "formats/system/cgroup_owner.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/ascii.h"
#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "formats/system/cgroup.h"

namespace cufit::formats {
namespace {

// v1 has some 14 hierarchies, a path is at most a page (PATH_MAX); containers nest a few deep, each with some ten parts.
constexpr size_t k_most_text_bytes = 1u << 16;
constexpr size_t k_most_lines = 64;
constexpr size_t k_most_path_parts = 128;
constexpr size_t k_most_name_bytes = 128;

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); }

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+';
  });
}

struct CgroupContainer {
  std::string runtime, id, name;
  bool below_its_unit =
      false;  // podman --cgroups=split, quadlet: the unit is the user's own service
};

// "docker-ID.scope" of systemd's driver, "crio-ID" of cgroupfs. The monitors of cri-o and podman, "crio-conmon-ID.scope" and
// "libpod-conmon-ID.scope", are no containers: "conmon-ID" is no id. Seen: docker and cri-o in the tests of neuvector/neuvector
// (share/system/cgroup_test.go); podman's "libpod-payload-ID" in `systemctl status` of quadlets, "libpod-ID.scope/container"
// in the kernel's log of a rootless one.
std::optional<CgroupContainer> by_prefix(std::string_view part) {
  struct Prefix {
    std::string_view text, runtime;
  };
  static constexpr Prefix k_prefixes[] = {
      {"docker-", "docker"},      {"cri-containerd-", "containerd"},
      {"nerdctl-", "containerd"}, {"libpod-payload-", "podman"},
      {"libpod-", "podman"},      {"crio-", "cri-o"},
  };
  if (ends_with(part, ".scope")) part.remove_suffix(6);
  for (const Prefix& each : k_prefixes) {
    if (!starts_with(part, each.text) || !is_container_id(part.substr(each.text.size()))) continue;
    return CgroupContainer{std::string(each.runtime),
                           std::string(part.substr(each.text.size())),
                           {},
                           each.text == "libpod-payload-"};
  }
  return std::nullopt;
}

// systemd writes bytes that a unit's name may not have, and dashes inside its parts, as "\x2d"; a name that looks like a file
// of the kernel ("cpu.service") gets "_" in front (cg_escape of systemd's basic/cgroup-util.c).
std::string unit_name(std::string_view part) {
  if (starts_with(part, "_")) part.remove_prefix(1);
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    std::optional<uint64_t> code;
    if (part[i] == '\\' && i + 3 < part.size() && part[i + 1] == 'x')
      code = parse_uint(part.substr(i + 2, 2), 16);
    out += code ? static_cast<char>(*code) : part[i];
    if (code) i += 3;
  }
  return printable(out, k_most_name_bytes);
}

// machine-NAME.scope of systemd-machined: nspawn, libvirt's LXC ("lxc-12-name"), virtual machines ("qemu-1-name"), whose
// processes are no container's.
std::optional<CgroupContainer> by_machine(std::string_view part, std::string_view parent) {
  std::string name;
  if (starts_with(part, "systemd-nspawn@") && ends_with(part, ".service"))
    name = unit_name(part.substr(15, part.size() - 15 - 8));
  else if (parent == "machine.slice" && starts_with(part, "machine-") && ends_with(part, ".scope"))
    name = unit_name(part.substr(8, part.size() - 8 - 6));
  if (name.empty() || starts_with(name, "qemu-")) return std::nullopt;
  if (!starts_with(name, "lxc-")) return CgroupContainer{"nspawn", {}, name};
  const size_t dash = name.find('-', 4);
  return CgroupContainer{"lxc", {}, dash == std::string::npos ? name : name.substr(dash + 1)};
}

// "lxc.payload.NAME" of LXC 4 and later (also lxd, incus), "lxc.payload/NAME", "lxc/NAME" before. "lxc.monitor.NAME" is the
// program that started it.
std::optional<CgroupContainer> by_lxc(std::string_view part, std::string_view parent) {
  std::string_view name;
  if (starts_with(part, "lxc.payload."))
    name = part.substr(12);
  else if (parent == "lxc" || parent == "lxc.payload")
    name = part;
  if (name.empty()) return std::nullopt;
  return CgroupContainer{"lxc", {}, printable(name, k_most_name_bytes)};
}

// A UID as the API server gives it, or the hash of a static pod's file.
std::string pod_uid_of(std::string_view text) {
  std::string uid(text);
  std::replace(uid.begin(), uid.end(), '_', '-');  // dashes of a slice's name are levels of it
  const bool known =
      (uid.size() == 36 || uid.size() == 32) &&
      std::all_of(uid.begin(), uid.end(), [](char c) { return is_hex(c) || c == '-'; });
  return known ? uid : std::string();
}

// What one path says, and how deep its innermost container lies.
class PathOwner {
 public:
  explicit PathOwner(std::string_view path) {
    if (ends_with(path, " (deleted)")) path.remove_suffix(10);  // cgroup_show of a removed folder
    size_t depth = 0;
    for (const std::string_view part : split(path, '/')) {
      if (part.empty() || part == ".." || ++depth > k_most_path_parts) continue;
      look_at(part, depth);
      parent_ = part;
    }
  }

  CgroupOwner owner;
  size_t container_depth = 0;

 private:
  void look_at(std::string_view part, size_t depth) {
    // containerd without SystemdCgroup below a kubelet with it: "kubepods-podUID.slice:cri-containerd:ID". Seen in
    // ContainerResourceTest of opentelemetry-java, from Kubernetes 1.24.
    if (const size_t colon = part.find(':'); colon != std::string_view::npos) {
      look_for_pod(part.substr(0, colon));
      const size_t last = part.rfind(':');
      std::string named = std::string(part.substr(colon + 1, last - colon - 1)) + "-";
      if (last > colon)
        take_container(by_prefix(named + std::string(part.substr(last + 1))), depth);
      return;
    }
    look_for_pod(part);
    if (look_for_slurm(part)) return;
    if (take_container(container_of(part), depth)) return;
    // Its manager's unit is taken too where nothing follows: user@1000.service.
    if (ends_with(part, ".service") || ends_with(part, ".scope")) owner.unit = unit_name(part);
  }

  std::optional<CgroupContainer> container_of(std::string_view part) const {
    if (auto found = by_prefix(part)) return found;
    if (auto found = by_machine(part, parent_)) return found;
    if (auto found = by_lxc(part, parent_)) return found;
    if (!is_container_id(part)) return std::nullopt;
    // docker/ID of its cgroupfs driver, also where it runs in another container.
    return CgroupContainer{parent_ == "docker" ? "docker" : "", std::string(part), {}};
  }

  bool take_container(const std::optional<CgroupContainer>& found, size_t depth) {
    if (!found) return false;
    owner.runtime = found->runtime;
    owner.container = found->id;
    owner.container_name = found->name;
    // The engine's service above it (containerd.service, user@1000.service) says nothing of the job.
    if (!found->below_its_unit) owner.unit.clear();
    container_depth = depth;
    return true;
  }

  // kubepods-burstable-podUID.slice, in kind kubelet-kubepods-...; kubepods/burstable/podUID of the cgroupfs driver.
  void look_for_pod(std::string_view part) {
    if (part == "kubepods" || starts_with(part, "kubepods.")) in_kubepods_ = true;
    std::string uid;
    if (ends_with(part, ".slice") && contains(part, "kubepods-")) {
      part.remove_suffix(6);
      if (const size_t at = part.rfind("-pod"); at != std::string_view::npos)
        uid = pod_uid_of(part.substr(at + 4));
    } else if (in_kubepods_ && starts_with(part, "pod")) {
      uid = pod_uid_of(part.substr(3));
    }
    if (!uid.empty()) owner.pod_uid = uid;
  }

  // v1: slurm/uid_1000/job_123/step_0/task_0, "slurm_NODE" where several slurmd run; v2: slurmstepd.scope and
  // NODE_slurmstepd.scope/job_123/step_batch/user/task_special. Seen on nodes of Fox (v2 in 2025, v1 before) in the tests of
  // NordicHPC/sonar (src/slurm.rs); the name with a node in the readme of jobstats_cgroup_exporter.
  bool look_for_slurm(std::string_view part) {
    if (part == "slurm" || starts_with(part, "slurm_") || ends_with(part, "slurmstepd.scope") ||
        (starts_with(part, "slurmstepd_") && ends_with(part, ".scope"))) {
      in_slurm_ = true;
      return true;
    }
    if (!in_slurm_) return false;
    if (starts_with(part, "job_") && is_word(part.substr(4))) {
      owner.slurm_job = std::string(part.substr(4));
      owner.slurm_step.clear();
    } else if (starts_with(part, "step_") && is_word(part.substr(5)) && !owner.slurm_job.empty()) {
      owner.slurm_step = slurm_step_name(part.substr(5));
    } else {
      return false;
    }
    return true;
  }

  std::string_view parent_;
  bool in_kubepods_ = false, in_slurm_ = false;
};

bool is_of_systemd(const CgroupLine& line) {
  return line.controllers.empty() || std::find(line.controllers.begin(), line.controllers.end(),
                                               "name=systemd") != line.controllers.end();
}

}  // namespace

bool is_container_id(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), is_hex);
}

// Slurm's slurm.h: SLURM_INTERACTIVE_STEP 0xfffffffa, SLURM_BATCH_SCRIPT 0xfffffffb, SLURM_EXTERN_CONT 0xfffffffc.
std::string slurm_step_name(std::string_view number) {
  switch (parse_uint(number).value_or(0)) {
    case 0xfffffffa:
      return "interactive";
    case 0xfffffffb:
      return "batch";
    case 0xfffffffc:
      return "extern";
    default:
      return is_word(number) ? std::string(number) : std::string();
  }
}

// v1: a controller that an engine or Slurm does not use has the path of the service around it, and where v1 and v2 are both
// mounted the v2 line may name containerd.service alone. So the line with the innermost container speaks of containers, the
// one that knows a step of jobs, and systemd's own of units.
CgroupOwner parse_cgroup_owner(std::string_view text) {
  CgroupOwner out;
  size_t depth = 0, lines = 0;
  for (const CgroupLine& line : parse_cgroup(text.substr(0, k_most_text_bytes))) {
    if (++lines > k_most_lines) break;
    PathOwner path(line.path);
    CgroupOwner& said = path.owner;
    if (path.container_depth > depth) {
      depth = path.container_depth;
      out.runtime = std::move(said.runtime);
      out.container = std::move(said.container);
      out.container_name = std::move(said.container_name);
    }
    if (out.pod_uid.empty()) out.pod_uid = std::move(said.pod_uid);
    if (out.slurm_job.empty() || (out.slurm_step.empty() && !said.slurm_step.empty())) {
      out.slurm_job = std::move(said.slurm_job);
      out.slurm_step = std::move(said.slurm_step);
    }
    if (out.unit.empty() && is_of_systemd(line)) out.unit = std::move(said.unit);
  }
  const bool is_engine = out.unit == "containerd.service" || out.unit == "docker.service" ||
                         out.unit == "kubelet.service" || out.unit == "crio.service";
  if (depth > 0 && is_engine) out.unit.clear();
  if (!out.slurm_job.empty() && starts_with(out.unit, "slurmd")) out.unit.clear();
  return out;
}

}  // namespace cufit::formats
