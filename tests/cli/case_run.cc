// SPDX-License-Identifier: Apache-2.0
#include "cli/case_run.h"

#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

namespace cufit::cli_tests {

namespace {

std::string read_all(int handle) {
  std::string out;
  char buffer[4096];
  ssize_t count;
  while ((count = read(handle, buffer, sizeof buffer)) > 0)
    out.append(buffer, static_cast<size_t>(count));
  return out;  // a pseudo-terminal ends with EIO
}

int exit_code_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The child's environment is a fixed one: no variable of the tester changes a golden text, and no signal that whoever
// started the tests ignores (a shell ignores SIGINT for what it starts with &).
[[noreturn]] void run_shell(const std::string& script, const Place& place) {
  if (chdir(place.tree.c_str()) != 0) _exit(127);
  for (const int number : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM}) signal(number, SIG_DFL);
  const std::string program = "CUFIT=" + place.program.string();
  const std::string scratch = "TMP=" + place.scratch.string();
  const char* environment[] = {program.c_str(), scratch.c_str(), "PATH=/usr/bin:/bin",
                               "LANG=C",        "TERM=xterm",    nullptr};
  execle("/bin/sh", "sh", "-c", script.c_str(), nullptr, const_cast<char* const*>(environment));
  _exit(127);
}

}  // namespace

Outcome run_piped(const std::string& script, const Place& place) {
  const std::filesystem::path err = place.scratch / "stderr.txt";
  int ends[2];
  if (pipe(ends) != 0) return {"", "pipe failed", 127};
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    const int handle = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(handle, STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    run_shell(script, place);
  }
  close(ends[1]);
  Outcome outcome;
  outcome.out = read_all(ends[0]);
  close(ends[0]);
  outcome.code = exit_code_of(child);
  std::ostringstream text;
  text << std::ifstream(err, std::ios::binary).rdbuf();
  outcome.err = text.str();
  return outcome;
}

Outcome run_on_terminal(const std::string& script, const Place& place, int columns) {
  winsize size{};
  size.ws_row = 50;
  size.ws_col = static_cast<unsigned short>(columns);
  int master = -1;
  const pid_t child = forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) run_shell(script, place);
  if (child < 0) return {"", "", k_no_terminal};
  Outcome outcome;
  outcome.out = read_all(master);
  close(master);
  outcome.code = exit_code_of(child);
  return outcome;
}

}  // namespace cufit::cli_tests
