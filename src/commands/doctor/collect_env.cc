// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor/collect_env.h"

#include "base/format.h"
#include "checks/doctor.h"
#include "host/probe.h"
#include "host/files/paths.h"
#include "host/files/recording.h"
#include "report/collect_env.h"

namespace cufit::commands {
namespace {

constexpr Option k_collect_env_options[] = {
    option<&CollectEnvRequest::env>("--env", "DIR"),
    option<&CollectEnvRequest::from>("--from", "FILE"),
    option<&CollectEnvRequest::json>("--json"),
};

Result<facts::Facts> collect_env_facts(const Context& context, const CollectEnvRequest& request) {
  const host::Host& machine = context.machine;
  if (request.from) {
    if (request.env) {
      return fail(Code::usage, "`--env` looks at this machine and cannot go with `--from`");
    }
    return host::load_facts(context.files, *request.from);
  }
  host::ProbeOptions options;
  options.for_collect_env = true;
  if (request.env) options.env_dirs = host::absolute_folders({*request.env});
  for (const std::string& dir : options.env_dirs) {
    if (!machine.exists(dir))
      return fail(Code::usage, format("`--env {}`: no such directory", dir));
  }
  return host::collect(machine, options);
}

}  // namespace

std::span<const Option> collect_env_options() { return k_collect_env_options; }

int run_collect_env(const Context& context, const CollectEnvRequest& request) {
  const Result<facts::Facts> facts = collect_env_facts(context, request);
  if (!facts) return context.output.exit_code_for(facts.error());
  const checks::Report report = checks::examine(*facts, context.knowledge);
  const report::DoctorView view{*facts, report, context.knowledge};
  // The report is data for somebody else; what it says does not decide the exit code.
  return context.output.print(
      request.json ? report::collect_env_json(view) : report::collect_env_text(view), k_ok);
}

}  // namespace cufit::commands
