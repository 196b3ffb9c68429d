// SPDX-License-Identifier: Apache-2.0
#include "host/python/together_run.h"

#include <algorithm>
#include <csignal>

#include <sys/wait.h>

#include "base/format.h"
#include "facts/together_answer.h"
#include "host/probe.h"
#include "host/python/torch_child.h"

namespace cufit::host {
namespace {

// The program ends its processes itself; only where it cannot does this program end all of them.
constexpr double k_end_seconds = 20;

const facts::PythonEnv* env_that_computes(const facts::Facts& facts) {
  for (const facts::PythonEnv& env : facts.envs)
    if (env.interpreter && env.torch.cuda && env.torch_run.value_or("") == "ok") return &env;
  return nullptr;
}

std::string why_not_asked(const facts::Facts& facts) {
  for (const facts::CudaDevice& device : facts.cuda.devices)
    if (device.compute_check.value_or("") != "ok")
      return format("GPU {} does not compute", device.ordinal);
  if (env_that_computes(facts) == nullptr)
    return "there is no environment whose torch computes on the GPUs";
  return {};
}

std::string how_it_ended(const ProgramResult& result) {
  const std::vector<std::string_view> lines = split_lines(trim(result.err));
  std::string end = WIFSIGNALED(result.status)
                        ? format("Python was ended by signal {}", WTERMSIG(result.status))
                        : format("Python ended with status {}", WEXITSTATUS(result.status));
  return lines.empty() ? end : end + ": " + std::string(lines.back().substr(0, 400));
}

facts::TogetherFacts no_answer(WhyNot why, const std::string& tried, std::string note) {
  facts::TogetherFacts out;
  out.sum = missing<std::string>(why, SourceKind::command, tried, std::move(note));
  return out;
}

}  // namespace

facts::TogetherFacts run_together(const Host& host, const TogetherOptions& options,
                                  std::vector<std::string>& problems) {
  std::map<std::string, std::string> variables;
  for (auto& [name, value] : host.variables()) variables[name] = value;
  variables["PYTHONDONTWRITEBYTECODE"] = "1";
  variables.erase("PYTHONSTARTUP");
  const std::vector<std::string> command = {options.python,
                                            "-c",
                                            together_program(),
                                            options.backend,
                                            options.device,
                                            std::to_string(options.ranks),
                                            std::to_string(options.most_bytes),
                                            format("{:g}", options.seconds)};
  // Ended by SIGTERM where cufit ends first: the program then ends its own.
  const ProgramResult result =
      run_program(command, variables, options.seconds + k_end_seconds, SIGTERM);
  const std::string& tried = options.python;
  if (!result.started) return no_answer(WhyNot::not_present, tried, result.start_error);
  if (result.timed_out)
    return no_answer(WhyNot::timeout, tried,
                     format("it did not finish within {:g} s", options.seconds + k_end_seconds));
  std::vector<std::string> left;
  Result<facts::TogetherFacts> answer =
      facts::parse_together_answer("\n" + result.out, tried, left);
  for (const std::string& pid : left)
    problems.push_back(format("process {} hangs in the kernel and cannot be ended", pid));
  if (!answer) {
    const bool died = result.status != 0;
    return no_answer(died ? WhyNot::crashed : WhyNot::malformed, tried,
                     died ? how_it_ended(result) : answer.error().what);
  }
  // An environment without NCCL is no machine whose GPUs fail.
  if (ends_with(answer->said, "torch has no NCCL"))
    answer->sum = missing<std::string>(WhyNot::not_supported, SourceKind::command, tried,
                                       "torch has no NCCL");
  return std::move(*answer);
}

void run_together_check(const Host& host, const ProbeOptions& options, facts::Facts& facts) {
  if (!options.deep || facts.cuda.devices.size() < 2) return;
  if (const std::string why = why_not_asked(facts); !why.empty()) {
    facts.together.sum =
        missing<std::string>(WhyNot::not_asked, SourceKind::command, "python", why);
    return;
  }
  const facts::PythonEnv& env = *env_that_computes(facts);
  if (options.progress) options.progress("GPUs together in " + env.path, 0, 1);
  TogetherOptions asked;
  asked.python = *env.interpreter;
  asked.ranks = static_cast<uint32_t>(facts.cuda.devices.size());
  facts.together = run_together(host, asked, facts.problems);
  facts.together.env = env.path;
  if (host.variable("NCCL_SOCKET_IFNAME"))
    facts.together.interfaces = host.list("/sys/class/net").value_or(std::vector<std::string>());
  if (options.progress) options.progress("GPUs together in " + env.path, 1, 1);
}

}  // namespace cufit::host
