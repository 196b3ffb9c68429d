// SPDX-License-Identifier: Apache-2.0
#include "host/process/owner_names.h"

#include <chrono>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/number.h"
#include "formats/prose/printable.h"
#include "formats/system/daemon_json.h"

namespace cufit::host {
namespace {

constexpr double k_renew_seconds = 30;
constexpr double k_boot_seconds =
    600;  // /proc/stat takes milliseconds on a machine with many interrupts
constexpr double k_unknown_user_seconds = 600;  // a question to a directory server
constexpr double k_unseen_seconds = 120;
constexpr size_t k_many_kept = 256, k_most_kept = 4096, k_most_names = 16384;
constexpr size_t k_record_bytes = 1u << 20;  // a config.json with long lists of mounts has 100 KiB

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// "name:x:1000:1000:...": the first of a number, as getpwuid has it.
std::map<uint32_t, std::string> read_passwd(const Host& host) {
  std::map<uint32_t, std::string> out;
  const Result<std::string> text = host.read_file("/etc/passwd", 4u << 20);
  if (!text) return out;
  for (const std::string_view line : split_lines(*text)) {
    const std::vector<std::string_view> fields = split(line, ':');
    const std::optional<uint64_t> uid = fields.size() < 4 ? std::nullopt : parse_uint(fields[2]);
    if (uid && *uid <= UINT32_MAX && !fields[0].empty())
      out.emplace(static_cast<uint32_t>(*uid), formats::printable(fields[0], 64));
  }
  return out;
}

std::map<std::string, formats::ContainerNames> read_pod_folders(const Host& host) {
  std::map<std::string, formats::ContainerNames> out;
  const auto names = host.list("/var/log/pods");
  if (!names) return out;
  for (const std::string& name : *names) {
    if (out.size() >= k_most_names) break;
    formats::ContainerNames pod = formats::parse_pod_log_folder(name);
    if (!pod.pod_uid.empty()) out[pod.pod_uid] = pod;
  }
  return out;
}

std::map<std::string, formats::ContainerNames> read_container_links(const Host& host) {
  std::map<std::string, formats::ContainerNames> out;
  const auto names = host.list("/var/log/containers");
  if (!names) return out;
  for (const std::string& name : *names) {
    if (out.size() >= k_most_names) break;
    std::string id;
    formats::ContainerNames container = formats::parse_container_log_link(name, id);
    if (!id.empty()) out[id] = container;
  }
  return out;
}

// The folders in which engines of this user keep theirs. Other users' homes are not looked into: one on a file server that
// does not answer would hold the sampler up.
std::vector<std::string> data_folders(const Host& host, const std::string& of_root,
                                      const std::string& of_user) {
  std::vector<std::string> out = {of_root};
  std::string data = host.variable("XDG_DATA_HOME").value_or("");
  if (const auto home = host.variable("HOME"); data.empty() && home && starts_with(*home, "/"))
    data = *home + "/.local/share";
  if (!data.empty()) out.push_back(data + of_user);
  return out;
}

// Machines with GPUs have their images on a larger disk: "data-root".
std::string docker_root(const Host& host) {
  const std::string path = "/etc/docker/daemon.json";
  const auto text = host.read_file(path, k_record_bytes);
  if (!text) return "/var/lib/docker";
  const auto config = formats::parse_daemon_json(*text, path);
  return config && starts_with(config->data_root, "/") ? config->data_root : "/var/lib/docker";
}

bool names_docker(const Host& host, const std::string& id, formats::ContainerNames& names) {
  for (const std::string& folder : data_folders(host, docker_root(host), "/docker")) {
    const auto text =
        host.read_file(format("{}/containers/{}/config.v2.json", folder, id), k_record_bytes);
    if (!text) continue;
    names = formats::parse_docker_config(*text);
    return true;
  }
  return false;
}

// Bundles of containerd's shims: of the kubelet's containers, of nerdctl's.
bool names_containerd(const Host& host, const std::string& id, formats::ContainerNames& names) {
  for (const char* space : {"k8s.io", "default"}) {
    const auto text = host.read_file(
        format("/run/containerd/io.containerd.runtime.v2.task/{}/{}/config.json", space, id),
        k_record_bytes);
    if (!text) continue;
    names = formats::parse_oci_config(*text);
    return true;
  }
  return false;
}

// podman and cri-o keep theirs in the same storage; those of `--rm` in a list of their own.
bool names_storage(const Host& host, const std::string& id, formats::ContainerNames& names) {
  const std::string name = "/containers/storage/overlay-containers";
  for (const std::string& folder : data_folders(host, "/var/lib" + name, name)) {
    if (const auto text =
            host.read_file(format("{}/{}/userdata/config.json", folder, id), k_record_bytes))
      names = formats::parse_oci_config(*text);
    for (const char* list : {"containers.json", "volatile-containers.json"}) {
      if (!names.container.empty()) return true;
      const auto text = host.read_file(folder + "/" + list, 4 * k_record_bytes);
      if (!text) continue;
      const auto all = formats::parse_storage_containers(*text);
      if (const auto found = all.find(id); found != all.end()) names.container = found->second;
    }
  }
  return !names.container.empty() || !names.pod.empty();
}

void fill_empty(std::string& text, const std::string& with) {
  if (text.empty()) text = with;
}

}  // namespace

OwnerNames::OwnerNames() : OwnerNames(Sources{steady_seconds, name_service()}) {}
OwnerNames::OwnerNames(Sources sources) : sources_(std::move(sources)) {}

KeptOwner* OwnerNames::kept(uint32_t pid) {
  const auto found = kept_.find(pid);
  return found == kept_.end() ? nullptr : &found->second;
}

facts::ProcessOwner& OwnerNames::keep(uint32_t pid, KeptOwner owner) {
  if (kept_.size() >= k_many_kept) {
    for (auto each = kept_.begin(); each != kept_.end();)
      each = now() - each->second.seen_at > k_unseen_seconds ? kept_.erase(each) : ++each;
    if (kept_.size() >= k_most_kept) kept_.clear();
  }
  return (kept_[pid] = std::move(owner)).owner;
}

bool OwnerNames::is_due(double& last) const {
  if (now() - last < k_renew_seconds) return false;
  last = now();
  return true;
}

void OwnerNames::name(const Host& host, facts::ProcessOwner& owner) {
  if (owner.uid && owner.user.empty()) owner.user = user(host, *owner.uid);
  if (!owner.container.empty() && (owner.container_name.empty() || owner.runtime.empty())) {
    const ContainerEntry& found = container(host, owner);
    fill_empty(owner.runtime, found.runtime);
    fill_empty(owner.container_name, found.names.container);
    fill_empty(owner.pod, found.names.pod);
    fill_empty(owner.pod_namespace, found.names.pod_namespace);
    fill_empty(owner.pod_uid, found.names.pod_uid);
  }
  if (owner.pod_uid.empty() || !owner.pod.empty()) return;
  if (const formats::ContainerNames* found = pod(host, owner.pod_uid)) {
    owner.pod = found->pod;
    owner.pod_namespace = found->pod_namespace;
  }
}

std::string OwnerNames::user(const Host& host, uint32_t uid) {
  if (const auto known = users_.find(uid); known != users_.end()) return known->second;
  if (passwd_.count(uid) == 0 && is_due(passwd_read_)) passwd_ = read_passwd(host);
  if (const auto found = passwd_.find(uid); found != passwd_.end()) return found->second;
  if (!sources_.user) return {};
  if (const auto asked = unknown_users_.find(uid);
      asked != unknown_users_.end() && now() - asked->second < k_unknown_user_seconds)
    return {};
  const std::optional<std::string> name = sources_.user(uid);
  if (!name) return {};
  if (users_.size() + unknown_users_.size() >= k_most_names) {
    users_.clear();
    unknown_users_.clear();
  }
  if (name->empty())
    unknown_users_[uid] = now();
  else
    users_[uid] = formats::printable(*name, 64);
  return formats::printable(*name, 64);
}

const OwnerNames::ContainerEntry& OwnerNames::container(const Host& host,
                                                        const facts::ProcessOwner& owner) {
  const std::string& id = owner.container;
  const auto known = containers_.find(id);
  if (known != containers_.end() &&
      (!known->second.names.container.empty() || now() - known->second.looked_at < k_renew_seconds))
    return known->second;
  if (containers_.size() >= k_most_names) containers_.clear();
  ContainerEntry& entry = containers_[id];
  entry.looked_at = now();
  if (logs_.count(id) == 0 && is_due(logs_read_)) logs_ = read_container_links(host);
  if (const auto found = logs_.find(id); found != logs_.end()) entry.names = found->second;
  const std::string& runtime = owner.runtime;
  formats::ContainerNames of_engine;
  if ((runtime.empty() || runtime == "docker") && names_docker(host, id, of_engine))
    entry.runtime = "docker";
  else if ((runtime.empty() || runtime == "containerd") && names_containerd(host, id, of_engine))
    entry.runtime = "containerd";
  else if (runtime == "podman" || runtime == "cri-o")
    names_storage(host, id, of_engine);
  fill_empty(entry.names.container, of_engine.container);
  fill_empty(entry.names.pod, of_engine.pod);
  fill_empty(entry.names.pod_namespace, of_engine.pod_namespace);
  fill_empty(entry.names.pod_uid, of_engine.pod_uid);
  return entry;
}

const formats::ContainerNames* OwnerNames::pod(const Host& host, const std::string& uid) {
  if (pods_.count(uid) == 0 && is_due(pods_read_)) pods_ = read_pod_folders(host);
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second;
}

std::optional<double> OwnerNames::boot_seconds(const Host& host) {
  if (boot_ && now() - boot_read_ < k_boot_seconds) return boot_;
  boot_read_ = now();
  boot_.reset();
  const Result<std::string> text = host.read_file("/proc/stat", 4u << 20);
  if (!text) return boot_;
  for (const std::string_view line : split_lines(*text)) {
    if (!starts_with(line, "btime ")) continue;
    if (const auto seconds = parse_uint(trim(line.substr(6))))
      boot_ = static_cast<double>(*seconds);
  }
  return boot_;
}

}  // namespace cufit::host
