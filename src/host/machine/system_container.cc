// SPDX-License-Identifier: Apache-2.0
#include "host/machine/system_parts.h"

#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

using formats::Mount;

// Number of the first process-id namespace, fixed by the kernel (PROC_PID_INIT_INO in
// include/linux/proc_ns.h).
constexpr std::string_view k_initial_pid_namespace = "pid:[4026531836]";

Fact<std::string> told(std::string kind, SourceKind source, std::string by) {
  return known(std::move(kind), source, std::move(by));
}

// Apptainer runs with the host's process ids and passes the host's variables on, so it is looked
// for first: what else is seen (a pod's variables) may belong to the machine around it.
Fact<std::string> apptainer(const Host& host) {
  for (const char* name :
       {"APPTAINER_CONTAINER", "APPTAINER_NAME", "SINGULARITY_CONTAINER", "SINGULARITY_NAME"}) {
    if (host.variable(name)) return told("apptainer", SourceKind::env, name);
  }
  if (host.exists("/.singularity.d")) return told("apptainer", SourceKind::file, "/.singularity.d");
  return {};
}

// What an engine bind-mounts over a container's files names the engine by the path on the host.
Fact<std::string> by_mounts(const std::vector<Mount>& mounts) {
  struct Sign {
    const char *part, *kind;
  };
  static constexpr Sign k_signs[] = {
      {"/kubelet/pods/", "kubernetes"},   {"/var/lib/docker/", "docker"},
      {"/docker/containers/", "docker"},  {"/containers/storage/", "podman"},
      {"/overlay-containers/", "podman"}, {"/var/lib/containerd/", "containerd"},
      {"io.containerd.", "containerd"},
  };
  for (const Mount& mount : mounts) {
    bool is_engine_file = mount.point == "/etc/hosts" || mount.point == "/etc/hostname" ||
                          mount.point == "/etc/resolv.conf" ||
                          mount.point == "/dev/termination-log";
    bool is_layered_root = mount.point == "/" && mount.type == "overlay";
    if (!is_engine_file && !is_layered_root) continue;
    for (const Sign& sign : k_signs) {
      if (contains(is_layered_root ? mount.options : mount.root, sign.part)) {
        return told(sign.kind, SourceKind::file, "/proc/self/mountinfo (" + mount.point + ")");
      }
    }
  }
  return {};
}

// "/docker/<id>", "/system.slice/docker-<id>.scope",
// "/kubepods.slice/.../cri-containerd-<id>.scope", "/lxc/name". Without a cgroup namespace only;
// inside one the path is "/". The service of an engine itself
// ("/system.slice/docker.service") is no container.
Fact<std::string> by_cgroup(const Host& host) {
  struct Sign {
    const char *part, *kind;
  };
  static constexpr Sign k_signs[] = {
      {"/kubepods", "kubernetes"},
      {"libpod-", "podman"},
      {"/docker/", "docker"},
      {"/docker-", "docker"},
      {"/cri-containerd-", "containerd"},
      {"/containerd/", "containerd"},
      {"/lxc/", "lxc"},
      {"/lxc.payload", "lxc"},
  };
  for (const char* path : {"/proc/self/cgroup", "/proc/1/cgroup"}) {
    Result<std::string> text = host.read_file(path, 1u << 20);
    if (!text) continue;
    for (const Sign& sign : k_signs) {
      if (contains(*text, sign.part)) return told(sign.kind, SourceKind::file, path);
    }
  }
  return {};
}

// systemd writes what started it (container_interface of systemd): "docker", "podman", "lxc",
// "systemd-nspawn", "wsl". The variable `container` has the same words; "oci" says nothing more
// than that it is one.
Fact<std::string> by_systemd(const Host& host) {
  Fact<std::string> written = line_fact(host, "/run/systemd/container");
  std::string kind = written.value_or("");
  Source source = written.source;
  if (kind.empty()) {
    kind = host.variable("container").value_or("");
    source = {SourceKind::env, "container"};
  }
  if (kind.empty() || kind == "wsl" || kind == "oci" || kind == "none") return {};
  if (starts_with(kind, "lxc")) kind = "lxc";  // "lxc-libvirt"
  return told(formats::printable(kind, 32), source.kind, source.detail);
}

bool is_kubernetes(const Host& host) {
  return host.variable("KUBERNETES_SERVICE_HOST") || host.exists("/var/run/secrets/kubernetes.io");
}

// A filesystem of a whole disk at "/" and no file of an engine mounted over /etc: a machine's own
// tree.
bool has_own_root(const std::vector<Mount>& mounts) {
  const Mount* root = formats::find_mount(mounts, "/");
  if (!root || root->type == "overlay" || !starts_with(root->source, "/dev/")) return false;
  for (const char* point : {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"}) {
    if (formats::find_mount(mounts, point)) return false;
  }
  return true;
}

}  // namespace

void read_container_kind(const Host& host, const std::vector<Mount>& mounts,
                         facts::SystemFacts& system) {
  const char* const k_namespace = "/proc/self/ns/pid";
  Result<std::string> pid_namespace = host.read_link(k_namespace);
  bool is_initial = pid_namespace && *pid_namespace == k_initial_pid_namespace;
  bool is_own_machine = is_initial && has_own_root(mounts);

  Fact<std::string> found = apptainer(host);
  if (!found && is_kubernetes(host)) {
    bool by_variable = host.variable("KUBERNETES_SERVICE_HOST").has_value();
    found = by_variable ? told("kubernetes", SourceKind::env, "KUBERNETES_SERVICE_HOST")
                        : told("kubernetes", SourceKind::file, "/var/run/secrets/kubernetes.io");
  }
  // Virtual machines made from a container image keep these files; the first namespace and a disk
  // as root show it.
  if (!found && !is_own_machine && host.exists("/run/.containerenv")) {
    found = told("podman", SourceKind::file, "/run/.containerenv");
  }
  if (!found && !is_own_machine && host.exists("/.dockerenv"))
    found = told("docker", SourceKind::file, "/.dockerenv");
  if (!found) found = by_systemd(host);
  if (!found) found = by_cgroup(host);
  if (!found) found = by_mounts(mounts);
  if (!found && is_initial)
    found = told("none", SourceKind::file, std::string(k_namespace) + " (the first namespace)");
  if (!found && system.wsl) {
    // WSL 2 gives each distribution its own namespaces; nothing above spoke of a container inside
    // it.
    found = told("none", SourceKind::file, system.wsl.source.detail + " (WSL)");
  }
  if (!found && has_own_root(mounts))
    found = told("none", SourceKind::file, "/proc/self/mountinfo (/ is a disk)");
  system.container =
      found ? found
            : missing<std::string>(WhyNot::not_supported, SourceKind::file, k_namespace,
                                   "no sign of a known container, and no proof of none");
}

}  // namespace cufit::host
