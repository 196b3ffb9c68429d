// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor/doctor.h"

#include <cstdio>
#include <optional>

#include "base/format.h"
#include "checks/doctor.h"
#include "commands/settings.h"
#include "host/probe.h"
#include "host/files/atomic_write.h"
#include "host/files/recording.h"
#include "host/process/this_process.h"
#include "report/report.h"

namespace cufit::commands {
namespace {

constexpr Option k_doctor_options[] = {
    {"--env", "DIR", "", true, ""},
    {"--from", "FILE", "", false, ""},
    {"--record", "FILE", "", false, ""},
    {"--deep", "", "", false, ""},
    {"--gpu", "NAME|CC", "", true, ""},
    {"--driver", "VERSION", "", false, ""},
    {"--json", "", "", false, ""},
    {"--html", "FILE", "", false, ""},
    {"--fail-on", "LEVEL", "", false, "note unknown warning error never"},
    {"-v,--verbose", "", "", false, ""},
};

// One line on a terminal that is overwritten; nothing when stderr is a file.
void show_progress(const std::string& what, uint64_t done, uint64_t total) {
  if (!host::is_terminal(host::Stream::err) || total == 0) return;
  const unsigned percent =
      static_cast<unsigned>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  std::string bar(percent / 5, '=');
  std::fprintf(stderr, "\r%-40.40s [%-20s] %3u %%%s", what.c_str(), bar.c_str(), percent,
               done >= total ? "\n" : "");
}

Result<facts::Facts> doctor_facts(const host::Host& machine, const Arguments& arguments) {
  if (arguments.has("from")) {
    for (const char* live : {"env", "deep"}) {
      if (arguments.has(live)) {
        return fail(Code::usage,
                    format("`--{}` looks at this machine and cannot go with `--from`", live));
      }
    }
    return host::load_facts(machine, arguments.get("from"));
  }
  host::ProbeOptions options;
  options.env_dirs = env_folders(arguments);
  for (const std::string& dir : options.env_dirs) {
    if (!machine.exists(dir))
      return fail(Code::usage, format("`--env {}`: no such directory", dir));
  }
  options.for_collect_env =
      arguments.has("record");  // a recording answers `collect-env --from` too
  options.deep = arguments.has("deep");
  options.driver_timeout_seconds = options.deep ? 120 : 10;
  options.progress = show_progress;
  facts::Facts facts = host::collect(machine, options);
  if (!options.env_dirs.empty() && facts.envs.empty()) {
    return fail(Code::usage,
                format("`--env {}`: neither a Python environment nor a folder of packages",
                       join(options.env_dirs, ", ")));
  }
  return facts;
}

int exit_code(const checks::Report& report, const std::string& fail_on) {
  static constexpr std::string_view k_levels[] = {"", "note", "unknown", "warning", "error"};
  for (int level = 1; level <= 4; ++level) {
    if (fail_on != k_levels[level]) continue;
    for (const checks::Finding& finding : report.findings) {
      if (seriousness(finding.severity) >= level) return k_findings;
    }
  }
  return k_ok;
}

}  // namespace

std::span<const Option> doctor_options() { return k_doctor_options; }

int run_doctor(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  host::RealHost machine;
  Result<facts::Facts> facts = doctor_facts(machine, arguments);
  if (!facts) return exit_code_for(facts.error());
  if (arguments.has("record")) {
    facts::Facts redacted = facts::redact(*facts, host::private_names(machine));
    if (auto saved = host::save_recording(arguments.get("record"), redacted); !saved) {
      return exit_code_for(saved.error());
    }
  }
  if (arguments.has("gpu") || arguments.has("driver")) {
    facts = checks::assume(std::move(*facts), {arguments.all("gpu"), arguments.get("driver")},
                           knowledge);
    if (!facts) return exit_code_for(facts.error());
  }
  const checks::Report report = checks::examine(*facts, knowledge);
  const report::DoctorView view{*facts, report, knowledge};
  const int code = exit_code(report, arguments.get("fail-on", "error"));
  const report::Style style = style_for(arguments);
  if (arguments.has("html")) {
    // A page is made to be shared: it shows the redacted facts.
    facts::Facts redacted = facts::redact(*facts, host::private_names(machine));
    const checks::Report shared = checks::examine(redacted, knowledge);
    auto written = host::write_whole_file(
        arguments.get("html"), report::doctor_html({redacted, shared, knowledge}, style));
    if (!written) return exit_code_for(written.error());
    if (!arguments.has("json")) return print(report::doctor_text(view, style), code);
  }
  return print(arguments.has("json") ? report::doctor_json(view) : report::doctor_text(view, style),
               code);
}

}  // namespace cufit::commands
