// SPDX-License-Identifier: Apache-2.0
// The one command that installs into an environment the way its owner does: pip, uv, conda, pixi,
// poetry, or a line of a Dockerfile. Copyable as it stands: words are quoted for a shell, versions
// carry their +tag, because `torch==2.14.1` alone is already satisfied by an installed 2.14.1 of
// another variant.
#include <algorithm>

#include "base/format.h"
#include "checks/torch_env.h"
#include "checks/wheel_platform.h"

namespace cufit::checks {

namespace {

using knowledge::Knowledge;
using knowledge::TorchRelease;

std::string quoted(const std::string& word) {
  const std::string_view safe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%~";
  bool plain = !word.empty() && word.find_first_not_of(safe) == std::string::npos && word[0] != '~';
  if (plain) return word;
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

bool replaces_conda_torch(const facts::PythonEnv& env) {
  if (env.installer != "conda" || !starts_with(env.path, "(")) return false;
  // (`pip list` shows conda's torch as well: the record of conda says whose it is.)
  if (!env.distributions) return true;
  const std::vector<facts::Distribution>& all = *env.distributions;
  const bool of_conda = std::any_of(all.begin(), all.end(), [](const facts::Distribution& one) {
    return (one.name == "torch" || one.name == "pytorch") && one.kind == "conda-meta";
  });
  return of_conda || find_distribution(env, "torch") == nullptr;
}

namespace {

// A pip torch inside a conda environment must be replaced by pip: conda would add a second copy
// beside it.
std::string installer_of(const facts::PythonEnv& env, bool of_torch = true) {
  if (env.kind == "image") return "image";
  const facts::Distribution* torch = find_distribution(env, "torch");
  bool conda = env.installer == "conda" || env.installer == "pixi";
  if (of_torch && replaces_conda_torch(env)) return "pip";
  if (conda && torch != nullptr && torch->kind != "conda-meta")
    return torch->installer == "uv" ? "uv" : "pip";
  return env.installer;
}

std::string pip_like(const facts::PythonEnv& env, const std::string& installer,
                     const std::string& what) {
  if (installer == "uv") return "uv pip install --python " + quoted(python_of(env)) + " " + what;
  if (installer == "image") return "python3 -m pip install --no-cache-dir " + what;
  return quoted(python_of(env)) + " -m pip install " + what;
}

}  // namespace

std::string python_of(const facts::PythonEnv& env) {
  if (env.interpreter && !env.interpreter->empty()) return *env.interpreter;
  // "(claimed)": a text that names no path; whoever reads the command knows which Python it is.
  return starts_with(env.path, "(") ? "python" : env.path + "/bin/python";
}

std::string pip_install_of(const facts::PythonEnv& env) {
  if (installer_of(env) == "uv") return "uv pip install --python " + quoted(python_of(env));
  return quoted(python_of(env)) + " -m pip install";
}

namespace {

// "cu126" -> "12.6", "cu130" -> "13.0"
std::string cuda_of_tag(const std::string& tag) {
  if (!starts_with(tag, "cu") || tag.size() < 5) return {};
  return tag.substr(2, tag.size() - 3) + "." + tag.back();
}

bool is_aarch64(const facts::PythonEnv& env) {
  const facts::Distribution* torch = find_distribution(env, "torch");
  return torch != nullptr && contains(torch->tag, "aarch64");
}

// The platform is one for which the default index holds CUDA builds. (An image says what it is.)
bool has_cuda_index(const Input& input, const facts::PythonEnv& env) {
  if (env.kind == "image") return true;
  const WheelPlatform platform = wheel_platform(input.facts);
  return platform == WheelPlatform::linux_x86_64 || platform == WheelPlatform::linux_aarch64;
}

const TorchRelease* newest_release() {
  const TorchRelease* newest = nullptr;
  for (const TorchRelease& row : Knowledge::builtin().torch_releases) {
    auto version = parse_version(row.version);
    if (version && (newest == nullptr || *version > *parse_version(newest->version))) newest = &row;
  }
  return newest;
}

// The default Python index has this variant for this release (x86-64), and pip would not take the
// installed torch for it: an installed 2.14.1+cu126 satisfies `torch==2.14.1`.
bool default_index_has(const Input& input, const facts::PythonEnv& env, const TorchRelease* release,
                       const std::string& tag) {
  if (tag.empty()) return true;
  if (!has_cuda_index(input, env)) return false;
  if (release == nullptr || is_aarch64(env) || release->default_linux_x86_64 != tag) return false;
  const facts::Distribution* installed = find_distribution(env, "torch");
  return installed == nullptr ||
         installed->version.substr(0, installed->version.find('+')) != release->version;
}

// torch with the torchvision and torchaudio that belong to it, where they are installed: pip would
// otherwise leave the old ones, which do not load with another torch.
std::vector<std::string> torch_words(const facts::PythonEnv& env, const std::string& torch,
                                     const TorchRelease* release, const std::string& local) {
  std::vector<std::string> words{torch.empty() ? "torch" : "torch==" + torch + local};
  const std::pair<const char*, std::string_view> partners[] = {
      {"torchvision", release ? release->torchvision : ""},
      {"torchaudio", release ? release->torchaudio : ""}};
  for (const auto& [name, version] : partners) {
    const bool along = replaces_conda_torch(env) && std::string_view(name) == "torchvision";
    if (find_distribution(env, name) == nullptr && !along) continue;
    if (version.empty())
      words.push_back(name);
    else
      words.push_back(std::string(name) + "==" + std::string(version) + local);
  }
  return words;
}

// conda-forge does not build every patch release: the minor is what matters.
std::string conda_pins(const std::string& torch, const std::string& tag) {
  std::vector<std::string_view> parts = split(torch, '.');
  std::string wanted = "pytorch-gpu";
  if (parts.size() >= 2) wanted += "=" + std::string(parts[0]) + "." + std::string(parts[1]);
  const std::string cuda = cuda_of_tag(tag);
  return wanted + (cuda.empty() ? "" : " cuda-version=" + cuda);
}

std::string conda_install(const facts::PythonEnv& env, const std::string& torch,
                          const std::string& tag) {
  const std::string pins = conda_pins(torch, tag);
  if (env.installer == "pixi") return "pixi add " + pins;
  return "conda install -p " + quoted(env.path) + " -c conda-forge " + pins;
}

}  // namespace

std::string install_command(const Input& input, const facts::PythonEnv& env,
                            const std::string& torch, const std::string& tag) {
  std::string installer = installer_of(env);
  if (installer == "conda" || installer == "pixi") return conda_install(env, torch, tag);
  const TorchRelease* release =
      torch.empty() ? newest_release() : Knowledge::builtin().find_torch(torch);
  std::string version =
      torch.empty() && release != nullptr && !tag.empty() ? std::string(release->version) : torch;
  bool plain = default_index_has(input, env, release, tag);
  std::string local = plain || version.empty() ? "" : "+" + tag;
  std::vector<std::string> words = torch_words(env, version, release, local);
  if (version.empty()) words.insert(words.begin(), "--upgrade");
  for (std::string& word : words) word = quoted(word);
  std::string url = "https://download.pytorch.org/whl/" + tag;
  if (installer == "poetry") {
    if (plain) return "poetry add " + join(words, " ");
    return "poetry source add --priority=explicit pytorch-" + tag + " " + url +
           " && poetry add --source pytorch-" + tag + " " + join(words, " ");
  }
  if (!plain) words.push_back("--index-url " + url);
  return pip_like(env, installer, join(words, " "));
}

std::string install_in_new(const Input& input, const facts::PythonEnv& env,
                           const std::string& torch, const std::string& tag,
                           const std::string& python) {
  const std::string installer = installer_of(env), name = "torch-env";
  if (installer == "image") return install_command(input, env, torch, tag);
  if (installer == "poetry")
    return "poetry env use " + python + " && " + install_command(input, env, torch, tag);
  if (installer == "pixi") return "pixi add python=" + python + " " + conda_pins(torch, tag);
  if (installer == "conda")
    return "conda create -n " + name + " -c conda-forge python=" + python + " " +
           conda_pins(torch, tag);
  facts::PythonEnv fresh = env;
  fresh.kind = "venv";
  fresh.path = name;
  fresh.interpreter = {};
  if (fresh.distributions) {  // the partners come along, the old torch stays behind
    std::erase_if(*fresh.distributions.value, [](const facts::Distribution& one) {
      return one.name == "torch" || one.name == "pytorch";
    });
  }
  if (installer == "uv")
    return "uv venv --python " + python + " " + name + " && " +
           install_command(input, fresh, torch, tag);
  fresh.installer = "pip";
  // One command that cmd and PowerShell both take.
  if (wheel_platform(input.facts) == WheelPlatform::windows) {
    fresh.interpreter = known<std::string>("py", SourceKind::assumed, "");
    std::string command = install_command(input, fresh, torch, tag);
    return command.insert(2, " -" + python);  // "py -3.12 -m pip install"
  }
  return "python" + python + " -m venv " + name + " && " +
         install_command(input, fresh, torch, tag);
}

std::string install_command(const facts::PythonEnv& env, const std::string& requirement) {
  std::string installer = installer_of(env, false);
  if (installer == "poetry") return "poetry add " + quoted(requirement);
  if (installer != "conda" && installer != "pixi")
    return pip_like(env, installer, quoted(requirement));
  std::string spec = requirement;  // conda writes one '='
  size_t equals = spec.find("==");
  if (equals != std::string::npos) spec.erase(equals, 1);
  if (installer == "pixi") return "pixi add " + quoted(spec);
  // "(claimed)": a text that names no path; whoever reads the command has activated it.
  const std::string where = starts_with(env.path, "(") ? "" : "-p " + quoted(env.path) + " ";
  return "conda install " + where + "-c conda-forge " + quoted(spec);
}

std::string reinstall(std::string command) {
  const std::string_view pip = "pip install", conda = "conda install";
  size_t at = command.find(pip);
  if (at != std::string::npos) {
    bool uv = starts_with(command, "uv ");
    command.insert(at + pip.size(), uv ? " --reinstall --no-deps" : " --force-reinstall --no-deps");
  } else if (starts_with(command, conda)) {
    command.insert(conda.size(), " --force-reinstall");
  }
  return command;
}

}  // namespace cufit::checks
