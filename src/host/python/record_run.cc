// SPDX-License-Identifier: Apache-2.0
#include "host/python/record_run.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "base/number.h"
#include "host/process/process_tree.h"
#include "host/process/spawn.h"
#include "host/python/sitecustomize_dir.h"

namespace cufit::host {
namespace {

constexpr int k_record_run_passed_on[] = {SIGUSR1, SIGTERM, SIGHUP, SIGINT, SIGQUIT};

// Signals are blocked and taken by sigtimedwait, so that no handler is needed.
sigset_t recorder_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : k_record_run_passed_on) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  return set;
}

// What the processes tell, one file each.
std::string state_of(const ScriptFolder& scratch) { return scratch.path() + "/state"; }

SpawnOptions spawn_options(const RecordOptions& options, const ScriptFolder& scratch) {
  SpawnOptions out;
  out.command = options.command;
  out.variables = {{"PYTHONPATH", scratch.python_path()},
                   {"CUFIT_RECORD_STATE", state_of(scratch)},
                   {"CUFIT_RECORD_OUT", options.folder},
                   {"CUFIT_RECORD_EVENTS", std::to_string(options.events)},
                   {"CUFIT_RECORD_STACKS", options.stacks}};
  for (const auto& [name, text] : options.sentences)
    out.variables.emplace_back("CUFIT_RECORD_SAY_" + name, text);
  out.variables.emplace_back("CUFIT_RECORD_EXIT",
                             options.at_exit ? std::optional<std::string>("1") : std::nullopt);
  return out;
}

// Whether SIGUSR1 would not simply kill it: SigCgt of /proc/PID/status, a mask in hex.
bool catches_usr1(pid_t pid) {
  const std::string status = read_small(format("/proc/{}/status", pid));
  const size_t at = status.find("SigCgt:");
  if (at == std::string::npos) return false;
  const std::string_view line =
      trim(std::string_view(status).substr(at + 7, status.find('\n', at) - at - 7));
  const std::optional<uint64_t> mask = parse_uint(line, 16);
  return mask && ((*mask >> (SIGUSR1 - 1)) & 1) != 0;
}

void ask_for_snapshots(pid_t child) {
  for (const pid_t pid : processes_from(child))
    if (catches_usr1(pid)) kill(pid, SIGUSR1);
}

int wait_for(pid_t child, const sigset_t& awaited) {
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno == ECHILD) return 0;
    if (ended == child) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    siginfo_t info;
    const int number = sigwaitinfo(&awaited, &info);
    if (number == SIGUSR1) ask_for_snapshots(child);
    // What the terminal sends goes to the whole group: the child has it already.
    const bool from_terminal = (number == SIGINT || number == SIGQUIT) && info.si_code == SI_KERNEL;
    if (number > 0 && number != SIGUSR1 && number != SIGCHLD && !from_terminal) kill(child, number);
  }
}

// "3 /path": the third moment of the process. A later one may have taken the file over.
void add_moment(std::string_view words, std::vector<RecordedSnapshot>& snapshots) {
  const size_t space = words.find(' ');
  const std::optional<uint64_t> moment = parse_uint(words.substr(0, space));
  if (!moment || space == std::string_view::npos) return;
  const std::string_view path = words.substr(space + 1);
  for (RecordedSnapshot& one : snapshots) {
    if (one.path != path) continue;
    one.moment = *moment;
    return;
  }
  snapshots.push_back({std::string(path), *moment, 0});
}

// What one process told.
void read_process_state(const std::string& text, RecordOutcome& outcome) {
  std::vector<RecordedSnapshot> snapshots;
  uint64_t moments = 0;
  for (const std::string_view line : split_lines(text)) {
    if (starts_with(line, "recording ")) ++outcome.recording;
    if (starts_with(line, "snapshot ")) snapshots.push_back({std::string(line.substr(9)), 0, 0});
    if (starts_with(line, "oom ")) moments = parse_uint(line.substr(4)).value_or(moments);
    if (starts_with(line, "moment ")) add_moment(line.substr(7), snapshots);
    if (starts_with(line, "unwritten ")) outcome.unwritten.emplace_back(line.substr(10));
    if (starts_with(line, "failed ")) outcome.failures.emplace_back(line.substr(7));
  }
  for (RecordedSnapshot& one : snapshots) {
    if (one.moment > 0) one.moments = moments;
    outcome.snapshots.push_back(std::move(one));
  }
}

void read_state(const ScriptFolder& scratch, RecordOutcome& outcome) {
  for (const std::string& name : names_in(state_of(scratch))) {
    if (!parse_uint(name)) continue;
    ++outcome.pythons;
    read_process_state(read_small(state_of(scratch) + "/" + name), outcome);
  }
}

}  // namespace

Result<RecordOutcome> record_run(const RecordOptions& options) {
  CUFIT_TRY(scratch, ScriptFolder::make("record", record_sitecustomize(), {"state"}));
  const sigset_t awaited = recorder_signals();
  SpawnOptions start = spawn_options(options, scratch);
  sigset_t& before = start.blocked;
  sigprocmask(SIG_BLOCK, &awaited, &before);
  CUFIT_TRY(child, spawn_program(start));
  const int why = child.start_error(true);
  RecordOutcome outcome;
  outcome.exit_code = wait_for(child.pid, awaited);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (why != 0)
    return fail(Code::not_found, format("`{}`: {}", options.command[0], std::strerror(why)));
  read_state(scratch, outcome);
  return outcome;
}

}  // namespace cufit::host
