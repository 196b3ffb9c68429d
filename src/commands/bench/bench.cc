// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench.h"

#include <algorithm>

#include "base/format.h"
#include "base/number.h"
#include "commands/bench/bench_environments.h"
#include "commands/bench/bench_measure.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"
#include "report/bench.h"

namespace cufit::commands {
namespace {

constexpr Option k_bench_options[] = {
    option<&BenchRequest::env>("--env", "CLASS|DIR"),
    option<&BenchRequest::workload>("--workload", "NAME|FILE.py"),
    option<&BenchRequest::precision>("--precision", "KIND", "fp32 tf32 bf16 fp16"),
    option<&BenchRequest::batch>("--batch", "N|auto"),
    option<&BenchRequest::device>("--device", "N|cpu"),
    option<&BenchRequest::rounds>("--rounds", "N"),
    option<&BenchRequest::time>("--time", "SECONDS"),
    option<&BenchRequest::timeout>("--timeout", "SECONDS"),
    option<&BenchRequest::measured>("-o,--measured", "FILE"),
    option<&BenchRequest::json>("--json"),
    option<&BenchRequest::html>("--html", "FILE"),
};

constexpr std::string_view k_workloads[] = {"resnet50", "gpt2", "sdxl-unet", "matmul", "copy"};
constexpr uint64_t k_most_rounds = 1000, k_most_bench_seconds = 86400, k_most_batch = 1 << 24,
                   k_most_device = 1023;

Result<uint64_t> number_argument(const char* option, const std::string& text, uint64_t least,
                                 uint64_t most) {
  const std::optional<uint64_t> value = parse_uint(text);
  if (value && *value >= least && *value <= most) return *value;
  return fail(Code::usage, format("`--{} {}`: a number from {} to {}", option, text, least, most));
}

Result<BenchWorkload> workload_argument(const std::string& word) {
  const bool own =
      std::find(std::begin(k_workloads), std::end(k_workloads), word) != std::end(k_workloads);
  if (own) return BenchWorkload{word, {}};
  if (!ends_with(word, ".py"))
    return fail(Code::usage,
                format("`--workload {}`: one of resnet50, gpt2, sdxl-unet, matmul and copy, or a "
                       "file NAME.py",
                       word));
  const std::string path = host::absolute_path(word);
  if (!host::is_file(path)) return fail(Code::usage, format("`--workload {}`: no such file", word));
  return BenchWorkload{word, path};
}

Result<BenchPlan> bench_plan(const BenchRequest& request) {
  BenchPlan plan;
  for (const std::string& word : request.workload) {
    CUFIT_TRY(workload, workload_argument(word));
    plan.workloads.push_back(std::move(workload));
  }
  if (plan.workloads.empty()) plan.workloads.push_back({"resnet50", {}});
  for (const std::string& one : request.precision)
    if (std::find(plan.precisions.begin(), plan.precisions.end(), one) == plan.precisions.end())
      plan.precisions.push_back(one);
  plan.largest_batch = request.batch == "auto";
  if (request.batch && !plan.largest_batch) {
    const std::optional<uint64_t> batch = parse_uint(*request.batch);
    if (!batch || *batch == 0 || *batch > k_most_batch)
      return fail(Code::usage, format("`--batch {}`: a number from 1 to {}, or `auto`",
                                      *request.batch, k_most_batch));
    plan.batch = *batch;
  }
  CUFIT_TRY(rounds,
            number_argument("rounds", request.rounds, resolve::k_least_rounds, k_most_rounds));
  plan.rounds = rounds + rounds % 2;  // A B goes with B A
  CUFIT_TRY(seconds, number_argument("time", request.time, 1, k_most_bench_seconds));
  plan.seconds = static_cast<double>(seconds);
  return plan;
}

Result<std::string> device_argument(const std::string& word) {
  if (word == "cpu") return word;
  const std::optional<uint64_t> number = parse_uint(word);
  if (!number || *number > k_most_device)
    return fail(Code::usage,
                format("`--device {}`: the number of a GPU, as CUDA counts, or `cpu`", word));
  return std::to_string(*number);
}

Result<resolve::BenchMeasurement> measured(const Context& context, const BenchRequest& request) {
  CUFIT_TRY(plan, bench_plan(request));
  CUFIT_TRY(device, device_argument(request.device));
  CUFIT_TRY(answer_seconds, number_argument("timeout", request.timeout, 1, k_most_bench_seconds));
  CUFIT_TRY(environments, bench_environments(context, request.env, device == "cpu"));
  host::Interrupts interrupts;
  CUFIT_TRY(folder, host::BenchChild::make_folder());
  BenchSetting setting{context, folder, interrupts, device, static_cast<double>(answer_seconds),
                       {}};
  BenchMeasure measure(setting, plan, std::move(environments));
  return measure.run();
}

bool all_measured(const resolve::BenchMeasurement& result) {
  for (const resolve::BenchEnvironment& env : result.environments)
    if (!env.trouble.kind.empty()) return false;
  for (const resolve::BenchCase& one : result.cases)
    for (const resolve::BenchRun& run : one.runs)
      if (!run.rate) return false;
  return !result.cases.empty();
}

}  // namespace

std::span<const Option> bench_options() { return k_bench_options; }

int run_bench(const Context& context, const BenchRequest& request) {
  const Output& output = context.output;
  const Result<resolve::BenchMeasurement> result = measured(context, request);
  if (!result) return output.exit_code_for(result.error());
  const report::BenchView view{*result, context.now(), request.measured.value_or(""),
                               context.knowledge};
  const std::string json = report::bench_json(view);
  if (request.measured)
    if (Result<void> written = host::write_whole_file(*request.measured, json); !written)
      return output.exit_code_for(written.error());
  if (request.html)
    if (Result<void> written =
            host::write_whole_file(*request.html, report::bench_html(view, context.language()));
        !written)
      return output.exit_code_for(written.error());
  return output.print(request.json ? json : report::bench_text(view, output.style()),
                      all_measured(*result) ? k_ok : k_findings);
}

}  // namespace cufit::commands
