// SPDX-License-Identifier: Apache-2.0
#include "host/process/start_program.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/process/spawn.h"

namespace cufit::host {
namespace {

constexpr const char* k_default_path = "/usr/local/bin:/usr/bin:/bin";  // where PATH is not set

std::string path_of(const std::vector<std::string>& variables) {
  for (const std::string& each : variables)
    if (starts_with(each, "PATH=")) return each.substr(5);  // empty is not the default
  return k_default_path;
}

// 0 = may be executed; else the errno of a try.
int refusal(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (::access(path.c_str(), X_OK) != 0) return errno;
  // For the super-user access() also says yes where no bit is set; execve does not.
  return (status.st_mode & 0111) != 0 ? 0 : EACCES;
}

// "/usr/bin/env" of "#!/usr/bin/env python"; empty where there is no such line.
std::string script_interpreter(const std::string& path) {
  char head[256];
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  const ssize_t got = ::read(file, head, sizeof head);
  ::close(file);
  const std::string_view line = interpreter_line({head, got > 0 ? static_cast<size_t>(got) : 0});
  return formats::printable(line.substr(0, line.find_first_of(" \t")), 256);
}

}  // namespace

std::string_view interpreter_line(std::string_view head) {
  if (!starts_with(head, "#!")) return {};
  return trim(head.substr(
      2, head.find('\n') == std::string_view::npos ? std::string_view::npos : head.find('\n') - 2));
}

facts::StartFailure start_failure(int number, const std::string& path) {
  facts::StartFailure out;
  out.program = formats::printable(path, 4096);
  out.exit_code = 126;
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      out.detail = script_interpreter(path);
      if (out.detail.empty()) out.exit_code = 127;
      out.reason = out.detail.empty() ? "not_found" : "interpreter";
      break;
    case EISDIR:
      out.reason = "directory";
      break;
    case EACCES:
      out.reason = "no_permission";
      break;
    case ENOEXEC:
      out.reason = "format";
      break;
    default:
      out.reason = "other";
      out.detail = std::strerror(number);
  }
  return out;
}

std::vector<std::string> activated_variables(const Host& host, const std::string& env,
                                             const std::string& class_name) {
  std::vector<std::string> out;
  std::string path = k_default_path;
  const bool conda = host.exists(env + "/conda-meta");
  const auto replaced = [&](const std::string& name) {
    for (const char* one :
         {"PATH", "VIRTUAL_ENV", "PYTHONHOME", "VIRTUAL_ENV_PROMPT", "CUFIT_CLASS"})
      if (name == one) return true;
    return conda && (name == "CONDA_PREFIX" || name == "CONDA_DEFAULT_ENV" ||
                     name == "CONDA_PROMPT_MODIFIER" || name == "PYTHONNOUSERSITE");
  };
  for (const auto& [name, value] : host.variables()) {
    if (name == "PATH") path = value;
    if (!replaced(name)) out.push_back(name + "=" + value);
  }
  out.push_back("PATH=" + env + "/bin" + (path.empty() ? "" : ":" + path));
  if (conda) {
    out.push_back("CONDA_PREFIX=" + env);
    out.push_back("CONDA_DEFAULT_ENV=" + env);
    // The user's own packages would come before those of the lock; a venv shuts them out.
    out.push_back("PYTHONNOUSERSITE=1");
  } else {
    out.push_back("VIRTUAL_ENV=" + env);
    out.push_back("VIRTUAL_ENV_PROMPT=" + class_name);
  }
  out.push_back("CUFIT_CLASS=" + class_name);
  return out;
}

FoundProgram find_program(const std::string& word, const std::vector<std::string>& variables) {
  if (word.empty()) return {{}, {127, "not_found", "", ""}};
  if (word.find('/') != std::string::npos) {
    if (const int number = refusal(word)) return {{}, start_failure(number, word)};
    return {word, {}};
  }
  FoundProgram out;
  out.failure = {127, "not_found", formats::printable(word, 4096), ""};
  const std::string folders = path_of(variables);
  for (std::string_view folder : split(folders, ':')) {
    // An empty element is the working directory.
    const std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + word;
    const int number = refusal(path);
    if (number == 0) return {path, {}};
    // As execvp: what may not be executed is passed over, and told where nothing better comes.
    if (number == EACCES && out.failure.exit_code == 127) out.failure = start_failure(EACCES, path);
  }
  return out;
}

facts::StartFailure replace_process(const std::string& path,
                                    const std::vector<std::string>& command,
                                    const std::vector<std::string>& variables) {
  return start_failure(become_program(path, command, variables), path);
}

}  // namespace cufit::host
