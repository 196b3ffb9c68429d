// SPDX-License-Identifier: Apache-2.0
#include "host/process/spawn.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "host/process/child_setup.h"

namespace cufit::host {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

bool redirect(int file, int target) { return file < 0 || dup2(file, target) >= 0; }

// Where SIGCHLD is ignored, a child's exit code is lost. Otherwise it is left alone: to set it would
// discard one that waits for its signalfd.
void keep_exit_codes() {
  struct sigaction now {};
  if (sigaction(SIGCHLD, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) signal(SIGCHLD, SIG_DFL);
}

void read_nothing() {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file == STDIN_FILENO)
    (void)fcntl(file, F_SETFD, 0);  // cufit was started without one
  else
    redirect(file, STDIN_FILENO);
}

// The child's side; returns the errno of why the program could not be started.
int enter_program(const SpawnOptions& options, char* const* command, char* const* environment,
                  pid_t parent) {
  if (options.signal_with_parent != 0) {
    prctl(PR_SET_PDEATHSIG, options.signal_with_parent);
    if (getppid() != parent) _exit(127);  // it ended before prctl took effect
  }
  if (options.own_group) setpgid(0, 0);
  if (options.before) options.before();
  for (const auto& [name, value] : options.variables) {
    if (value)
      setenv(name.c_str(), value->c_str(), 1);
    else
      unsetenv(name.c_str());
  }
  if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) return errno;
  if (options.empty_input) read_nothing();
  if (!redirect(options.in, STDIN_FILENO)) return errno;
  if (!redirect(options.out, STDOUT_FILENO) || !redirect(options.err, STDERR_FILENO)) return errno;
  if (options.default_signals)
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigprocmask(SIG_SETMASK, &options.blocked, nullptr);
  const char* program = options.path.empty() ? command[0] : options.path.c_str();
  if (environment != nullptr)
    execve(program, command, environment);
  else
    execvp(program, command);
  return errno;
}

// noexcept: an exception must end the child here and never unwind into the parent's own work.
[[noreturn]] void run_worker(const Host& host, const std::function<void(int)>& work, int pipe,
                             pid_t parent) noexcept {
  work(set_up_child(host, pipe, parent));
  _exit(0);
}

Error no_process() { return fail(Code::io, format("fork: {}", std::strerror(errno))); }

}  // namespace

void FileHandle::reset(int number) {
  if (number_ >= 0) close(number_);
  number_ = number;
}

Result<Pipe> open_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return fail(Code::io, format("pipe: {}", std::strerror(errno)));
  return Pipe{FileHandle(ends[0]), FileHandle(ends[1])};
}

int SpawnedProgram::start_error(bool wait) {
  if (!wait) (void)fcntl(failure.get(), F_SETFL, O_NONBLOCK);
  int number = 0;
  ssize_t count = 0;
  do count = read(failure.get(), &number, sizeof number);
  while (count < 0 && errno == EINTR);
  failure.reset();
  return count == sizeof number ? number : 0;
}

Result<SpawnedProgram> spawn_program(const SpawnOptions& options) {
  CUFIT_TRY(failure, open_pipe());
  std::vector<char*> command = pointers(options.command), environment;
  if (options.environment) environment = pointers(*options.environment);
  keep_exit_codes();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return no_process();
  if (pid == 0) {
    const int why = enter_program(options, command.data(),
                                  options.environment ? environment.data() : nullptr, parent);
    (void)!write(failure.write_end.get(), &why, sizeof why);
    _exit(127);
  }
  return SpawnedProgram{pid, std::move(failure.read_end)};
}

Result<SpawnedWorker> spawn_worker(const Host& host, const std::function<void(int pipe)>& work) {
  CUFIT_TRY(answers, open_pipe());
  keep_exit_codes();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return no_process();
  if (pid == 0) run_worker(host, work, answers.write_end.get(), parent);
  return SpawnedWorker{pid, std::move(answers.read_end)};
}

int become_program(const std::string& path, const std::vector<std::string>& command,
                   const std::vector<std::string>& environment) {
  execve(path.c_str(), pointers(command).data(), pointers(environment).data());
  return errno;
}

}  // namespace cufit::host
