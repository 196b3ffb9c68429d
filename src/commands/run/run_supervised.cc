// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_supervised.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "base/shell_word.h"
#include "explain/supervised_end.h"
#include "host/files/atomic_write.h"
#include "host/files/rlimit_fsize_guard.h"
#include "host/probe.h"
#include "host/process/signal_pause.h"
#include "host/process/attend.h"
#include "host/process/this_process.h"
#include "host/quota/ring_files.h"
#include "report/crash_report.h"
#include "report/error_translation.h"
#include "report/explain.h"

namespace cufit::commands {
namespace {

std::string utc(std::time_t now, const char* form) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, form, &parts));
}

// The user ended it, or whoever read its output did: nothing has failed.
bool is_failure(const facts::Supervised& run) {
  return run.exit_code != 0 && !run.asked_to_end && run.signal != SIGPIPE;
}

facts::Facts facts_after(const host::Host& machine, const std::string& env) {
  host::ProbeOptions options;
  if (!env.empty()) options.env_dirs = {env};
  // A compute check would be counted among the memory in use.
  options.driver_depth = host::DriverDepth::state;
  return host::collect(machine, options);
}

// The command that makes the environment anew, where it lacks what its lock asks for.
std::string remake(const SupervisedRequest& launch, const explain::Explanation& explanation) {
  const auto& error = explanation.program_error;
  if (!error || error->kind != explain::ProgramError::Kind::module) return {};
  const bool locked = std::find(launch.must_haves.begin(), launch.must_haves.end(),
                                error->module) != launch.must_haves.end();
  return locked ? launch.remake : std::string();
}

struct ReportNames {
  std::string text, json;
};

// "r.txt" and "r.json" of either; any other name is the text's.
ReportNames names_of(const std::string& name) {
  std::string stem = name;
  const bool is_json = ends_with(name, ".json");
  if (is_json || ends_with(name, ".txt")) stem.resize(name.size() - (is_json ? 5 : 4));
  return {is_json ? stem + ".txt" : name, stem + ".json"};
}

std::string temporary_folder(const Context& context) {
  const std::string folder = context.files.variable("TMPDIR").value_or("");
  const bool usable = !folder.empty() && host::writing_fails(folder + "/cufit-report.txt") == 0;
  return (usable ? folder : "/tmp") + "/";
}

// Where reports of cufit's own names go: "" = here, else a folder with a "/" at its end. Said before the program starts, as in
// report_name().
std::string report_folder(const Context& context) {
  const int number = host::writing_fails("cufit-report.txt");
  if (number == 0) return {};
  const std::string folder = temporary_folder(context);
  context.output.print_error(context.message(
      "death.report_here",
      {{"why",
        report::translated_error(std::strerror(number), context.language(), context.knowledge)},
       {"default", shell_word(folder + "cufit-report-") + "*.txt"}}));
  return folder;
}

// --report, where it can be written; said before the program starts, which may run for days.
std::string report_name(const Context& context, const std::string& asked) {
  if (asked.empty()) return {};
  const ReportNames names = names_of(asked);
  for (const std::string& path : {names.text, names.json}) {
    const int number = host::writing_fails(path);
    if (number == 0) continue;
    context.output.print_error(context.message(
        "death.report_elsewhere",
        {{"file", shell_word(path)},
         {"why",
          report::translated_error(std::strerror(number), context.language(), context.knowledge)},
         {"default", "cufit-report-*.txt"}}));
    return {};
  }
  return asked;
}

bool write_both(const Context& context, const report::CrashReportView& view,
                const ReportNames& names) {
  report::Style style = context.output.style(true);
  style.colour = false;
  style.width = 100;
  for (const auto& [path, text] : {std::pair(names.text, report::crash_report_text(view, style)),
                                   std::pair(names.json, report::crash_report_json(view))}) {
    if (auto written = host::write_whole_file(path, text); !written) {
      context.output.print_error(written.error().text());
      return false;
    }
  }
  context.output.print_error(context.message(
      "death.written", {{"file", shell_word(names.text)}, {"json", shell_word(names.json)}}));
  return true;
}

void write_report(const Context& context, const report::CrashReportView& view,
                  const std::string& asked, const std::string& folder, std::time_t now) {
  const std::string own =
      format("cufit-report-{}-{}.txt", utc(now, "%Y%m%dT%H%M%SZ"), view.run.pid);
  if (write_both(context, view, names_of(asked.empty() ? folder + own : asked))) return;
  // The folder may be full or gone since, or of a kind where nobody writes (/proc), which only the attempt shows.
  const std::string elsewhere = temporary_folder(context);
  if (asked.empty() && folder != elsewhere) write_both(context, view, names_of(elsewhere + own));
}

void explain_death(const Context& context, const SupervisedRequest& launch,
                   const facts::Supervised& run, const std::string& report,
                   const std::string& folder) {
  const Output& output = context.output;
  const host::FileLimit limit;  // the program's exit code is worth more than what is said of it
  const std::time_t now = context.now();
  const std::string time = utc(now, "%Y-%m-%dT%H:%M:%SZ");
  const facts::Facts after = facts_after(context.machine, launch.env);
  std::vector<formats::GpuRing> rings;
  std::vector<std::string> paths;
  for (host::RingFile& file : host::read_rings(launch.ring_folder)) {
    rings.push_back(std::move(file.ring));
    paths.push_back(std::move(file.path));
  }
  const std::string tail = report::plain_tail(run.tail);
  const explain::Explanation explanation = explain::explain_end(
      {run, tail, after, rings, paths, launch.is_cpu, launch.limited}, context.knowledge);
  const report::CrashReportView view{run,
                                     explanation,
                                     after,
                                     context.knowledge,
                                     launch.start.command,
                                     time,
                                     launch.class_name,
                                     launch.torch,
                                     launch.env,
                                     remake(launch, explanation),
                                     rings,
                                     paths};
  report::Style style = output.style();
  style.colour = style.colour && host::is_terminal(host::Stream::err);
  output.print_error(context.message(
      "death.ended", {{"end", report::end_text(run, style.lang, context.knowledge)}}));
  const std::string quota = report::crash_report_quota(view, style.lang);
  for (std::string_view line : split(quota, '\n'))
    if (!line.empty()) output.print_message(std::string(line));
  const std::string reason = report::crash_report_reason(view, style.lang);
  if (!reason.empty()) output.print_message(reason);
  if (report::shows_causes(view))
    output.print_beside(report::explain_text(
        {explanation, context.knowledge, false, false, false, "more_report"}, style));
  write_report(context, view, report, folder, now);
}

}  // namespace

int not_started(const Context& context, const facts::StartFailure& failure) {
  context.output.print_error(context.message(
      "run.start." + failure.reason, {{"program", failure.program}, {"detail", failure.detail}}));
  return failure.exit_code;
}

int run_supervised(const Context& context, const SupervisedRequest& launch,
                   const std::string& asked_report) {
  const std::string report = report_name(context, asked_report);
  const std::string folder = report.empty() ? report_folder(context) : std::string();
  const Result<facts::Supervised> run = host::supervise(context.machine, launch.start);
  if (launch.ended) launch.ended();
  if (!run) return context.output.exit_code_for(run.error());
  if (run->not_started) return not_started(context, *run->not_started);
  if (is_failure(*run)) explain_death(context, launch, *run, report, folder);
  // A shell goes on with its loop where Ctrl-C ended the program and this process merely returned.
  if (run->signal == SIGINT) host::end_by_signal(SIGINT);
  return run->exit_code;
}

Result<void> check_report(const std::string& asked) {
  if (asked.empty()) return {};
  const ReportNames names = names_of(asked);
  for (const std::string& path : {names.text, names.json})
    if (const int number = host::writing_fails(path); number != 0)
      return fail(Code::io, format("`{}`: {}", path, std::strerror(number)));
  return {};
}

int run_attended(const Context& context, const SupervisedRequest& launch) {
  const Result<host::AttendedRun> run =
      host::attend(launch.start.program, launch.start.command, launch.start.variables);
  if (launch.ended) launch.ended();
  if (!run) return context.output.exit_code_for(run.error());
  if (run->not_started) return not_started(context, *run->not_started);
  if (run->signal == SIGINT) host::end_by_signal(SIGINT);
  return run->exit_code;
}

}  // namespace cufit::commands
