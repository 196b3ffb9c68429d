// SPDX-License-Identifier: Apache-2.0
#include "explain/setting.h"

#include <re2/re2.h>

#include <algorithm>

#include "base/format.h"
#include "explain/word_lines.h"

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

// A pattern, and words of which every match has one (word_lines.h).
struct Spoken {
  const char* pattern;
  std::string_view words;
};

constexpr Spoken k_kubernetes = {
    R"(\bkubectl\b|\bkubelet\b|\bkubernetes\b|\bk8s\b|microk8s|\bk3s\b|\bpods?/|\bpods?\b.{0,40}(?:Pending|CrashLoop|Running|Evicted)|daemonset|CrashLoopBackOff|FailedScheduling|runtimeClass|gpu-operator|device[- ]plugin|openshift|\bEKS\b|\bGKE\b|nvidia\.com/gpu: |Insufficient nvidia\.com|kind: (?:Pod|Deployment|Job)|helm (?:install|upgrade)|resourceclaim)",
    "kube|k8s|k3s|pod|daemonset|crashloop|failedscheduling|runtimeclass|gpu-operator|plugin|"
    "openshift|eks|gke|nvidia.com|kind:|helm|resourceclaim"};
constexpr Spoken k_podman_docker = {R"(Emulate Docker CLI using podman|podman-docker)", "podman"};
constexpr Spoken k_podman = {R"(\bpodman\b|\bbuildah\b|quadlet|\bcrun\b)",
                             "podman|buildah|quadlet|crun"};
constexpr Spoken k_compose = {R"(docker[- ]compose\b|compose\.ya?ml|^services:|\bcompose file\b)",
                              "compose|services:"};
constexpr Spoken k_docker = {R"(\bdocker\b|dockerd|Error response from daemon)",
                             "docker|from daemon"};
constexpr Spoken k_containerd = {R"(\bnerdctl\b|\bctr (?:-n \S+ )?run\b|\bcontainerd\b|\bcrictl\b)",
                                 "nerdctl|ctr |containerd|crictl"};
constexpr Spoken k_pods = {R"(\bpods?\b)", "pod"};
constexpr Spoken k_rented_pods = {R"(\brunpod|run\.pod|vast\.ai|autodl)",
                                  "runpod|run.pod|vast.ai|autodl"};
constexpr Spoken k_apptainer = {R"(\bapptainer\b|\bsingularity\b)", "apptainer|singularity"};
// What dockerd alone prints; in this case.
constexpr Spoken k_dockerd = {"could not select device driver|Error response from daemon",
                              "select device driver|from daemon"};
constexpr Spoken k_containerd_tools = {R"(\bnerdctl\b|\bctr (?:-n \S+ )?run\b|\bcrictl\b)",
                                       "nerdctl|ctr |crictl"};
constexpr Spoken k_lxc = {R"(\bLXC\b|\bLXD\b|\bincus\b)", "lxc|lxd|incus"};
constexpr Spoken k_ubuntu = {R"(\bubuntu\b|linux mint|pop!_os|\bmint 2\d)", "ubuntu|mint|pop!_os"};
constexpr Spoken k_debian = {R"(\bdebian\b|\bbookworm\b|\bbullseye\b|\btrixie\b|proxmox)",
                             "debian|bookworm|bullseye|trixie|proxmox"};
constexpr Spoken k_portable = {R"(python_embed+ed|ComfyUI_windows_portable|windows_portable)",
                               "python_embed|windows_portable"};
constexpr Spoken k_drive = {R"((?:^|[\s"'(])[C-Z]:\\\w)", ""};
// Their own words go first: an image of Fedora has no use for dnf, Proxmox has kernels of its own.
constexpr std::pair<Spoken, const char*> k_systems[] = {
    {{R"(silverblue|kinoite|bluefin|bazzite|\bublue\b|secureblue|rpm-ostree|fedora (?:atomic|coreos))",
      "silverblue|kinoite|bluefin|bazzite|ublue|secureblue|rpm-ostree|fedora"},
     "immutable"},
    {{R"(\bnixos\b|\bnixpkgs\b|configuration\.nix)", "nixos|nixpkgs|configuration.nix"}, "nixos"},
    {{R"(\bvoid ?linux\b|void-packages|\bxbps-|^void \d|^.{0,40}\bvoid \d\.\d)", "void|xbps-"},
     "void"},
    {{R"(\bgentoo\b|\bemerge -)", "gentoo|emerge"}, "gentoo"},
    {{R"(-pve\b|proxmox-(?:headers|kernel))", "-pve|proxmox-"}, "proxmox"}};
constexpr std::string_view k_command_words = "python|torchrun|accelerate|deepspeed";
constexpr std::string_view k_frame_words = "file \"";
constexpr std::string_view k_bundle_words = "\\python.exe";

// The lines, cut, and which of them can match what.
class SettingLines {
 public:
  explicit SettingLines(std::span<const formats::TextLine> lines)
      : texts_(cut(lines)), words_(views(texts_), all_words()) {}

  // Rising. None: nothing is compiled for it.
  std::vector<size_t> with(std::string_view words) const { return words_.of(words); }
  const std::string& operator[](size_t index) const { return texts_[index]; }
  std::vector<std::string> of(std::string_view words) const {
    std::vector<std::string> out;
    for (const size_t i : with(words)) out.push_back(texts_[i]);
    return out;
  }
  // One holds a part, as it is written.
  bool hold(std::string_view part) const {
    return std::any_of(texts_.begin(), texts_.end(),
                       [&](const std::string& text) { return contains(text, part); });
  }

 private:
  static std::vector<std::string> cut(std::span<const formats::TextLine> lines) {
    std::vector<std::string> out;
    for (const formats::TextLine& line : lines)
      out.push_back(line.text.substr(0, k_setting_longest_line));
    return out;
  }
  static std::vector<std::string_view> views(const std::vector<std::string>& texts) {
    return {texts.begin(), texts.end()};
  }
  static std::vector<std::string_view> all_words() {
    std::vector<std::string_view> out = {k_keeper_words, k_command_words, k_frame_words,
                                         k_bundle_words};
    for (const Spoken& one : {k_kubernetes, k_podman_docker, k_podman, k_compose, k_docker,
                              k_containerd, k_pods, k_rented_pods, k_apptainer, k_dockerd,
                              k_containerd_tools, k_lxc, k_ubuntu, k_debian, k_portable})
      out.push_back(one.words);
    for (const auto& [one, name] : k_systems) out.push_back(one.words);
    return out;
  }

  std::vector<std::string> texts_;
  WordLines words_;
};

bool is_denied(const std::string& line) {
  static const RE2 denied(
      R"((?:\bno\b|\bnot\b|\bwithout|instead of|outside(?: of)?|\bisn.t|没有?用?|不用|不是|未用|非) ?(?:in |using |use |running in |an? |the |any )*(?:docker|podman|containers?|kubernetes|k8s|conda|wsl2?|windows)\b)",
      any_case());
  return RE2::PartialMatch(line, denied);
}

// How many lines speak of something; one that says that it does not take part is none of them.
size_t count(const SettingLines& lines, const Spoken& spoken) {
  const std::vector<size_t> places = lines.with(spoken.words);
  if (places.empty()) return 0;
  const RE2 wanted(spoken.pattern, any_case());
  return static_cast<size_t>(std::count_if(places.begin(), places.end(), [&](size_t i) {
    return RE2::PartialMatch(lines[i], wanted) && !is_denied(lines[i]);
  }));
}

bool dockerd_speaks(const SettingLines& lines) {
  const std::vector<size_t> places = lines.with(k_dockerd.words);
  if (places.empty()) return false;
  const RE2 dockerd(k_dockerd.pattern);
  return std::any_of(places.begin(), places.end(),
                     [&](size_t i) { return RE2::PartialMatch(lines[i], dockerd); });
}

Engine read_engine(const SettingLines& lines) {
  const size_t kubernetes = count(lines, k_kubernetes);
  if (count(lines, k_podman_docker) > 0) return Engine::podman;
  const size_t podman = count(lines, k_podman), compose = count(lines, k_compose),
               docker = count(lines, k_docker), containerd = count(lines, k_containerd);
  // "pod" is what RunPod calls a rented container, which has no kubectl.
  const bool pods = podman == 0 && count(lines, k_pods) > 0 && count(lines, k_rented_pods) == 0;
  if (kubernetes > 0 || pods) return Engine::kubernetes;
  if (count(lines, k_apptainer) > 0) return Engine::apptainer;
  // A text that says in the same breath that podman works is about docker.
  const bool daemon = dockerd_speaks(lines);
  if (podman > 0 && podman >= docker && !daemon) return Engine::podman;
  if (compose > 0) return Engine::compose;
  if (count(lines, k_containerd_tools) > 0 || (containerd > 0 && docker == 0))
    return Engine::containerd;
  if (count(lines, k_lxc) > 0) return Engine::lxc;
  return docker > 0 || daemon ? Engine::docker : Engine::none;
}

std::string_view read_packages(const SettingLines& lines, const std::set<std::string_view>& clues) {
  for (const auto& [words, name] : k_systems) {
    if (count(lines, words) > 0) return name;
  }
  for (const auto& [clue, name] : {std::pair<const char*, const char*>{"dnf_system", "dnf"},
                                   {"zypper_system", "zypper"},
                                   {"pacman_system", "pacman"}}) {
    if (clues.count(clue)) return name;
  }
  if (count(lines, k_ubuntu) > 0) return "ubuntu";
  return count(lines, k_debian) > 0 ? "debian" : std::string_view();
}

// What a pattern's group holds in the first line that it matches, of those with one of the words.
std::string first_group(const SettingLines& lines, std::string_view words, const char* pattern,
                        bool outside_packages = false) {
  std::vector<size_t> places = lines.with(words);
  if (outside_packages) {
    std::erase_if(places, [&](size_t i) {
      return contains(lines[i], "site-packages") || contains(lines[i], "dist-packages");
    });
  }
  if (places.empty()) return {};
  const RE2 compiled(pattern, any_case());
  std::string found;
  for (const size_t i : places) {
    if (RE2::PartialMatch(lines[i], compiled, &found)) return found;
  }
  return {};
}

// The script of a command, else the first file of the user's own in a traceback.
std::string read_program(const SettingLines& lines) {
  const std::string found = first_group(
      lines, k_command_words,
      R"((?:^|[\s$#>`'"])(?:python[\d.]*|torchrun|accelerate launch|deepspeed)(?:\.exe)? (?:-\S+ (?:[\w.=]+ )?)*([A-Za-z0-9_][\w./-]*\.py)\b)");
  if (!found.empty()) return found;
  return first_group(lines, k_frame_words,
                     R"re(File "([A-Za-z0-9_][\w./-]*\.py)", line \d+, in <module>)re", true);
}

// The Python that a ready-made bundle for Windows brings along: "E:\\bundle\\python\\python.exe".
std::string bundled_python(const SettingLines& lines) {
  return first_group(lines, k_bundle_words,
                     R"(\b([A-Z]:(?:\\[^\\\s"'<>|:*?]{1,60}){1,12}\\python\.exe)\b)");
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
  const SettingLines texts(lines);
  Setting out;
  out.engine = read_engine(texts);
  out.portable = count(texts, k_portable) > 0;
  const bool drive = clues.count("windows") || (texts.hold(":\\") && count(texts, k_drive) > 0);
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
  const std::vector<std::string> of_keepers = texts.of(k_keeper_words);
  if (!of_keepers.empty()) out.keeper = read_keeper(of_keepers);
  if (out.keeper == Keeper::uvx) out.tool = uvx_tool(of_keepers);
  out.program = read_program(texts);
  return out;
}

}  // namespace cufit::explain
