// SPDX-License-Identifier: Apache-2.0
#include "host/quota/program_kind.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>

#include "base/format.h"
#include "base/path.h"
#include "base/variables.h"
#include "formats/binary/elf.h"
#include "formats/python/version_py.h"
#include "host/process/start_program.h"

namespace cufit::host {
namespace {

// Scripts whose interpreter is a script: Linux follows five.
constexpr int k_most_interpreters = 5;

// "/usr/bin/python3" of "#!/usr/bin/env python3"; empty = no script.
std::string program_of_script(const Host& files, const std::string& path,
                              const std::vector<std::string>& variables) {
  const Result<std::string> head = files.read_head(path, 256);
  if (!head) return {};
  const std::string_view line = interpreter_line(*head);
  const std::string first(line.substr(0, line.find_first_of(" \t")));
  if (!ends_with(first, "/env")) return first;
  // Its options and variables stand before the program: "-S", "-u", "A=b".
  std::string_view rest = trim(line.substr(first.size()));
  while (!rest.empty()) {
    std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
    rest = trim(rest.substr(word.size()));
    if (starts_with(word, "-S") && word.size() > 2) word.remove_prefix(2);  // "-Spython3"
    if (word[0] != '-' && word.find('=') == std::string_view::npos)
      return find_program(std::string(word), variables).path;
  }
  return {};
}

// No program gains any: this process gave that up, or the file system does not let it.
bool gains_nothing(const std::string& path) {
  struct statvfs system {};
  return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
         (::statvfs(path.c_str(), &system) == 0 && (system.f_flag & ST_NOSUID) != 0);
}

// AT_SECURE of getauxval(3): the loader then takes nothing from LD_PRELOAD.
bool gains_privileges(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || gains_nothing(path)) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != ::getgid()) return true;
  return ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

ProgramKind::Links links_of(const Host& files, const std::string& path) {
  using Links = ProgramKind::Links;
  if (gains_privileges(path)) return Links::secure;
  const auto source = files.open(path);
  if (!source || !formats::is_elf(**source)) return Links::not_read;
  const Result<formats::ElfFile> elf = formats::read_elf(**source, {false, false, false});
  if (!elf) return Links::not_read;
  if (elf->interpreter.find("ld-musl") != std::string::npos) return Links::musl;
  return elf->interpreter.empty() ? Links::static_linked : Links::dynamic;
}

std::optional<Version> torch_in(const Host& files, const std::string& prefix) {
  const auto names = files.list(prefix + "/lib");
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    if (!starts_with(name, "python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const auto text = files.read_file(
          format("{}/lib/{}/{}/torch/version.py", prefix, name, packages), size_t{64} << 10);
      if (!text) continue;
      const formats::TorchVersionFile torch = formats::parse_torch_version(*text);
      if (torch.version.text) return parse_version(*torch.version.text);
    }
  }
  return std::nullopt;
}

bool is_python(const std::string& path) { return starts_with(file_name(path), "python"); }

// The Python that is meant: the program or its interpreter; else the one that it would find.
std::string python_of(const std::vector<std::string>& paths,
                      const std::vector<std::string>& variables) {
  for (const std::string& path : paths)
    if (is_python(path)) return path;
  for (const char* name : {"python", "python3"})
    if (const std::string found = find_program(name, variables).path; !found.empty()) return found;
  return {};
}

// Where a Python that no environment holds imports from as well: packages of pip beside those of the system. The lowest
// version counts: an older torch than was found here would not take its setting.
std::optional<Version> torch_of_system(const Host& files,
                                       const std::vector<std::string>& variables) {
  std::vector<std::string> prefixes = {"/usr/local", "/usr"};
  if (const std::string home = variable_value(variables, "HOME"); !home.empty())
    prefixes.push_back(home + "/.local");
  std::optional<Version> out;
  for (const std::string& prefix : prefixes)
    if (const auto torch = torch_in(files, prefix); torch && (!out || *torch < *out)) out = torch;
  return out;
}

std::optional<Version> torch_of(const Host& files, const std::vector<std::string>& paths,
                                const std::vector<std::string>& variables) {
  const std::string python = python_of(paths, variables);
  const size_t slash = python.rfind('/');
  if (slash != std::string::npos) {
    const std::string bin = python.substr(0, slash);
    if (bin == "/usr/bin" || bin == "/bin" || bin == "/usr/local/bin")
      return torch_of_system(files, variables);
    return torch_in(files, bin + "/..");
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string prefix = variable_value(variables, name); !prefix.empty())
      if (auto torch = torch_in(files, prefix)) return torch;
  return std::nullopt;
}

}  // namespace

ProgramKind read_program_kind(const Host& files, const std::string& program,
                              const std::vector<std::string>& variables) {
  ProgramKind out;
  out.path = program;
  std::vector<std::string> paths = {program};
  for (int i = 0; i < k_most_interpreters; ++i) {
    const std::string next = program_of_script(files, out.path, variables);
    if (next.empty()) break;
    out.path = next;
    paths.push_back(next);
  }
  out.links = links_of(files, out.path);
  out.torch = torch_of(files, paths, variables);
  return out;
}

}  // namespace cufit::host
