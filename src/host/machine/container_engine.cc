// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include "formats/system/daemon_json.h"
#include "formats/system/nvidia_version.h"
#include "host/files/file_facts.h"

namespace cufit::host {
namespace {

Fact<std::string> first_present(const Host& host, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (host.exists(path)) return known(path, SourceKind::file, path);
  }
  return missing<std::string>(WhyNot::not_present, SourceKind::file, paths.front());
}

// Snap's Docker has its own settings and cannot use a toolkit outside the snap.
std::string settings_path(const Host& host, const facts::ContainerEngine& engine) {
  if (engine.snap_docker.value_or(false)) return "/var/snap/docker/current/config/daemon.json";
  std::string rootless = host.variable("HOME").value_or("") + "/.config/docker/daemon.json";
  if (!host.exists("/etc/docker/daemon.json") && host.exists(rootless)) return rootless;
  return "/etc/docker/daemon.json";
}

void read_settings(const Host& host, facts::ContainerEngine& engine) {
  const std::string path = settings_path(host, engine);
  if (!engine.docker) {
    engine.runtime_registered =
        missing<bool>(WhyNot::not_present, SourceKind::file, path, "no Docker here");
    engine.default_runtime =
        missing<std::string>(WhyNot::not_present, SourceKind::file, path, "no Docker here");
    return;
  }
  Result<std::string> text = host.read_file(path, 1u << 20);
  if (!text && text.error().code != Code::not_found) {
    engine.runtime_registered = missing_file<bool>(text.error(), path);
    engine.default_runtime = missing_file<std::string>(text.error(), path);
    return;
  }
  Result<formats::DaemonConfig> config =
      formats::parse_daemon_json(text ? *text : std::string(), path);
  if (!config) {
    engine.runtime_registered = missing_file<bool>(config.error(), path);
    engine.default_runtime = missing_file<std::string>(config.error(), path);
    return;
  }
  engine.runtime_registered = known(config->has_nvidia_runtime, SourceKind::file, path);
  // Docker's own default, documented for `dockerd --default-runtime`.
  engine.default_runtime =
      known(config->default_runtime.empty() ? std::string("runc") : config->default_runtime,
            SourceKind::file, path);
}

// dpkg's record; the program would have to be run, and rpm's database is no text.
Fact<std::string> toolkit_version(const Host& host, const facts::ContainerEngine& engine) {
  const char* const k_dpkg = "/var/lib/dpkg/status";
  if (!engine.toolkit)
    return missing<std::string>(WhyNot::not_present, SourceKind::file,
                                engine.toolkit.source.detail);
  const Result<std::string> status = host.read_file(k_dpkg, 64u << 20);
  if (!status) return missing_file<std::string>(status.error(), k_dpkg);
  constexpr std::string_view k_package = "Package: nvidia-container-toolkit\n";
  constexpr std::string_view k_version = "\nVersion: ";
  for (size_t at = status->find(k_package); at != std::string::npos;
       at = status->find(k_package, at + 1)) {
    std::string_view record = std::string_view(*status).substr(at);
    record = record.substr(0, record.find("\n\n"));
    const size_t version = record.find(k_version);
    if (version == std::string_view::npos || !contains(record, " ok installed")) continue;
    std::string_view text = record.substr(version + k_version.size());
    text = text.substr(0, text.find_first_of("\n-"));
    return known(formats::printable(trim(text), 40), SourceKind::file, k_dpkg);
  }
  return missing<std::string>(WhyNot::not_present, SourceKind::file, k_dpkg);
}

// A spec lists the driver's libraries with their versions: ".../libcuda.so.580.95.05".
Fact<std::string> cdi_driver(const Host& host, const std::string& path) {
  constexpr std::string_view k_name = "libcuda.so.";
  const Result<std::string> text = host.read_file(path, 4u << 20);
  if (!text) return missing_file<std::string>(text.error(), path);
  for (size_t at = text->find(k_name); at != std::string::npos; at = text->find(k_name, at + 1)) {
    const size_t start = at + k_name.size();
    const size_t end = text->find_first_not_of("0123456789.", start);
    const std::string version = text->substr(start, end == std::string::npos ? end : end - start);
    if (formats::is_driver_version(version)) return known(version, SourceKind::file, path);
  }
  return missing<std::string>(WhyNot::not_present, SourceKind::file, path);
}

// "kind: nvidia.com/gpu"; the operator's "management.nvidia.com/gpu" is made by its own program.
bool describes_gpus(std::string_view head) {
  constexpr std::string_view k_kind = "nvidia.com/gpu";
  for (size_t at = head.find(k_kind); at != std::string_view::npos;
       at = head.find(k_kind, at + 1)) {
    const size_t end = at + k_kind.size();
    const bool starts = at == 0 || contains(" \"'", std::string_view(&head[at - 1], 1));
    if (starts && (end == head.size() || contains("\"' \r\n", std::string_view(&head[end], 1))))
      return true;
  }
  return false;
}

// Specs of the Container Device Interface that describe NVIDIA devices. The later folder wins where
// two specs name the same device.
void read_cdi(const Host& host, facts::ContainerEngine& engine) {
  for (const char* folder : {"/etc/cdi", "/var/run/cdi"}) {
    Result<std::vector<std::string>> names = host.list(folder);
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!ends_with(name, ".yaml") && !ends_with(name, ".yml") && !ends_with(name, ".json"))
        continue;
      std::string path = std::string(folder) + "/" + name;
      Result<std::string> head = host.read_head(path, 4096);
      if (contains(name, "nvidia") || (head && contains(*head, "nvidia.com/"))) {
        engine.cdi_specs.push_back(formats::printable(path));
        if (!head || !describes_gpus(*head)) continue;
        if (Fact<std::string> driver = cdi_driver(host, path); driver || !engine.cdi_driver)
          engine.cdi_driver = std::move(driver);
      }
    }
  }
}

}  // namespace

void read_container_engine(const Host& host, facts::Facts& facts) {
  facts::ContainerEngine& engine = facts.engine;
  Fact<std::string> snap = first_present(host, {"/snap/docker/current", "/var/snap/docker"});
  engine.docker =
      first_present(host, {"/usr/bin/dockerd", "/usr/local/bin/dockerd", "/usr/sbin/dockerd",
                           "/usr/bin/docker", "/usr/local/bin/docker", "/snap/bin/docker"});
  // A snap beside a packaged Docker is not the one that `docker` means: /snap/bin comes last in
  // PATH.
  bool is_snap = snap && (!engine.docker || starts_with(*engine.docker, "/snap/"));
  engine.snap_docker = known(is_snap, SourceKind::file, snap.source.detail);
  engine.toolkit = first_present(
      host, {"/usr/bin/nvidia-ctk", "/usr/bin/nvidia-container-cli", "/usr/local/bin/nvidia-ctk",
             "/usr/local/nvidia/toolkit/nvidia-ctk", "/usr/bin/nvidia-container-runtime"});
  engine.toolkit_version = toolkit_version(host, engine);
  read_settings(host, engine);
  read_cdi(host, engine);
}

}  // namespace cufit::host
