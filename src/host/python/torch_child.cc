// SPDX-License-Identifier: Apache-2.0
#include "host/python/torch_child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "host/driver/driver_calls.h"
#include "host/probe.h"
#include "host/python/torch_script.h"

namespace cufit::host {
namespace {

constexpr size_t k_torch_child_keep_bytes = 64u << 10;
constexpr size_t k_answer_bytes = 400;
constexpr double k_torch_child_kill_grace_seconds = 2;
// Importing torch from a cold network file system takes a minute; the first context on 8 GPUs
// another.
constexpr double k_torch_seconds = 180;

struct Pipe {
  int read_end = -1, write_end = -1;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0], write_end = ends[1];
    return true;
  }
  static void close_one(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
  ~Pipe() { close_one(read_end), close_one(write_end); }
};

std::vector<char*> argument_pointers(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void become(char* const* arguments, char* const* environment, int out, int err,
                         int failed, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  setpgid(0, 0);  // so that its own children end with it
  for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int null = open("/dev/null", O_RDONLY);
  dup2(null, 0), dup2(out, 1), dup2(err, 2);
  if (chdir("/") == 0) execve(arguments[0], arguments, environment);
  int number = errno;
  ssize_t ignored = write(failed, &number, sizeof number);
  (void)ignored;
  _exit(127);
}

void keep_tail(std::string& text) {
  if (text.size() > 2 * k_torch_child_keep_bytes)
    text.erase(0, text.size() - k_torch_child_keep_bytes);
}

// Reads both until they are closed or the time is over.
bool drain(Pipe& out, Pipe& err, ProgramResult& result, double deadline) {
  while (out.read_end >= 0 || err.read_end >= 0) {
    double left = deadline - DriverCalls::now();
    if (left <= 0) return false;
    pollfd polled[2] = {{out.read_end, POLLIN, 0},
                        {err.read_end, POLLIN, 0}};  // a negative one is skipped
    if (poll(polled, 2, static_cast<int>(left * 1000) + 1) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      int& end = i == 0 ? out.read_end : err.read_end;
      std::string& text = i == 0 ? result.out : result.err;
      char bytes[16384];
      ssize_t count = read(end, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        Pipe::close_one(end);
        continue;
      }
      text.append(bytes, static_cast<size_t>(count));
      keep_tail(text);
    }
  }
  return true;
}

// A process that sits in the kernel is left behind rather than waited for.
void reap(pid_t pid, ProgramResult& result) {
  double end = DriverCalls::now() + k_torch_child_kill_grace_seconds;
  while (waitpid(pid, &result.status, WNOHANG) == 0) {
    if (DriverCalls::now() > end) {
      if (result.timed_out) return;
      result.timed_out = true;
      kill(-pid, SIGKILL);
      end = DriverCalls::now() + k_torch_child_kill_grace_seconds;
    }
    timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

std::string first_line(std::string_view text) {
  text = trim(text);
  std::string line(text.substr(0, text.find('\n')));
  if (line.size() > k_answer_bytes) line.resize(k_answer_bytes);
  return line;
}

std::string last_line(const std::string& text) {
  std::vector<std::string_view> lines = split_lines(trim(text));
  return lines.empty() ? std::string() : first_line(lines.back());
}

void check_env(const Host& host, facts::PythonEnv& env) {
  std::map<std::string, std::string> variables;
  for (auto& [name, value] : host.variables()) variables[name] = value;
  variables["PYTHONDONTWRITEBYTECODE"] = "1";  // nothing is left behind
  variables["CUDA_CACHE_DISABLE"] = "1";
  variables.erase("PYTHONSTARTUP");
  ProgramResult result =
      run_program({*env.interpreter, "-c", k_torch_script}, variables, k_torch_seconds);
  const std::string& tried = *env.interpreter;
  if (!result.started) {
    env.torch_run =
        missing<std::string>(WhyNot::not_present, SourceKind::command, tried, result.start_error);
  } else if (result.timed_out) {
    env.torch_run =
        missing<std::string>(WhyNot::timeout, SourceKind::command, tried,
                             format("torch did not finish within {:g} s", k_torch_seconds));
  } else if (std::string answer = torch_answer(result); answer == k_torch_without_cuda) {
    env.torch_run = missing<std::string>(WhyNot::not_supported, SourceKind::command, tried, answer);
  } else {
    env.torch_run = known(std::move(answer), SourceKind::command, tried);
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& arguments,
                          const std::map<std::string, std::string>& variables, double seconds) {
  ProgramResult result;
  Pipe out, err, failed;
  if (!out.open() || !err.open() || !failed.open()) {
    result.start_error = format("pipe: {}", std::strerror(errno));
    return result;
  }
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> argv = argument_pointers(arguments), envp = argument_pointers(environment);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0)
    become(argv.data(), envp.data(), out.write_end, err.write_end, failed.write_end, parent);
  if (pid < 0) {
    result.start_error = format("fork: {}", std::strerror(errno));
    return result;
  }
  for (Pipe* pipe : {&out, &err, &failed}) Pipe::close_one(pipe->write_end);
  double deadline = DriverCalls::now() + seconds;
  result.timed_out = !drain(out, err, result, deadline);
  if (result.timed_out) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);  // in case it did not get to make its group
  }
  reap(pid, result);
  int number =
      0;  // exec closed this pipe without a word, or the child wrote why exec failed and ended
  fcntl(failed.read_end, F_SETFL, O_NONBLOCK);
  result.started = read(failed.read_end, &number, sizeof number) != sizeof number;
  if (!result.started) result.start_error = format("`{}`: {}", arguments[0], std::strerror(number));
  return result;
}

std::string torch_answer(const ProgramResult& result) {
  constexpr std::string_view k_mark = "\ncufit: ";
  size_t at = result.out.rfind(k_mark);
  if (at != std::string::npos) {
    std::string answer = first_line(std::string_view(result.out).substr(at + k_mark.size()));
    if (!answer.empty()) return answer;
  }
  // The interpreter did not get to the script's end: a crash in native code, or no working Python
  // at all.
  std::string said = last_line(result.err);
  std::string end = WIFSIGNALED(result.status)
                        ? format("Python was ended by signal {}", WTERMSIG(result.status))
                        : format("Python ended with status {}", WEXITSTATUS(result.status));
  return said.empty() ? end : format("{}: {}", end, said);
}

void run_torch_checks(const Host& host, const ProbeOptions& options, facts::Facts& facts) {
  if (!options.deep) return;
  uint64_t done = 0;
  for (facts::PythonEnv& env : facts.envs) {
    if (options.progress) options.progress("torch in " + env.path, done, facts.envs.size());
    ++done;
    if (!env.interpreter || !env.torch.version) continue;
    check_env(host, env);
  }
}

}  // namespace cufit::host
