// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor/collect_env.h"

#include "base/format.h"
#include "checks/doctor.h"
#include "commands/settings.h"
#include "host/probe.h"
#include "host/files/recording.h"
#include "report/collect_env.h"

namespace cufit::commands {
namespace {

constexpr Option k_collect_env_options[] = {
    {"--env", "DIR", "", false, ""},
    {"--from", "FILE", "", false, ""},
    {"--json", "", "", false, ""},
};

Result<facts::Facts> collect_env_facts(const host::Host& machine, const Arguments& arguments) {
  if (arguments.has("from")) {
    if (arguments.has("env")) {
      return fail(Code::usage, "`--env` looks at this machine and cannot go with `--from`");
    }
    return host::load_facts(machine, arguments.get("from"));
  }
  host::ProbeOptions options;
  options.for_collect_env = true;
  options.env_dirs = env_folders(arguments);
  for (const std::string& dir : options.env_dirs) {
    if (!machine.exists(dir))
      return fail(Code::usage, format("`--env {}`: no such directory", dir));
  }
  return host::collect(machine, options);
}

}  // namespace

std::span<const Option> collect_env_options() { return k_collect_env_options; }

int run_collect_env(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  host::RealHost machine;
  Result<facts::Facts> facts = collect_env_facts(machine, arguments);
  if (!facts) {
    print_error(facts.error().text());
    return facts.error().code == Code::usage ? k_usage : k_failed;
  }
  const checks::Report report = checks::examine(*facts, knowledge);
  const report::DoctorView view{*facts, report, knowledge};
  // The report is data for somebody else; what it says does not decide the exit code.
  return print(
      arguments.has("json") ? report::collect_env_json(view) : report::collect_env_text(view),
      k_ok);
}

}  // namespace cufit::commands
