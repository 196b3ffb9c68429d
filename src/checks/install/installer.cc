// SPDX-License-Identifier: Apache-2.0
#include "checks/install/installer.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "checks/install/conda_torch.h"
#include "checks/install/project.h"
#include "checks/install/torch_command.h"
#include "checks/torch_env.h"
#include "checks/wheel_platform.h"

namespace cufit::checks {
namespace {

// ".../.cufit/envs/cu126" -> the folder with cufit.lock, and the class.
bool read_lock_path(const std::string& path, Owner& owner) {
  constexpr std::string_view k_envs = "/.cufit/envs/";
  const size_t at = path.find(k_envs);
  if (at == std::string::npos) return false;
  const std::string name = path.substr(at + k_envs.size());
  if (name.empty() || contains(name, "/")) return false;
  owner = {Installer::lock, at == 0 ? "/" : path.substr(0, at), name};
  return true;
}

bool is_claimed(const facts::PythonEnv& env) { return starts_with(env.path, "("); }

bool lacks_uv(const Input& input) {
  return !input.facts.system.uv && input.facts.system.uv.why == WhyNot::not_present;
}

// Known to be without pip. Recordings older than the fact about uv list some packages only.
bool lacks_pip(const Input& input, const facts::PythonEnv& env) {
  const Fact<std::string>& uv = input.facts.system.uv;
  // (A text lists some packages only.)
  const bool asked = (uv || uv.why != WhyNot::not_asked) && !is_claimed(env);
  return asked && env.distributions && find_distribution(env, "pip") == nullptr;
}

std::string joined(const InstallRequest& request) {
  std::string out;
  for (const std::string& one : request.requirements) out += " " + shell_word(one);
  return out;
}

std::string index_option(const InstallRequest& request, const char* beside) {
  if (request.index.empty()) return {};
  return (request.beside_default ? beside : " --index-url ") + shell_word(request.index);
}

// The default index is asked unless another one is named in its place.
std::string default_option(const InstallRequest& request, const char* option) {
  if (request.default_index.empty() || (!request.index.empty() && !request.beside_default))
    return {};
  return option + shell_word(request.default_index);
}

}  // namespace

InstallRequest with_settings(const Input& input, InstallRequest request) {
  const Fact<std::string>& index = input.facts.system.default_index;
  request.default_index = index.value_or("");
  request.pip_knows_default = index && !ends_with(index.source.detail, "cufit.toml");
  for (const facts::EnvVariable& one : input.facts.variables)
    if (one.name == "UV_TORCH_BACKEND" && !one.value.empty()) request.uv_backend = true;
  return request;
}

std::string pip_arguments(const InstallRequest& request) {
  const char* how = request.kind == InstallKind::repair   ? " --force-reinstall --no-deps"
                    : request.kind == InstallKind::update ? " --upgrade"
                                                          : "";
  return how + joined(request) +
         (request.pip_knows_default ? "" : default_option(request, " --index-url ")) +
         index_option(request, " --extra-index-url ");
}

std::string uv_install(const std::string& uv, const std::string& python,
                       const InstallRequest& request) {
  const char* how = request.kind == InstallKind::repair   ? " --reinstall --no-deps"
                    : request.kind == InstallKind::update ? " --upgrade"
                                                          : "";
  // uv lets the variable go before any index that a command names.
  return (request.uv_backend ? "env -u UV_TORCH_BACKEND " : "") + uv + " pip install --python " +
         python + how + joined(request) + default_option(request, " --default-index ") +
         index_option(request, " --index ");
}

namespace {

std::string by_pip(const Input& input, const facts::PythonEnv& env, const InstallRequest& request) {
  const std::string python = python_word(env);
  const std::string pip = python + " -m pip install" + pip_arguments(request);
  if (!lacks_pip(input, env)) return pip;
  if (input.facts.system.uv) return uv_install("uv", python, request);
  if (env.makes_venv.value_or(true)) return python + " -m ensurepip && " + pip;
  // Nothing is there to install with: uv's own installer needs neither.
  return "curl -LsSf https://astral.sh/uv/install.sh | sh && " +
         uv_install("~/.local/bin/uv", python, request);
}

// Without uv in PATH an environment of uv is served by its own pip, where it has one.
std::string in_uv_venv(const Input& input, const facts::PythonEnv& env,
                       const InstallRequest& request) {
  return lacks_uv(input) ? by_pip(input, env, request)
                         : uv_install("uv", python_word(env), request);
}

}  // namespace

std::string venv_command(const Input& input, const facts::PythonEnv& env,
                         const std::string& folder) {
  const std::string python = env.kind == "image" ? "python3" : python_word(env);
  const std::string id = input.facts.system.distribution_id.value_or("");
  const bool apart = env.makes_venv && !*env.makes_venv &&
                     (starts_with(id, "debian") || starts_with(id, "ubuntu"));
  // An image has no lists of packages, and no sudo.
  const std::string sudo = input.facts.system.root.value_or(false) ? "" : "sudo ";
  const std::string apt =
      sudo + "apt-get update && " + sudo + "apt-get install -y python3-venv && ";
  return (apart ? apt : "") + python + " -m venv " + folder;
}

namespace {

std::string in_new_venv(const Input& input, const facts::PythonEnv& env,
                        const InstallRequest& request) {
  const bool image = env.kind == "image";
  const std::string folder = image ? "/opt/venv" : ".venv";
  // What is there was put in past the marker, and is mended in the same way.
  if (request.kind == InstallKind::repair)
    return python_word(env) + " -m pip install --break-system-packages" + pip_arguments(request);
  const bool makes_none = env.makes_venv && !*env.makes_venv;
  if (makes_none && input.facts.system.uv)
    return "uv venv " + folder + " && " + uv_install("uv", folder + "/bin/python", request);
  return venv_command(input, env, folder) + " && " + folder + "/bin/python -m pip install" +
         (image ? " --no-cache-dir" : "") + pip_arguments(request);
}

std::string by_poetry(const facts::PythonEnv& env, const Owner& owner,
                      const InstallRequest& request) {
  if (request.kind == InstallKind::repair)
    return (env.interpreter ? python_word(env) : "poetry run python") + " -m pip install" +
           pip_arguments(request);
  const std::string poetry =
      "poetry" + (owner.folder.empty() ? "" : " --directory " + shell_word(owner.folder));
  if (request.kind == InstallKind::update) return poetry + " update" + joined(request);
  if (request.index.empty()) return poetry + " add" + joined(request);
  const std::string name = shell_word(request.index_name);
  const ByIndex words = by_index(request);
  return poetry + " source add --priority=explicit " + name + " " + shell_word(request.index) +
         " && " + poetry + " add --source " + name + words.on_index +
         (words.beside.empty() ? "" : " && " + poetry + " add" + words.beside);
}

// In an environment whose torch is a wheel: what conda has no record of is one as well.
bool is_of_wheels(const facts::PythonEnv& env, const InstallRequest& request) {
  if (find_distribution(env, "torch") == nullptr || !conda_torch_packages(env).empty())
    return false;
  return std::any_of(request.requirements.begin(), request.requirements.end(),
                     [&](const std::string& one) {
                       const facts::Distribution* have =
                           find_distribution(env, one.substr(0, one.find_first_of("=<>!~[ ")));
                       return have == nullptr || have->kind != "conda-meta";
                     });
}

std::string by_conda(const facts::PythonEnv& env, const Owner& owner,
                     const InstallRequest& request) {
  std::string words;
  for (std::string spec : request.requirements) {
    if (const size_t equals = spec.find("=="); equals != std::string::npos) spec.erase(equals, 1);
    words += " " + shell_word(spec);
  }
  const bool repair = request.kind == InstallKind::repair;
  const bool update = request.kind == InstallKind::update;
  if (owner.installer == Installer::pixi) {
    const std::string place = pixi_place(env, owner);
    if (!repair) return (update ? "pixi update" : "pixi add") + place + words;
    std::string out = "pixi reinstall";
    if (!owner.folder.empty()) out += " --manifest-path " + shell_word(owner.folder);
    for (const std::string& one : request.requirements)
      out += " " + shell_word(one.substr(0, one.find_first_of("=<>!~ ")));
    return out;
  }
  // "(claimed)": a text that names no path; whoever reads the command has activated it.
  return std::string(update ? "conda update" : "conda install") +
         (repair ? " --force-reinstall" : "") +
         (is_claimed(env) ? "" : " -p " + shell_word(env.path)) + " -c conda-forge" + words;
}

std::string by_lock(const Owner& owner, const InstallRequest& request) {
  const std::string at = " -o " + shell_word(owner.folder),
                    from = " --lock " + shell_word(owner.folder);
  if (request.kind == InstallKind::repair)
    return "cufit env create --force " + shell_word(owner.lock_class) + from;
  return "cufit lock" + at + " && cufit env create" + from;
}

}  // namespace

Owner owner_of(const facts::PythonEnv& env, bool of_torch) {
  Owner owner;
  if (read_lock_path(env.path, owner)) return owner;
  owner.folder = env.project;
  if (env.externally_managed) return {Installer::new_venv, {}, {}};
  if (env.kind == "image") return {Installer::image, {}, {}};
  const facts::Distribution* torch = find_distribution(env, "torch");
  const bool conda = env.installer == "conda";
  if (conda && of_torch && replaces_conda_torch(env)) return owner;
  // A pip torch inside a conda environment must be replaced by pip: conda would add a second copy
  // beside it. (conda's own has a record of a wheel as well, which names conda.)
  if (conda && torch != nullptr && torch->kind != "conda-meta" && torch->installer != "conda") {
    owner.installer = torch->installer == "uv" ? Installer::uv : Installer::pip;
    return owner;
  }
  if (env.installer == "conda") owner.installer = Installer::conda;
  if (env.installer == "pixi") owner.installer = Installer::pixi;
  if (env.installer == "poetry") owner.installer = Installer::poetry;
  if (env.installer == "pdm") owner.installer = Installer::pdm;
  if (env.installer == "pipenv") owner.installer = Installer::pipenv;
  if (env.installer == "uv")
    owner.installer = env.project.empty() ? Installer::uv : Installer::uv_project;
  return owner;
}

std::string install_command(const Input& input, const facts::PythonEnv& env, const Owner& owner,
                            const InstallRequest& asked) {
  const InstallRequest request = with_settings(input, asked);
  switch (owner.installer) {
    case Installer::pip:
      return by_pip(input, env, request);
    case Installer::uv:
      return in_uv_venv(input, env, request);
    case Installer::uv_project:
      return raised_python(input, env, owner, request) + in_uv_project(env, owner, request);
    case Installer::poetry:
      return by_poetry(env, owner, request);
    case Installer::pdm:
    case Installer::pipenv:
      // The version of the lock, so that a sync changes nothing.
      if (request.kind == InstallKind::repair) return by_pip(input, env, request);
      if (owner.installer == Installer::pipenv) return by_pipenv(owner, request);
      return raised_python(input, env, owner, request) + by_pdm(owner, request);
    case Installer::pixi:
      if (request.kind == InstallKind::change && is_of_wheels(env, request))
        return by_pixi(env, owner, request);
      return by_conda(env, owner, request);
    case Installer::conda:
      return by_conda(env, owner, request);
    case Installer::image:
      return "python3 -m pip install --no-cache-dir" + pip_arguments(request);
    case Installer::new_venv:
      return in_new_venv(input, env, request);
    case Installer::lock:
      return by_lock(owner, request);
  }
  return {};
}

UvCall uv_call(const Input& input, const facts::PythonEnv& env, const Owner& owner) {
  if (input.facts.system.uv || (owner.installer == Installer::uv && !lacks_uv(input)))
    return {"", "uv"};
  std::string python = python_word(env), first;
  if (owner.installer == Installer::new_venv) {
    first = venv_command(input, env, ".venv") + " && ";
    python = ".venv/bin/python";
  }
  return {first + python + " -m pip install uv && ", python + " -m uv"};
}

std::string remove_command(const Input& input, const facts::PythonEnv& env,
                           const std::string& package) {
  const Owner owner = owner_of(env, false);
  const std::string name = " " + shell_word(package);
  const std::string folder = owner.folder.empty() ? "" : shell_word(owner.folder);
  switch (owner.installer) {
    case Installer::uv:
      if (!lacks_uv(input)) return "uv pip uninstall --python " + python_word(env) + name;
      break;
    case Installer::uv_project:
      return "uv remove --project " + folder + name;
    case Installer::poetry:
      return "poetry" + (folder.empty() ? "" : " --directory " + folder) + " remove" + name;
    case Installer::pdm:
      return "pdm remove -p " + folder + name;
    case Installer::pipenv:
      return "PIPENV_PIPFILE=" + shell_word(owner.folder + "/Pipfile") + " pipenv uninstall" + name;
    case Installer::pixi:
      return "pixi remove" + pixi_place(env, owner) + name;
    case Installer::conda:
      return "conda remove -y" + (is_claimed(env) ? "" : " -p " + shell_word(env.path)) + name;
    case Installer::lock:
      return by_lock(owner, {});
    default:
      break;
  }
  return python_word(env) + " -m pip uninstall -y" + name;
}

}  // namespace cufit::checks
