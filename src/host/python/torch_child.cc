// SPDX-License-Identifier: Apache-2.0
#include "host/python/torch_child.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/format.h"
#include "host/driver/driver_calls.h"
#include "host/probe.h"
#include "host/process/spawn.h"
#include "host/python/torch_script.h"

namespace cufit::host {
namespace {

constexpr size_t k_torch_child_keep_bytes = 64u << 10;
constexpr size_t k_answer_bytes = 400;
constexpr double k_torch_child_kill_grace_seconds = 2;
// Importing torch from a cold network file system takes a minute; the first context on 8 GPUs
// another.
constexpr double k_torch_seconds = 180;

void keep_tail(std::string& text) {
  if (text.size() > 2 * k_torch_child_keep_bytes)
    text.erase(0, text.size() - k_torch_child_keep_bytes);
}

// Reads both until they are closed or the time is over.
bool drain(FileHandle& out, FileHandle& err, ProgramResult& result, double deadline) {
  while (out.get() >= 0 || err.get() >= 0) {
    double left = deadline - DriverCalls::now();
    if (left <= 0) return false;
    pollfd polled[2] = {{out.get(), POLLIN, 0},
                        {err.get(), POLLIN, 0}};  // a negative one is skipped
    if (poll(polled, 2, static_cast<int>(left * 1000) + 1) <= 0) continue;
    for (int i = 0; i < 2; ++i) {
      if (polled[i].revents == 0) continue;
      FileHandle& end = i == 0 ? out : err;
      std::string& text = i == 0 ? result.out : result.err;
      char bytes[16384];
      ssize_t count = read(end.get(), bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        end.reset();
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
                          const std::map<std::string, std::string>& variables, double seconds,
                          int with_parent) {
  ProgramResult result;
  Result<Pipe> out = open_pipe(), err = open_pipe();
  if (!out || !err) {
    result.start_error = (out ? err : out).error().what;
    return result;
  }
  SpawnOptions start;
  start.command = arguments;
  start.path = arguments[0];
  start.environment.emplace();
  for (const auto& [name, value] : variables) start.environment->push_back(name + "=" + value);
  start.folder = "/";
  start.empty_input = true;
  start.out = out->write_end.get();
  start.err = err->write_end.get();
  start.signal_with_parent = with_parent;
  start.own_group = true;  // so that its own children end with it
  start.default_signals = true;
  Result<SpawnedProgram> child = spawn_program(start);
  if (!child) {
    result.start_error = child.error().what;
    return result;
  }
  for (Pipe* pipe : {&*out, &*err}) pipe->write_end.reset();
  double deadline = DriverCalls::now() + seconds;
  result.timed_out = !drain(out->read_end, err->read_end, result, deadline);
  if (result.timed_out) {
    kill(-child->pid, SIGKILL);
    kill(child->pid, SIGKILL);  // in case it did not get to make its group
  }
  reap(child->pid, result);
  const int why = child->start_error(false);
  result.started = why == 0;
  if (!result.started) result.start_error = format("`{}`: {}", arguments[0], std::strerror(why));
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
