// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include "formats/system/daemon_json.h"
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

// Specs of the Container Device Interface that describe NVIDIA devices ("kind: nvidia.com/gpu").
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
  read_settings(host, engine);
  read_cdi(host, engine);
}

}  // namespace cufit::host
