// SPDX-License-Identifier: Apache-2.0
#include "commands/doctor/doctor.h"

#include <cstdio>
#include <optional>

#include "base/format.h"
#include "checks/doctor.h"
#include "checks/install/fix_plan.h"
#include "commands/doctor/doctor_fast.h"
#include "commands/resolve/targets.h"
#include "commands/result_file.h"
#include "host/probe.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"
#include "host/files/recording.h"
#include "host/process/this_process.h"
#include "report/fix.h"
#include "report/report.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

constexpr Option k_doctor_options[] = {
    option<&DoctorRequest::env>("--env", "DIR"),
    option<&DoctorRequest::from>("--from", "FILE"),
    option<&DoctorRequest::record>("--record", "FILE"),
    option<&DoctorRequest::deep>("--deep"),
    option<&DoctorRequest::gpus>("--gpu", "NAME|CC"),
    option<&DoctorRequest::driver>("--driver", "VERSION"),
    option<&DoctorRequest::json>("--json"),
    option<&DoctorRequest::html>("--html", "FILE"),
    option<&DoctorRequest::fix>("--fix"),
    option<&DoctorRequest::fail_on>("--fail-on", "LEVEL", "note unknown warning error never"),
    option<&DoctorRequest::fast>("--fast"),
    option<&DoctorRequest::judged_gpus>("--gpus", "LIST"),
    option<&DoctorRequest::expect_gpus>("--expect-gpus", "N"),
    option<&DoctorRequest::policy>("--policy", "FILE"),
    option<&DoctorRequest::exit_style>("--exit-style", "STYLE", "node nagios"),
    option<&DoctorRequest::verbose>("-v,--verbose"),
};

// One line on a terminal that is overwritten; nothing when stderr is a file.
void show_progress(const std::string& what, uint64_t done, uint64_t total) {
  if (!host::is_terminal(host::Stream::err) || total == 0) return;
  const unsigned percent =
      static_cast<unsigned>(100.0 * static_cast<double>(done) / static_cast<double>(total));
  std::string bar(percent / 5, '=');
  std::fprintf(stderr, "\r%-40.40s [%-20s] %3u %%%s", report::printable(what).c_str(), bar.c_str(),
               percent, done >= total ? "\n" : "");
}

Result<void> only_with_fast(const DoctorRequest& request) {
  const char* const given = request.judged_gpus   ? "--gpus"
                            : request.expect_gpus ? "--expect-gpus"
                            : request.policy      ? "--policy"
                            : request.exit_style  ? "--exit-style"
                                                  : nullptr;
  if (given == nullptr) return {};
  return fail(Code::usage, format("`{}` goes with `--fast`", given));
}

Error not_with_from(const char* live) {
  return fail(Code::usage,
              format("`--{}` looks at this machine and cannot go with `--from`", live));
}

Result<facts::Facts> doctor_facts(const Context& context, const DoctorRequest& request) {
  const host::Host& machine = context.machine;
  if (request.from) {
    if (!request.env.empty()) return not_with_from("env");
    if (request.deep) return not_with_from("deep");
    return host::load_facts(context.files, *request.from);
  }
  host::ProbeOptions options;
  options.env_dirs = host::absolute_folders(request.env);
  options.search_everywhere = true;
  for (const std::string& dir : options.env_dirs) {
    if (!machine.exists(dir))
      return fail(Code::usage, format("`--env {}`: no such directory", dir));
  }
  // A recording answers `collect-env --from` too.
  options.for_collect_env = request.record.has_value();
  options.deep = request.deep;
  options.driver_timeout_seconds = options.deep ? 120 : 10;
  options.progress = show_progress;
  facts::Facts facts = host::collect(machine, options);
  add_mirror(context, facts);
  if (!options.env_dirs.empty() && facts.envs.empty()) {
    return fail(Code::usage,
                format("`--env {}`: neither a Python environment nor a folder of packages",
                       join(options.env_dirs, ", ")));
  }
  return facts;
}

int exit_code(const checks::Report& report, FailOn fail_on) {
  if (fail_on == FailOn::never) return k_ok;
  const int level = static_cast<int>(fail_on) + 1;  // as checks::seriousness counts
  for (const checks::Finding& finding : report.findings)
    if (seriousness(finding.severity) >= level) return k_findings;
  // "No" is an answer that a script must see, even where only a warning says why (no torch yet).
  return report.verdict == checks::LinkState::broken ? k_findings : k_ok;
}

// A page is made to be shared: it shows the redacted facts.
Result<void> write_page(const Context& context, const facts::Facts& facts, const std::string& path,
                        const report::Style& style) {
  facts::Facts redacted = facts::redact(facts, host::private_names(context.machine));
  const checks::Report shared = checks::examine(redacted, context.knowledge);
  return host::write_whole_file(path,
                                report::doctor_html({redacted, shared, context.knowledge}, style));
}

}  // namespace

std::span<const Option> doctor_options() { return k_doctor_options; }

int run_doctor(const Context& context, const DoctorRequest& request) {
  const Output& output = context.output;
  if (request.fast) return run_doctor_fast(context, request);
  if (const Result<void> alone = only_with_fast(request); !alone)
    return output.exit_code_for(alone.error());
  Result<facts::Facts> facts = doctor_facts(context, request);
  if (!facts) return output.exit_code_for(facts.error());
  for (const std::optional<std::string>& path : {request.record, request.html})
    if (const Result<void> other = not_the_input(path, request.from); !other)
      return output.exit_code_for(other.error());
  // A file that cannot be written costs the exit code, not the report.
  int unwritten = k_ok;
  if (request.record) {
    facts::Facts redacted = facts::redact(*facts, host::private_names(context.machine));
    if (auto saved = host::save_recording(*request.record, redacted); !saved)
      unwritten = output.exit_code_for(saved.error());
  }
  if (!request.gpus.empty() || request.driver) {
    facts = checks::assume(std::move(*facts), {request.gpus, request.driver.value_or("")},
                           context.knowledge);
    if (!facts) return output.exit_code_for(facts.error());
  }
  if (request.fix) {
    const checks::FixPlan plan = checks::plan_fix(*facts, context.knowledge);
    const report::FixView view{plan, context.knowledge};
    return output.print(request.json ? report::fix_json(view)
                                     : report::fix_script(view, output.style(request.verbose)),
                        plan.steps.empty() ? k_ok : k_findings);
  }
  const checks::Report report = checks::examine(*facts, context.knowledge);
  const report::DoctorView view{*facts, report, context.knowledge};
  const report::Style style = output.style(request.verbose);
  if (request.html)
    if (auto written = write_page(context, *facts, *request.html, style); !written)
      unwritten = output.exit_code_for(written.error());
  return output.print(request.json ? report::doctor_json(view) : report::doctor_text(view, style),
                      unwritten != k_ok ? unwritten : exit_code(report, request.fail_on));
}

}  // namespace cufit::commands
