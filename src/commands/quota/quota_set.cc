// SPDX-License-Identifier: Apache-2.0
#include "commands/quota/quota_set.h"

#include <algorithm>

#include "base/format.h"
#include "base/memory_size.h"
#include "base/number.h"
#include "commands/size_argument.h"
#include "host/driver/nvml_limits.h"
#include "host/process/this_process.h"
#include "host/quota/cgroup_path.h"
#include "report/quota.h"

namespace cufit::commands {
namespace {

constexpr Option k_quota_set_options[] = {
    inherited_option<QuotaSetRequest, &QuotaSetRequest::cgroup>("--cgroup", "PATH"),
    inherited_option<QuotaSetRequest, &QuotaSetRequest::container>("--container", "ID"),
    inherited_option<QuotaSetRequest, &QuotaSetRequest::pid>("--pid", "PID"),
    option<&QuotaSetRequest::hard>("--hard", "SIZE"),
    option<&QuotaSetRequest::soft>("--soft", "SIZE"),
    inherited_option<QuotaSetRequest, &QuotaSetRequest::dry_run>("--dry-run"),
};

constexpr Option k_quota_clear_options[] = {
    option<&QuotaClearRequest::cgroup>("--cgroup", "PATH"),
    option<&QuotaClearRequest::container>("--container", "ID"),
    option<&QuotaClearRequest::pid>("--pid", "PID"),
    option<&QuotaClearRequest::dry_run>("--dry-run"),
};

Result<std::string> cgroup_asked(const Context& context, const QuotaClearRequest& request) {
  const int given =
      request.cgroup.has_value() + request.container.has_value() + request.pid.has_value();
  if (given != 1)
    return fail(Code::usage,
                given > 1 ? "only one of `--cgroup PATH`, `--container ID`, `--pid PID` may be "
                            "given, and more are"
                          : "one of `--cgroup PATH`, `--container ID`, `--pid PID` is needed");
  if (request.cgroup) return host::cgroup_of_path(context.machine, *request.cgroup);
  if (request.container) return host::cgroup_of_container(context.machine, *request.container);
  const std::optional<uint64_t> pid = parse_uint(*request.pid);
  if (!pid || *pid == 0)
    return fail(Code::usage,
                format("`--pid {}`: the number of a process is expected", *request.pid));
  return host::cgroup_of_process(context.machine, *pid);
}

Result<facts::MemoryLimits> limits_asked(const QuotaSetRequest& request) {
  facts::MemoryLimits out;
  if (!request.hard) return fail(Code::usage, "`cufit quota set` needs `--hard SIZE`");
  CUFIT_TRY(hard, size_argument("--hard", *request.hard));
  out.hard_bytes = hard;
  if (request.soft) {
    CUFIT_TRY(soft, size_argument("--soft", *request.soft));
    out.soft_bytes = soft;
  }
  if (out.soft_bytes > out.hard_bytes) return fail(Code::usage, "`--soft` is more than `--hard`");
  return out;
}

// A limit that no card has would be one in name alone.
std::optional<Error> too_large(const host::LimitAnswer& answer, const facts::MemoryLimits& limits) {
  uint64_t most = 0;
  for (const facts::LimitedGpu& gpu : answer.gpus) {
    if (gpu.total_bytes == 0) return std::nullopt;
    most = std::max(most, gpu.total_bytes);
  }
  if (most == 0 || limits.hard_bytes == facts::k_no_memory_limit || limits.hard_bytes <= most)
    return std::nullopt;
  return fail(Code::usage, format("`--hard` of {} is more than any GPU here has: {}",
                                  format_bytes(limits.hard_bytes), format_bytes(most)));
}

// Asks first, so that a machine without the functions, a missing right or an unknown cgroup changes nothing.
int change(const Context& context, const QuotaClearRequest& request,
           const facts::MemoryLimits& limits) {
  const Output& output = context.output;
  const Result<std::string> cgroup = cgroup_asked(context, request);
  if (!cgroup) return output.exit_code_for(cgroup.error());
  if (!request.dry_run && !host::is_root())
    return output.exit_code_for(
        fail(Code::no_permission,
             "only root sets limits of the kernel driver; `--dry-run` shows "
             "what would be set"));
  host::LimitRequest ask{*cgroup, {}};
  Result<host::LimitAnswer> answer = host::nvml_memory_limits(context.machine, ask);
  if (!answer) return output.exit_code_for(answer.error());
  if (!answer->supported)
    return output.exit_code_for(
        fail(Code::unsupported, format("driver {} has no memory limits; they came with {}",
                                       answer->driver.empty() ? "?" : answer->driver,
                                       std::string(context.knowledge.quota_since("kernel")))));
  if (const std::optional<Error> wrong = too_large(*answer, limits))
    return output.exit_code_for(*wrong);
  if (!request.dry_run) {
    ask.limits = limits;
    answer = host::nvml_memory_limits(context.machine, ask);
    if (!answer) return output.exit_code_for(answer.error());
  }
  bool refused = false;
  for (const facts::LimitedGpu& gpu : answer->gpus) refused = refused || gpu.result != 0;
  const report::QuotaSetView view{*cgroup,        limits,       request.dry_run,
                                  answer->undone, answer->gpus, context.knowledge};
  return output.print(report::quota_set_text(view, output.style()),
                      refused || view.gpus.empty() ? k_findings : k_ok);
}

}  // namespace

std::span<const Option> quota_set_options() { return k_quota_set_options; }
std::span<const Option> quota_clear_options() { return k_quota_clear_options; }

int run_quota_set(const Context& context, const QuotaSetRequest& request) {
  const Result<facts::MemoryLimits> limits = limits_asked(request);
  if (!limits) return context.output.exit_code_for(limits.error());
  return change(context, request, *limits);
}

int run_quota_clear(const Context& context, const QuotaClearRequest& request) {
  return change(context, request, {});
}

}  // namespace cufit::commands
