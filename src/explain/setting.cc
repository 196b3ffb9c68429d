// SPDX-License-Identifier: Apache-2.0
#include "explain/setting.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/format.h"

namespace cufit::explain {
namespace {

using Engine = Setting::Engine;
using System = Setting::System;

constexpr size_t k_setting_longest_line = 2048;

RE2::Options any_case() {
  RE2::Options options;
  options.set_case_sensitive(false);
  options.set_log_errors(false);
  return options;
}

// How many lines speak of something; one that says that it does not take part is none of them.
size_t count(const std::vector<std::string>& lines, const char* pattern) {
  const RE2 wanted(pattern, any_case());
  static const RE2 denied(
      R"((?:\bno\b|\bnot\b|\bwithout|instead of|outside(?: of)?|\bisn.t|没有?用?|不用|不是|未用|非) ?(?:in |using |use |running in |an? |the |any )*(?:docker|podman|containers?|kubernetes|k8s|conda|wsl2?|windows)\b)",
      any_case());
  return static_cast<size_t>(
      std::count_if(lines.begin(), lines.end(), [&](const std::string& line) {
        return RE2::PartialMatch(line, wanted) && !RE2::PartialMatch(line, denied);
      }));
}

Engine read_engine(const std::vector<std::string>& lines) {
  const size_t kubernetes = count(
      lines,
      R"(\bkubectl\b|\bkubelet\b|\bkubernetes\b|\bk8s\b|microk8s|\bk3s\b|\bpods?/|\bpods?\b.{0,40}(?:Pending|CrashLoop|Running|Evicted)|daemonset|CrashLoopBackOff|FailedScheduling|runtimeClass|gpu-operator|device[- ]plugin|openshift|\bEKS\b|\bGKE\b|nvidia\.com/gpu: |Insufficient nvidia\.com|kind: (?:Pod|Deployment|Job)|helm (?:install|upgrade)|resourceclaim)");
  if (count(lines, R"(Emulate Docker CLI using podman|podman-docker)") > 0) return Engine::podman;
  const size_t podman = count(lines, R"(\bpodman\b|\bbuildah\b|quadlet|\bcrun\b)");
  const size_t compose =
      count(lines, R"(docker[- ]compose\b|compose\.ya?ml|^services:|\bcompose file\b)");
  const size_t docker = count(lines, R"(\bdocker\b|dockerd|Error response from daemon)");
  const size_t containerd =
      count(lines, R"(\bnerdctl\b|\bctr (?:-n \S+ )?run\b|\bcontainerd\b|\bcrictl\b)");
  // "pod" is what RunPod calls a rented container, which has no kubectl.
  const bool pods = podman == 0 && count(lines, R"(\bpods?\b)") > 0 &&
                    count(lines, R"(\brunpod|run\.pod|vast\.ai|autodl)") == 0;
  if (kubernetes > 0 || pods) return Engine::kubernetes;
  if (count(lines, R"(\bapptainer\b|\bsingularity\b)") > 0) return Engine::apptainer;
  // What dockerd alone prints; a text that says in the same breath that podman works is about docker.
  static const RE2 dockerd("could not select device driver|Error response from daemon");
  const bool daemon = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return RE2::PartialMatch(line, dockerd);
  });
  if (podman > 0 && podman >= docker && !daemon) return Engine::podman;
  if (compose > 0) return Engine::compose;
  if (count(lines, R"(\bnerdctl\b|\bctr (?:-n \S+ )?run\b|\bcrictl\b)") > 0 ||
      (containerd > 0 && docker == 0))
    return Engine::containerd;
  if (count(lines, R"(\bLXC\b|\bLXD\b|\bincus\b)") > 0) return Engine::lxc;
  return docker > 0 || daemon ? Engine::docker : Engine::none;
}

// Their own words go first: an image of Fedora has no use for dnf, Proxmox has kernels of its own.
constexpr std::pair<const char*, const char*> k_systems[] = {
    {R"(silverblue|kinoite|bluefin|bazzite|\bublue\b|secureblue|rpm-ostree|fedora (?:atomic|coreos))",
     "immutable"},
    {R"(\bnixos\b|\bnixpkgs\b|configuration\.nix)", "nixos"},
    {R"(\bvoid ?linux\b|void-packages|\bxbps-|^void \d|^.{0,40}\bvoid \d\.\d)", "void"},
    {R"(\bgentoo\b|\bemerge -)", "gentoo"},
    {R"(-pve\b|proxmox-(?:headers|kernel))", "proxmox"}};

std::string_view read_packages(const std::vector<std::string>& lines,
                               const std::set<std::string_view>& clues) {
  for (const auto& [words, name] : k_systems) {
    if (count(lines, words) > 0) return name;
  }
  for (const auto& [clue, name] : {std::pair<const char*, const char*>{"dnf_system", "dnf"},
                                   {"zypper_system", "zypper"},
                                   {"pacman_system", "pacman"}}) {
    if (clues.count(clue)) return name;
  }
  if (count(lines, R"(\bubuntu\b|linux mint|pop!_os|\bmint 2\d)") > 0) return "ubuntu";
  if (count(lines, R"(\bdebian\b|\bbookworm\b|\bbullseye\b|\btrixie\b|proxmox)") > 0)
    return "debian";
  return {};
}

// The script of a command, else the first file of the user's own in a traceback.
std::string read_program(const std::vector<std::string>& lines) {
  static const RE2 command(
      R"((?:^|[\s$#>`'"])(?:python[\d.]*|torchrun|accelerate launch|deepspeed)(?:\.exe)? (?:-\S+ (?:[\w.=]+ )?)*([A-Za-z0-9_][\w./-]*\.py)\b)",
      any_case());
  static const RE2 frame(R"re(File "([A-Za-z0-9_][\w./-]*\.py)", line \d+, in <module>)re",
                         any_case());
  std::string found;
  for (const std::string& line : lines) {
    if (RE2::PartialMatch(line, command, &found)) return found;
  }
  for (const std::string& line : lines) {
    if (contains(line, "site-packages") || contains(line, "dist-packages")) continue;
    if (RE2::PartialMatch(line, frame, &found)) return found;
  }
  return {};
}

// The Python that a ready-made bundle for Windows brings along: "E:\\bundle\\python\\python.exe".
std::string bundled_python(const std::vector<std::string>& lines) {
  static const RE2 path(R"(\b([A-Z]:(?:\\[^\\\s"'<>|:*?]{1,60}){1,12}\\python\.exe)\b)",
                        any_case());
  std::string found;
  for (const std::string& line : lines) {
    if (RE2::PartialMatch(line, path, &found)) return found;
  }
  return {};
}

std::string_view name_of(Engine engine) {
  switch (engine) {
    case Engine::docker:
      return "docker";
    case Engine::compose:
      return "compose";
    case Engine::podman:
      return "podman";
    case Engine::containerd:
      return "containerd";
    case Engine::kubernetes:
      return "kubernetes";
    case Engine::apptainer:
      return "apptainer";
    case Engine::lxc:
      return "lxc";
    case Engine::none:
      break;
  }
  return {};
}

}  // namespace

std::vector<std::string_view> Setting::variants() const {
  std::vector<std::string_view> out;
  if (portable) out.push_back("portable");
  if (system == System::wsl) out.push_back("wsl");
  if (keeper == Keeper::uvx) out.push_back("uvx");
  if (keeper == Keeper::uv) out.push_back("uv");
  if (keeper == Keeper::uv_project) out.push_back("uv_project");
  if (keeper == Keeper::poetry) out.push_back("poetry");
  if (system == System::windows) out.push_back("windows");
  if (system == System::mac) out.push_back("mac");
  if (engine != Engine::none) out.push_back(name_of(engine));
  if (engine == Engine::compose) out.push_back("docker");
  if (slurm) out.push_back("slurm");
  if (conda) out.push_back("conda");
  if (system == System::windows || packages.empty()) return out;
  out.push_back(packages);
  if (packages == "proxmox") out.push_back("debian");
  return out;
}

Setting read_setting(std::span<const formats::TextLine> lines,
                     const std::set<std::string_view>& clues) {
  std::vector<std::string> texts;
  for (const formats::TextLine& line : lines)
    texts.push_back(line.text.substr(0, k_setting_longest_line));
  Setting out;
  out.engine = read_engine(texts);
  out.portable = count(texts, R"(python_embed+ed|ComfyUI_windows_portable|windows_portable)") > 0;
  const bool drive = clues.count("windows") || count(texts, R"((?:^|[\s"'(])[C-Z]:\\\w)") > 0;
  if (out.portable || (drive && !clues.count("wsl")))
    out.system = System::windows;
  else if (clues.count("wsl") && !clues.count("wsl_is_the_good_one"))
    out.system = System::wsl;
  else if (out.engine == Engine::none && clues.count("macos"))
    out.system = System::mac;
  if (clues.count("bundle_word")) out.interpreter = bundled_python(texts);
  if (out.portable) out.interpreter = R"(.\python_embeded\python.exe)";
  out.packages = read_packages(texts, clues);
  out.conda = clues.count("conda") > 0;
  out.slurm = clues.count("slurm") > 0;
  out.keeper = read_keeper(texts);
  if (out.keeper == Keeper::uvx) out.tool = uvx_tool(texts);
  out.program = read_program(texts);
  return out;
}

}  // namespace cufit::explain
