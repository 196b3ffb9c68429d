// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_loader.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "commands/bench/bench_environments.h"
#include "host/probe.h"
#include "host/process/start_program.h"
#include "host/python/loader_run.h"
#include "report/bench_loader.h"

namespace cufit::commands {
namespace {

constexpr Option k_bench_loader_options[] = {
    option<&BenchLoaderRequest::command>("COMMAND").needed(),
    option<&BenchLoaderRequest::env>("--env", "CLASS|DIR"),
    option<&BenchLoaderRequest::workers>("--workers", "N,N"),
    option<&BenchLoaderRequest::time>("--time", "SECONDS"),
    option<&BenchLoaderRequest::json>("--json"),
};

constexpr uint64_t k_most_workers_asked = 512;
constexpr size_t k_most_worker_counts = 16;
constexpr uint64_t k_least_loader_seconds = 4, k_most_loader_run_seconds = 86400;

resolve::LoaderHost loader_host(const Context& context) {
  facts::Facts facts;
  host::read_system(context.machine, facts);
  resolve::LoaderHost out;
  out.cpus = facts.system.cpus.value;
  out.cpu_limit = facts.system.cpu_limit.value;
  out.shm_bytes = facts.system.shm_bytes.value;
  return out;
}

Result<std::vector<uint64_t>> workers_asked(const BenchLoaderRequest& request,
                                            const resolve::LoaderHost& host) {
  if (!request.workers) return resolve::worker_counts(host);
  std::vector<uint64_t> out;
  for (const std::string_view word : split(*request.workers, ',')) {
    const std::optional<uint64_t> count = parse_uint(trim(word));
    if (!count || *count > k_most_workers_asked || out.size() >= k_most_worker_counts)
      return fail(Code::usage,
                  format("`--workers {}`: up to {} numbers from 0 to {}, with commas between them",
                         *request.workers, k_most_worker_counts, k_most_workers_asked));
    out.push_back(*count);
  }
  return out;
}

// PATH and what goes with it, as the environment's own `activate` sets them.
Result<std::vector<std::pair<std::string, std::optional<std::string>>>> environment_changes(
    const Context& context, const BenchLoaderRequest& request) {
  std::vector<std::pair<std::string, std::optional<std::string>>> out;
  if (!request.env) return out;
  CUFIT_TRY(env, bench_environment(context, *request.env));
  // Another Python would be measured in its place.
  if (env.trouble.kind == "no_python")
    return fail(Code::usage, format("`--env {}`: no Python was found there", *request.env));
  if (env.trouble.kind == "not_created")
    return fail(Code::usage, format("`--env {}`: its environment is not there yet: {}",
                                    *request.env, env.trouble.why));
  out.emplace_back("PYTHONHOME", std::nullopt);
  for (const std::string& one : host::activated_variables(context.files, env.folder,
                                                          env.is_class ? env.name : std::string()))
    if (const size_t equals = one.find('='); equals != std::string::npos)
      out.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  return out;
}

// Of a program that never got there.
int print_no_loop(const Context& context, const host::LoaderRun& run) {
  context.output.print_message(
      context.message(run.timed_out ? "bench_loader.timed_out" : "bench_loader.no_loop",
                      {{"code", std::to_string(run.exit_code)}}));
  return k_failed;
}

}  // namespace

std::span<const Option> bench_loader_options() { return k_bench_loader_options; }

int run_bench_loader(const Context& context, const BenchLoaderRequest& request) {
  const Output& output = context.output;
  if (request.command.empty())
    return output.exit_code_for(
        fail(Code::usage,
             "`cufit bench loader` needs a program: cufit bench loader -- python train.py"));
  const resolve::LoaderHost host = loader_host(context);
  host::LoaderRunOptions options;
  options.command = request.command;
  const Result<std::vector<uint64_t>> workers = workers_asked(request, host);
  if (!workers) return output.exit_code_for(workers.error());
  options.workers = *workers;
  if (!request.workers) options.cpus = options.workers.back();
  const std::optional<uint64_t> seconds = parse_uint(request.time);
  if (!seconds || *seconds < k_least_loader_seconds || *seconds > k_most_loader_run_seconds)
    return output.exit_code_for(
        fail(Code::usage, format("`--time {}`: a number from {} to {}", request.time,
                                 k_least_loader_seconds, k_most_loader_run_seconds)));
  options.seconds = static_cast<double>(*seconds);
  auto changes = environment_changes(context, request);
  if (!changes) return output.exit_code_for(changes.error());
  options.variables = std::move(*changes);
  host::Interrupts interrupts;
  const Result<host::LoaderRun> run = host::loader_run(options, interrupts);
  if (!run) return output.exit_code_for(run.error());
  if (run->answer.empty()) return print_no_loop(context, *run);
  const Result<formats::LoaderAnswer> answer = formats::parse_loader_answer(run->answer);
  if (!answer) return output.exit_code_for(answer.error());
  const resolve::LoaderAdvice advice = resolve::advise(*answer, host);
  report::BenchLoaderView view{*answer, advice, host, context.knowledge};
  if (answer->phase != "done") view.end = report::LoaderEnd{run->exit_code, run->timed_out};
  using Verdict = resolve::LoaderAdvice::Verdict;
  const int code = advice.verdict == Verdict::fed                    ? k_ok
                   : advice.verdict == Verdict::not_told && view.end ? k_failed
                                                                     : k_findings;
  return output.print(request.json ? report::bench_loader_json(view)
                                   : report::bench_loader_text(view, output.style()),
                      code);
}

}  // namespace cufit::commands
