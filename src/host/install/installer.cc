// SPDX-License-Identifier: Apache-2.0
#include "host/install/installer.h"

#include "host/install/installer_run.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/format.h"
#include "base/shell_word.h"
#include "base/version.h"

namespace cufit::host {
namespace {

namespace fs = std::filesystem;

constexpr double k_version_seconds = 30;  // a cold interpreter on a network file system
constexpr size_t k_quoted_lines = 30;
constexpr const char* k_programs[] = {"uv", "pip", "conda", "pixi"};  // as Installer::Kind

const Version k_oldest_uv = *parse_version("0.7");  // the first that writes and installs a pylock

// "uv 0.13.9 (x86_64-...)", "pip 25.1 from ..." -> the number; empty = it does not answer so.
std::string version_in(std::string_view text, std::string_view program) {
  const std::vector<std::string_view> words = split(trim(text.substr(0, text.find('\n'))), ' ');
  // micromamba and mamba 2 say the number alone, mamba 1 its own name.
  if (program == "conda" && words.size() == 1 && parse_version(words[0]))
    return std::string(words[0]);
  const bool named =
      !words.empty() && (words[0] == program || (program == "conda" && words[0] == "mamba"));
  if (words.size() < 2 || !named || !parse_version(words[1])) return {};
  return std::string(words[1]);
}

// `python -m uv` would take a uv.py of the working folder before the installed one (`-P` is of
// Python 3.11, and PYTHONSAFEPATH would reach the builds below). Nothing is imported before the
// working folder is off the path: `sys` is built in.
constexpr const char* k_module_outside =
    "import sys; sys.path[:] = [p for p in sys.path if p]; import runpy; del sys.argv[0]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)";

// What is started of a command as it is shown.
Result<ChildOutcome> start_installer(ChildOptions options, Interrupts& interrupts) {
  if (options.command.size() > 2 && options.command[1] == "-m") {
    options.command[1] = "-c";
    options.command.insert(options.command.begin() + 2, k_module_outside);
  }
  return run_child(options, interrupts);
}

bool is_program(const std::string& path) {
  return ::access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path);
}

std::string last_lines(const std::string& text) {
  const std::vector<std::string_view> lines = split_lines(trim(text));
  const size_t first = lines.size() > k_quoted_lines ? lines.size() - k_quoted_lines : 0;
  std::string out;
  for (size_t i = first; i < lines.size(); ++i)
    out += (i == first ? "" : "\n") + std::string(lines[i]);
  return out;
}

Error install_failure(const Installer& installer, const std::string& doing,
                      const ChildOutcome& outcome, bool shown) {
  if (outcome.code > 128 && outcome.code < 192)
    return fail(Code::io, format("{} was ended by signal {} while {}", installer.name(),
                                 outcome.code - 128, doing));
  const std::string said = last_lines(outcome.err);
  const std::string text =
      shown || said.empty()
          ? format("{} failed while {} (exit code {})", installer.name(), doing, outcome.code)
          : format("{} failed while {}; it says:\n{}", installer.name(), doing, said);
  return fail(contains(outcome.err, "No space left on device") ? Code::io : Code::malformed, text);
}

ChildOptions command_of(const Installer& installer, const std::vector<std::string>& words,
                        const IndexChoice& index) {
  ChildOptions out;
  out.command = installer.command;
  out.command.insert(out.command.end(), words.begin(), words.end());
  if (installer.kind != Installer::Kind::uv) {
    out.variables.emplace_back("PIP_NO_INPUT", "1");
    out.variables.emplace_back("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    return out;
  }
  // What cufit says itself: the variant, and which Python is meant.
  for (const char* name : {"UV_TORCH_BACKEND", "UV_SYSTEM_PYTHON"})
    out.variables.emplace_back(name, std::nullopt);
  if (!index.indexes.empty()) {
    std::string all = join(index.indexes, " ");
    const char* before = std::getenv("UV_INDEX");
    if (before != nullptr && *before != '\0') all += " " + std::string(before);
    out.variables.emplace_back("UV_INDEX", all);
  }
  if (!index.default_index.empty())
    out.variables.emplace_back("UV_DEFAULT_INDEX", index.default_index);
  if (index.offline) out.command.push_back("--offline");
  return out;
}

// pip writes the environment's path into every script: they are made in one place and moved.
Result<void> rewrite_scripts(const std::string& folder, const std::string& from,
                             const std::string& to) {
  constexpr uintmax_t k_largest_script = 1u << 20;
  std::error_code error;
  std::vector<fs::path> files{fs::path(folder) / "pyvenv.cfg"};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder + "/bin", error))
    files.push_back(entry.path());
  for (const fs::path& file : files) {
    if (!fs::is_regular_file(fs::symlink_status(file, error)) ||
        fs::file_size(file, error) > k_largest_script)
      continue;
    std::ifstream in(file, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    in.close();
    if (text.find('\0') != std::string::npos || text.find(from) == std::string::npos) continue;
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out << text;
    out.close();
    if (!out) return fail(Code::io, format("`{}` cannot be written", file.string()));
  }
  return {};
}

std::string machine() {
  utsname name{};
  return uname(&name) == 0 ? name.machine : "";
}

}  // namespace

Installer ask_installer(Installer::Kind kind, std::vector<std::string> command,
                        Interrupts& interrupts, std::string& why) {
  Installer out{kind, std::move(command), {}, {}};
  ChildOptions options;
  options.command = out.command;
  options.command.push_back("--version");
  options.seconds = k_version_seconds;
  const Result<ChildOutcome> answer = start_installer(options, interrupts);
  if (!answer) {
    why = answer.error().text();
    return out;
  }
  const std::string program = k_programs[static_cast<int>(kind)];
  out.version = version_in(answer->out, program);
  if (out.version.empty())
    why = answer->timed_out ? format("`{}` did not answer within {} s", out.command[0],
                                     static_cast<int>(k_version_seconds))
                            : format("`{}` does not say a version", join(options.command, " "));
  return out;
}

std::string program_in_path(const Host& host, const std::string& name) {
  const std::string path = host.variable("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (const std::string_view folder : split(path, ':')) {
    if (folder.empty()) continue;
    std::string program = std::string(folder) + "/" + name;
    if (is_program(program)) return program;
  }
  return {};
}

Result<ChildOutcome> run_installer(const Installer& installer, ChildOptions options,
                                   const std::string& doing, Interrupts& interrupts) {
  Result<ChildOutcome> outcome = start_installer(options, interrupts);
  if (!outcome) return outcome;
  if (outcome->code != 0) return install_failure(installer, doing, *outcome, options.show);
  return outcome;
}

std::string Installer::name() const {
  const std::string called = program.empty() ? k_programs[static_cast<int>(kind)] : program;
  return version.empty() ? called : called + " " + version;
}

Result<Installer> find_uv(const Host& host, Interrupts& interrupts) {
  std::string why;
  const std::string given = host.variable("CUFIT_UV").value_or("");
  std::vector<std::vector<std::string>> places;
  if (!given.empty()) {
    places.push_back({given});
  } else {
    const std::string active = host.variable("VIRTUAL_ENV").value_or("");
    if (std::string found = program_in_path(host, "uv"); !found.empty()) places.push_back({found});
    if (!active.empty() && is_program(active + "/bin/uv")) places.push_back({active + "/bin/uv"});
    if (std::string python = program_in_path(host, "python3"); !python.empty())
      places.push_back({python, "-m", "uv"});
  }
  for (std::vector<std::string>& place : places) {
    Installer uv = ask_installer(Installer::Kind::uv, std::move(place), interrupts, why);
    if (interrupts.caught() != 0) return fail(Code::cancelled, why);
    if (uv.version.empty()) continue;
    if (*parse_version(uv.version) < k_oldest_uv)
      return fail(Code::unsupported,
                  format("`{}` is uv {}; cufit needs {} or newer (`uv self update`, or `python3 -m "
                         "pip install -U uv`)",
                         uv.command[0], uv.version, k_oldest_uv.text()));
    return uv;
  }
  if (!given.empty()) return fail(Code::not_found, format("CUFIT_UV: {}", why));
  return fail(
      Code::not_found,
      "uv is not found: `python3 -m venv .venv && .venv/bin/pip install uv`, then name it by "
      "CUFIT_UV=.venv/bin/uv");
}

bool may_have_uv(const Host& host) {
  const std::string active = host.variable("VIRTUAL_ENV").value_or("");
  return host.variable("CUFIT_UV").has_value() || !program_in_path(host, "uv").empty() ||
         (!active.empty() && is_program(active + "/bin/uv"));
}

Result<Installer> find_installer(const Host& host, const std::string& python,
                                 Interrupts& interrupts) {
  Result<Installer> uv = find_uv(host, interrupts);
  if (uv || uv.error().code != Code::not_found || host.variable("CUFIT_UV")) return uv;
  if (Result<Installer> pip = find_pip(host, python, interrupts)) return pip;
  return fail(
      Code::not_found,
      "neither uv nor pip is found: `python3 -m venv .venv && .venv/bin/pip install uv`, then name "
      "uv by CUFIT_UV=.venv/bin/uv");
}

Result<Installer> find_pip(const Host& host, const std::string& python, Interrupts& interrupts) {
  const std::string interpreter = python.empty() ? program_in_path(host, "python3") : python;
  std::string why;
  if (!interpreter.empty()) {
    Installer pip =
        ask_installer(Installer::Kind::pip, {interpreter, "-m", "pip"}, interrupts, why);
    if (!pip.version.empty()) return pip;
  }
  return fail(Code::not_found, "pip is not found: `python3 -m ensurepip`, or `--installer uv`");
}

Result<void> compile(const Installer& uv, const CompileRequest& request, Interrupts& interrupts) {
  std::vector<std::string> words = {"pip", "compile"};
  bool project = false;
  for (const std::string& input : request.inputs) {
    words.push_back(input);
    project = project || ends_with(input, "pyproject.toml");
  }
  const auto add = [&](const char* option, const std::string& value) {
    words.push_back(option);
    words.push_back(value);
  };
  for (const std::string& extra : request.extras) add("--extra", extra);
  if (!request.constraints.empty()) add("--constraints", request.constraints);
  add("--format", "pylock.toml");
  add("--output-file", request.output);
  add("--python-version", request.python);
  add("--python-platform", request.platform);
  if (!request.torch_backend.empty()) add("--torch-backend", request.torch_backend);
  for (const std::string& package : request.left_out) add("--no-emit-package", package);
  // A project's [tool.uv.sources] may tie torch to one variant's index; the class decides that.
  if (project)
    for (const char* package : {"torch", "torchvision", "torchaudio"})
      add("--no-sources-package", package);
  for (const char* option : {"--no-header", "--no-progress", "--no-python-downloads"})
    words.push_back(option);
  add("--color", "never");
  ChildOptions options = command_of(uv, words, request.index);
  Result<ChildOutcome> outcome = start_installer(options, interrupts);
  if (!outcome) return outcome.error();
  if (outcome->code == 0) return {};
  if (contains(outcome->err, "No solution found"))
    return fail(Code::malformed, last_lines(outcome->err));
  Error error = install_failure(uv, "resolving the packages", *outcome, false);
  error.code = Code::io;
  return error;
}

std::string interpreter_of(const std::string& folder) { return folder + "/bin/python"; }

Result<void> make_environment(const Installer& installer, const InstallRequest& request,
                              Interrupts& interrupts) {
  const bool is_uv = installer.kind == Installer::Kind::uv;
  ChildOptions options;
  if (is_uv) {
    options = command_of(
        installer,
        {"venv", "--relocatable", "--no-project", "--python", request.python, "--color", "never",
         "--prompt", request.final_folder.substr(request.final_folder.rfind('/') + 1),
         request.folder},
        request.index);
  } else {
    options.command = {installer.command[0], "-m", "venv", request.folder};
  }
  options.show = request.show;
  const std::string doing = format("making an environment for Python {}", request.python);
  const Result<ChildOutcome> outcome = run_installer(installer, options, doing, interrupts);
  if (!outcome) return outcome.error();
  return {};
}

Result<void> install(const Installer& installer, const InstallRequest& request,
                     const formats::Pylock& lock, Interrupts& interrupts) {
  const std::string interpreter = interpreter_of(request.folder);
  ChildOptions options;
  if (installer.kind == Installer::Kind::uv) {
    std::vector<std::string> words = {"pip", "sync", request.pylock};
    if (request.in_conda) words = {"pip", "install", "--no-deps", "-r", request.pylock};
    for (const char* word : {"--python", interpreter.c_str(), "--strict", "--color", "never"})
      words.emplace_back(word);
    // Two lines per file would push the reason of a failure out of the lines that are quoted;
    // --no-progress of uv 0.13.9 leaves them.
    if (!request.show) words.emplace_back("--quiet");
    options = command_of(installer, words, request.index);
  } else {
    CUFIT_TRY(text, pip_requirements(lock, request.python, machine()));
    // pip fetches what is named by address whatever its options say; --no-index is about names.
    if (request.index.offline && contains(text, " @ http"))
      return fail(Code::unsupported,
                  "pip cannot install a lock offline: leave `--offline` out, or "
                  "`cufit env create --installer uv`");
    const std::string file = request.folder + "/cufit-requirements.txt";
    std::ofstream out(file, std::ios::binary);
    out << text;
    out.close();
    if (!out) return fail(Code::io, format("`{}` cannot be written", file));
    Installer inside = installer;
    inside.command = {interpreter, "-m", "pip"};
    options = command_of(inside, {"install", "--no-deps", "--require-hashes", "-r", file}, {});
    if (request.index.offline) options.command.push_back("--no-index");
  }
  // A package of the user's own site would pass for an installed one: only a venv shuts it out.
  if (request.in_conda) options.variables.emplace_back("PYTHONNOUSERSITE", "1");
  options.show = request.show;
  const Result<ChildOutcome> outcome =
      run_installer(installer, options, "installing the packages", interrupts);
  if (!outcome) return outcome.error();
  if (installer.kind == Installer::Kind::pip || request.in_conda)
    return rewrite_scripts(request.folder, request.folder, request.final_folder);
  return {};
}

std::string cache_folder(const Installer& installer, Interrupts& interrupts) {
  ChildOptions options;
  options.command = installer.command;
  options.command.insert(options.command.end(), {"cache", "dir"});
  options.seconds = k_version_seconds;
  const Result<ChildOutcome> outcome = start_installer(options, interrupts);
  return outcome && outcome->code == 0 ? std::string(trim(outcome->out)) : std::string();
}

Result<std::string> pip_requirements(const formats::Pylock& lock, const std::string& python,
                                     const std::string& machine) {
  std::string out;
  for (const formats::PylockPackage& package : lock.packages) {
    if (!formats::applies(package, python, machine)) continue;
    std::vector<const formats::PylockFile*> files;
    for (const formats::PylockFile& wheel : package.wheels) files.push_back(&wheel);
    if (files.empty() && package.archive) files.push_back(&*package.archive);
    if (files.empty() && package.sdist) files.push_back(&*package.sdist);
    std::string sum;
    for (const formats::PylockFile* file : files)
      for (const auto& [kind, value] : file->hashes)
        if (kind == "sha256") sum += " --hash=sha256:" + value;
    if (sum.empty())
      return fail(Code::unsupported, format("pip cannot install `{}` from the lock: it has no file "
                                            "with a sha256; install uv",
                                            package.name));
    if (files.size() == 1 && !files[0]->url.empty())
      out += format("{} @ {}{}\n", package.name, files[0]->url, sum);
    else
      out += format("{}=={}{}\n", package.name, package.version, sum);
  }
  return out;
}

}  // namespace cufit::host
