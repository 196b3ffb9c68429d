// SPDX-License-Identifier: Apache-2.0
// torch with what belongs to it, as one command. Versions carry their +tag where PyTorch's own index
// is named, because `torch==2.14.1` alone is already satisfied by an installed 2.14.1 of another
// variant.
#include "checks/install/torch_command.h"

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/install/conda_torch.h"
#include "checks/install/project.h"
#include "checks/torch_env.h"
#include "checks/wheel_pick.h"
#include "checks/wheel_platform.h"
#include "formats/python/index_setting.h"

namespace cufit::checks {

using knowledge::TorchRelease;

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

std::string python_of(const facts::PythonEnv& env) {
  if (env.interpreter && !env.interpreter->empty()) return *env.interpreter;
  // "(claimed)": a text that names no path; whoever reads the command knows which Python it is.
  return starts_with(env.path, "(") ? "python" : env.path + "/bin/python";
}

std::string python_word(const facts::PythonEnv& env) {
  const std::string path = python_of(env);
  const bool windows = contains(path, "\\");
  if (!windows) return shell_word(path);
  // cmd and PowerShell take a bare path; one with blanks only PowerShell's call operator runs.
  const bool plain = path.find_first_of(" &()'\"$`;|<>%^{}") == std::string::npos;
  std::string word = path;
  if (!plain) {
    word = "& '";
    for (const char c : path) word += c == '\'' ? std::string("''") : std::string(1, c);
    word += "'";
  }
  // The Python of a bundle: without the user's own packages, as its start script calls it.
  return word + (contains(lower(path), "python_embed") ? " -s" : "");
}

namespace {

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

// "3.12.3" -> "3.12"
std::string minor_of_python(const std::string& text) {
  const std::optional<Version> version = parse_version(text);
  return version ? format("{}.{}", version->part(0), version->part(1)) : text;
}

// The default Python index has this variant for this release (x86-64).
bool is_default_variant(const Input& input, const facts::PythonEnv& env,
                        const TorchRelease* release, const std::string& tag) {
  if (tag.empty()) return true;
  if (release != nullptr && !release->default_python.empty() && env.python) {
    const std::vector<std::string_view> there = split(release->default_python, ' ');
    if (std::find(there.begin(), there.end(), minor_of_python(*env.python)) == there.end())
      return false;
  }
  return has_cuda_index(input, env) && release != nullptr && !is_aarch64(env) &&
         release->default_linux_x86_64 == tag;
}

// An installed 2.14.1+cu126 satisfies `torch==2.14.1`: pip would take it for the default variant.
bool satisfied_by_installed(const facts::PythonEnv& env, const TorchRelease* release) {
  const facts::Distribution* installed = find_distribution(env, "torch");
  return installed != nullptr && release != nullptr &&
         installed->version.substr(0, installed->version.find('+')) == release->version;
}

struct Partner {
  const char* name;
  std::string_view TorchRelease::*column;
};
constexpr Partner k_partners[] = {{"torchvision", &TorchRelease::torchvision},
                                  {"torchaudio", &TorchRelease::torchaudio}};

// torchvision and torchaudio that belong to this torch, where they are installed: an installer
// would otherwise leave the old ones, which do not load with another torch.
std::vector<std::string> partner_words(const facts::PythonEnv& env, const TorchRelease* release,
                                       const std::string& local) {
  std::vector<std::string> words;
  for (const Partner& partner : k_partners) {
    const bool along = replaces_conda_torch(env) && partner.column == &TorchRelease::torchvision;
    if (find_distribution(env, partner.name) == nullptr && !along) continue;
    const std::string_view version = release != nullptr ? release->*partner.column : "";
    words.push_back(version.empty() ? std::string(partner.name)
                                    : format("{}=={}{}", partner.name, version, local));
  }
  return words;
}

// A release and a variant of which there is a wheel. A build of somebody else's ("2.5.0a0+nv24.08")
// is on no index: then the wheel that fits this machine; empty: none does.
WheelPick existing_wheel(const Input& input, const facts::PythonEnv& env, const std::string& torch,
                         const std::string& tag) {
  const knowledge::Knowledge& knowledge = input.knowledge;
  const auto newer_than_tables = [&] {
    const std::optional<Version> have = parse_version(torch);
    return have && std::all_of(knowledge.torch_releases.begin(), knowledge.torch_releases.end(),
                               [&](const TorchRelease& row) {
                                 const auto version = parse_version(row.version);
                                 return version && *version < *have;
                               });
  };
  const bool known_tag = knowledge.find_cuda_tag(tag) != nullptr || tag == "cpu";
  if (!torch.empty() && (tag.empty() || known_tag)) {
    if (tag.empty() && knowledge.find_torch(torch) != nullptr) return {torch, tag};
    for (const knowledge::WheelVariant* wheel : knowledge.wheels_of(torch))
      if (wheel->tag == tag) return {torch, tag};
    const bool plain = torch.find_first_not_of("0123456789.") == std::string::npos;
    if (tag == "cpu" && knowledge.find_torch(torch) != nullptr) return {torch, tag};
    if (plain && newer_than_tables()) return {torch, tag};
  }
  std::optional<WheelPick> pick = pick_wheel_for_machine(input, &env);
  if (!pick) pick = pick_wheel_for_any(input, &env);
  return pick.value_or(WheelPick{});
}

InstallRequest request_of(const Input& input, const facts::PythonEnv& env, const WheelPick& wheel,
                          InstallKind kind, bool with_torch) {
  const TorchRelease* release = input.knowledge.find_torch(wheel.torch);
  const bool by_default = is_default_variant(input, env, release, wheel.tag) &&
                          // The partners alone: torch stays, and it is of this variant.
                          (!with_torch || kind == InstallKind::repair ||
                           !satisfied_by_installed(env, release) || wheel.tag.empty()) &&
                          // A project that binds torch to an index has it from there alone.
                          (wheel.tag.empty() || !is_bound_to_index(env) || !with_torch);
  const std::string local = by_default ? "" : "+" + wheel.tag;
  InstallRequest request;
  request.kind = kind;
  if (with_torch) request.requirements.push_back("torch==" + wheel.torch + local);
  for (std::string& word : partner_words(env, release, local))
    request.requirements.push_back(std::move(word));
  if (!by_default) {
    request.index = pytorch_index(input, wheel.tag);
    request.index_name = "pytorch-" + wheel.tag;
  }
  return request;
}

// torch is pip's in conda's environments too: conda's channels have not these wheels.
Owner pip_for_conda(Owner owner) {
  if (owner.installer == Installer::conda) owner.installer = Installer::pip;
  return owner;
}

std::string command_for(const Input& input, const facts::PythonEnv& env, const WheelPick& wheel,
                        InstallKind kind) {
  if (wheel.torch.empty()) return {};
  const Owner owner = pip_for_conda(owner_of(env, true));
  const facts::Distribution* installed = find_distribution(env, "torch");
  const bool of_conda = !conda_torch_packages(env).empty();
  if (installed != nullptr && installed->version == wheel.torch + "+" + wheel.tag)
    kind = InstallKind::repair;  // an installer would call it satisfied
  InstallRequest request = request_of(input, env, wheel, kind, true);
  // A repair is of torch's own files.
  if (kind == InstallKind::repair) request.requirements.resize(1);
  if (owner.installer == Installer::pixi) {
    if (kind == InstallKind::repair)
      return install_command(input, env, owner,
                             {{of_conda ? "pytorch" : "torch"}, {}, {}, false, kind});
    return by_pixi(env, owner, with_settings(input, request));
  }
  if (of_conda && kind == InstallKind::repair) return conda_torch_repair(env);
  return (of_conda ? conda_torch_removal(env) : "") + install_command(input, env, owner, request);
}

}  // namespace

std::string pytorch_index(const Input& input, const std::string& tag) {
  formats::IndexSetting setting;
  setting.pytorch = input.facts.system.pytorch_index.value_or("");
  return setting.pytorch_index_url(tag);
}

std::string install_command(const Input& input, const facts::PythonEnv& env,
                            const std::string& torch, const std::string& tag) {
  return command_for(input, env, existing_wheel(input, env, torch, tag), InstallKind::change);
}

std::string complete_command(const Input& input, const facts::PythonEnv& env,
                             const std::string& torch, const std::string& tag) {
  const WheelPick wheel = existing_wheel(input, env, torch, tag);
  const Owner owner = owner_of(env, true);
  if (wheel.torch != torch || wheel.tag != tag || owner.installer == Installer::conda ||
      owner.installer == Installer::pixi)
    return {};
  InstallRequest request = request_of(input, env, wheel, InstallKind::change, true);
  request.requirements.resize(1);
  return install_command(input, env, owner, request);
}

std::string repair_command(const Input& input, const facts::PythonEnv& env,
                           const std::string& torch, const std::string& tag) {
  const WheelPick wheel = existing_wheel(input, env, torch, tag);
  const bool same = wheel.torch == torch && wheel.tag == tag;
  return command_for(input, env, wheel, same ? InstallKind::repair : InstallKind::change);
}

std::string partners_command(const Input& input, const facts::PythonEnv& env,
                             const std::string& torch, const std::string& tag) {
  const WheelPick wheel = existing_wheel(input, env, torch, tag);
  const Owner owner = owner_of(env, true);
  const bool stays = wheel.torch == torch && wheel.tag == tag;
  const bool index = owner.installer != Installer::conda && owner.installer != Installer::pixi &&
                     owner.installer != Installer::new_venv && owner.installer != Installer::lock;
  if (!stays || !index) return command_for(input, env, wheel, InstallKind::change);
  return install_command(input, env, owner,
                         request_of(input, env, wheel, InstallKind::change, false));
}

namespace {

constexpr const char* k_beside = "torch-env";

// A new environment beside this one: torchvision and torchaudio come along, the old torch stays.
facts::PythonEnv beside(const facts::PythonEnv& env) {
  facts::PythonEnv fresh;
  fresh.path = k_beside;
  fresh.kind = "venv";
  fresh.distributions = env.distributions;
  if (fresh.distributions)
    std::erase_if(*fresh.distributions.value, [](const facts::Distribution& one) {
      return one.name == "torch" || one.name == "pytorch";
    });
  return fresh;
}

}  // namespace

std::string install_in_new(const Input& input, const facts::PythonEnv& env,
                           const std::string& torch, const std::string& tag,
                           const std::string& python) {
  const Owner owner = owner_of(env, true);
  const std::string name = k_beside;
  switch (owner.installer) {
    case Installer::image:
      return install_command(input, env, torch, tag);
    case Installer::poetry:
      return "poetry env use " + python + " && " + install_command(input, env, torch, tag);
    case Installer::uv_project:
      return "uv python pin --project " + shell_word(owner.folder) + " " + python + " && " +
             install_command(input, env, torch, tag);
    case Installer::pdm:
      return "pdm use -p " + shell_word(owner.folder) + " " + python + " && " +
             install_command(input, env, torch, tag);
    case Installer::pipenv:
      return "PIPENV_PIPFILE=" + shell_word(owner.folder + "/Pipfile") + " pipenv --python " +
             python + " && " + install_command(input, env, torch, tag);
    default:
      break;
  }
  facts::PythonEnv fresh = beside(env);
  // One command that cmd and PowerShell both take.
  if (wheel_platform(input.facts) == WheelPlatform::windows) {
    fresh.installer = "pip";
    fresh.interpreter = known<std::string>("py", SourceKind::assumed, "");
    std::string command = install_command(input, fresh, torch, tag);
    return command.insert(2, " -" + python);  // "py -3.12 -m pip install"
  }
  const WheelPick wheel = existing_wheel(input, fresh, torch, tag);
  if (wheel.torch.empty()) return {};
  const InstallRequest request =
      with_settings(input, request_of(input, fresh, wheel, InstallKind::change, true));
  if (owner.installer == Installer::pixi) return by_pixi(env, owner, request, python);
  if (owner.installer == Installer::conda || !conda_torch_packages(env).empty())
    return "conda create -y -n " + name + " -c conda-forge python=" + python +
           " pip && conda run -n " + name + " python -m pip install" + pip_arguments(request);
  // Whether that Python is installed here nobody knows; uv fetches it where it is not.
  const UvCall uv = uv_call(input, env, owner);
  return uv.first + uv.program + " venv --python " + python + " " + name + " && " +
         uv_install(uv.program, name + "/bin/python", request);
}

std::string install_beside(const Input& input, const facts::PythonEnv& env,
                           const std::string& torch, const std::string& tag) {
  const Owner owner = owner_of(env, true);
  if (owner.installer == Installer::lock)
    return install_command(input, env, owner, {{}, {}, {}, false, InstallKind::repair});
  if (owner.installer == Installer::uv_project)
    return "uv sync --project " + shell_word(owner.folder);
  if (owner.installer == Installer::pdm) return "pdm install -p " + shell_word(owner.folder);
  if (owner.installer == Installer::pipenv)
    return "PIPENV_PIPFILE=" + shell_word(owner.folder + "/Pipfile") + " pipenv sync";
  const facts::PythonEnv fresh = beside(env);
  const WheelPick wheel = existing_wheel(input, fresh, torch, tag);
  if (wheel.torch.empty()) return {};
  const InstallRequest request =
      with_settings(input, request_of(input, fresh, wheel, InstallKind::change, true));
  const std::string folder = k_beside, python = folder + "/bin/python";
  if (input.facts.system.uv)
    return "uv venv " + folder + " && " + uv_install("uv", python, request);
  return "python3 -m venv " + folder + " && " + python + " -m pip install" + pip_arguments(request);
}

std::string install_text(const Input& input, const facts::PythonEnv& env,
                         const std::optional<WheelPick>& pick) {
  if (!pick) return {};
  if (pick->python.empty()) return install_command(input, env, pick->torch, pick->tag);
  return install_in_new(input, env, pick->torch, pick->tag, pick->python);
}

std::string install_packages(const Input& input, const facts::PythonEnv& env,
                             const std::vector<std::string>& requirements, InstallKind kind) {
  InstallRequest request{requirements, {}, {}, false, kind};
  // "torchvision==0.26.0+cu126" is on PyTorch's own index alone.
  for (const std::string& one : requirements) {
    const size_t plus = one.find('+');
    const std::string tag = plus == std::string::npos ? "" : one.substr(plus + 1);
    if (input.knowledge.find_cuda_tag(tag) == nullptr && tag != "cpu") continue;
    request.index = pytorch_index(input, tag);
    request.index_name = "pytorch-" + tag;
    request.beside_default = true;
  }
  return install_command(input, env, owner_of(env, false), request);
}

std::string install_project(const Input& input) {
  const std::string lock = input.facts.system.project_lock.value_or("");
  if (lock == "uv.lock") return input.facts.system.uv ? "uv sync" : "";
  if (lock == "pixi.lock") return "pixi install";
  if (lock == "poetry.lock") return "poetry install";
  // requirements.txt names packages and no wheels that fit this GPU and driver: torch comes first.
  return {};
}

std::string pip_install_of(const facts::PythonEnv& env) {
  const bool uv = owner_of(env, true).installer == Installer::uv;
  return uv ? "uv pip install --python " + python_word(env) : python_word(env) + " -m pip install";
}

}  // namespace cufit::checks
