// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_supervised.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "base/format.h"
#include "base/shell_word.h"
#include "host/files/atomic_write.h"
#include "explain/explain.h"
#include "host/files/rlimit_fsize_guard.h"
#include "host/probe.h"
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

// What the system told of host memory, where it speaks for a kill: evidence and its source.
std::vector<explain::EvidenceLine> memory_evidence(const facts::Supervised& run) {
  std::vector<explain::EvidenceLine> out;
  const auto rose = [](const std::optional<uint64_t>& before,
                       const std::optional<uint64_t>& after) {
    return before && after && *after > *before;
  };
  const auto counted = [&](const std::string& file, uint64_t before, uint64_t after) {
    out.push_back({0, file, format("oom_kill {} -> {}", before, after)});
  };
  if (rose(run.kills_before.cgroup, run.kills_after.cgroup))
    counted(run.kills_after.cgroup_file, *run.kills_before.cgroup, *run.kills_after.cgroup);
  if (rose(run.kills_before.machine, run.kills_after.machine))
    counted("/proc/vmstat", *run.kills_before.machine, *run.kills_after.machine);
  // What is left for programs that ask; the killer strikes near zero.
  constexpr uint64_t k_little_percent = 3;
  const bool fresh = run.host_memory && run.host_memory_age_seconds < 1;
  if (fresh &&
      run.host_memory->available_bytes < run.host_memory->total_bytes / 100 * k_little_percent)
    out.push_back(
        {0, "/proc/meminfo",
         format("MemAvailable {} of {}, {:.1f} s before the end",
                format_bytes(run.host_memory->available_bytes),
                format_bytes(run.host_memory->total_bytes), run.host_memory_age_seconds)});
  return out;
}

// A program that is killed says nothing; whether host memory ran out, the system does.
void add_memory_kill(const facts::Supervised& run, explain::Explanation& explanation) {
  constexpr int k_killed = 128 + SIGKILL;  // also of a child, as a shell reports it
  if (run.exit_code != k_killed) return;
  std::vector<explain::EvidenceLine> evidence = memory_evidence(run);
  if (evidence.empty()) return;
  const char* const k_id = "host_ram_kill";
  std::vector<explain::Cause>& causes = explanation.causes;
  explain::Cause cause;
  cause.id = k_id;
  cause.finding.id = k_id;
  cause.finding.variant = "text";
  cause.would_decide = true;
  for (size_t i = 0; i < causes.size(); ++i) {
    if (causes[i].id != k_id) continue;
    cause = std::move(causes[i]);
    causes.erase(causes.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  cause.confidence = explain::Confidence::likely;
  cause.score = 0.9;
  for (explain::EvidenceLine& line : cause.evidence) evidence.push_back(std::move(line));
  cause.evidence = std::move(evidence);
  const bool proved = !causes.empty() && causes[0].confidence == explain::Confidence::certain;
  causes.insert(causes.begin() + (proved ? 1 : 0), std::move(cause));
}

// torch stopped before it asked the driver: it names what the fraction allows.
bool stopped_by_fraction(const std::string& said) {
  return contains(said, " allowed; of the allocated memory");
}

// The limit refused what the output calls out of memory: recorded, not guessed. A refusal alone proves nothing: torch frees
// its cache and asks again.
void add_quota_refusal(const std::vector<formats::GpuRing>& rings, std::string_view tail,
                       bool limited, explain::Explanation& explanation) {
  const std::string said = lower(std::string(tail));
  if (!explanation.oom && !contains(said, "out of memory") && !contains(said, "outofmemory"))
    return;
  const char* const k_id = "gpu_quota_limit";
  explain::Cause cause;
  cause.id = k_id;
  cause.finding.id = k_id;
  cause.finding.variant = "guard";
  cause.confidence = explain::Confidence::likely;
  cause.score = 0.9;
  for (const formats::GpuRing& ring : rings)
    for (const formats::RingRefusal& one : ring.refusals)
      if (one.what == formats::RingWhat::refused && &one == &ring.refusals.back())
        cause.evidence.push_back(
            {0, "quota",
             format("process {} asked for {} where {} of {} were held", ring.pid,
                    format_bytes(one.asked_bytes), format_bytes(one.domain_bytes),
                    format_bytes(one.limit_bytes))});
  if (cause.evidence.empty() && limited && stopped_by_fraction(said)) {
    cause.finding.variant = "fraction";
    cause.evidence.push_back({0, "quota", "per_process_memory_fraction"});
  }
  if (cause.evidence.empty()) return;
  std::vector<explain::Cause>& causes = explanation.causes;
  for (size_t i = 0; i < causes.size(); ++i)
    if (causes[i].id == k_id) {
      for (explain::EvidenceLine& line : causes[i].evidence) cause.evidence.push_back(line);
      causes.erase(causes.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  causes.insert(causes.begin(), std::move(cause));
}

explain::Explanation explain_end(const SupervisedRequest& launch, const facts::Supervised& run,
                                 const facts::Facts& facts,
                                 const std::vector<formats::GpuRing>& rings,
                                 const knowledge::Knowledge& knowledge) {
  explain::Explainer explainer(knowledge);
  explainer.begin("output");
  explainer.add(report::plain_tail(run.tail));
  explain::Options options;
  options.name = "output";
  options.beside = &facts;
  options.dead = explain::DeadRun{launch.is_cpu};
  explain::Explanation out = explainer.finish(options);
  add_quota_refusal(rings, run.tail, launch.limited, out);
  add_memory_kill(run, out);
  return out;
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

void write_report(const Context& context, const report::CrashReportView& view,
                  const std::string& asked, std::time_t now) {
  report::Style style = context.output.style(true);
  style.colour = false;
  style.width = 100;
  const ReportNames names = names_of(
      asked.empty() ? format("cufit-report-{}-{}.txt", utc(now, "%Y%m%dT%H%M%SZ"), view.run.pid)
                    : asked);
  for (const auto& [path, text] : {std::pair(names.text, report::crash_report_text(view, style)),
                                   std::pair(names.json, report::crash_report_json(view))}) {
    if (auto written = host::write_whole_file(path, text); !written) {
      context.output.print_error(written.error().text());
      return;
    }
  }
  context.output.print_error(context.message(
      "death.written", {{"file", shell_word(names.text)}, {"json", shell_word(names.json)}}));
}

void explain_death(const Context& context, const SupervisedRequest& launch,
                   const facts::Supervised& run, const std::string& report) {
  const Output& output = context.output;
  const host::FileLimit limit;  // the program's exit code is worth more than what is said of it
  const std::time_t now = context.now();
  const std::string time = utc(now, "%Y-%m-%dT%H:%M:%SZ");
  const facts::Facts after = facts_after(context.machine, launch.env);
  const std::vector<formats::GpuRing> rings = host::read_rings(launch.ring_folder);
  const explain::Explanation explanation =
      explain_end(launch, run, after, rings, context.knowledge);
  const report::CrashReportView view{
      run,  explanation,       after,        context.knowledge, launch.start.command,
      time, launch.class_name, launch.torch, launch.env,        remake(launch, explanation),
      rings};
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
  write_report(context, view, report, now);
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
  const Result<facts::Supervised> run = host::supervise(context.machine, launch.start);
  if (launch.ended) launch.ended();
  if (!run) return context.output.exit_code_for(run.error());
  if (run->not_started) return not_started(context, *run->not_started);
  if (is_failure(*run)) explain_death(context, launch, *run, report);
  // A shell goes on with its loop where Ctrl-C ended the program and this process merely returned.
  if (run->signal == SIGINT) host::end_by_interrupt();
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
  if (run->signal == SIGINT) host::end_by_interrupt();
  return run->exit_code;
}

}  // namespace cufit::commands
