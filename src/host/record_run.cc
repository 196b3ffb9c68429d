// SPDX-License-Identifier: Apache-2.0
#include "host/record_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/format.h"
#include "base/number.h"

namespace cufit::host {
namespace {

constexpr int k_passed_on[] = {SIGUSR1, SIGTERM, SIGHUP, SIGINT, SIGQUIT};
constexpr size_t k_state_bytes = 1u << 16;  // of one process; it writes a line per snapshot

// Signals are blocked and taken by sigtimedwait, so that no handler is needed.
sigset_t awaited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : k_passed_on) sigaddset(&set, number);
  sigaddset(&set, SIGCHLD);
  return set;
}

std::string read_small(const std::string& path) {
  std::string out(k_state_bytes, '\0');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return {};
  const ssize_t got = read(file, out.data(), out.size());
  close(file);
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return out;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  DIR* listing = opendir(folder.c_str());
  if (listing == nullptr) return names;
  while (const dirent* entry = readdir(listing)) names.emplace_back(entry->d_name);
  closedir(listing);
  std::sort(names.begin(), names.end());
  return names;
}

// A folder that only this user can look into, with the sitecustomize and a folder for what the
// processes tell. Removed with what cufit put there.
class Scratch {
 public:
  static Result<Scratch> make() {
    const char* base = std::getenv("TMPDIR");
    std::string path = std::string(base != nullptr && *base != '\0' ? base : "/tmp");
    path += "/cufit-record-XXXXXX";
    if (mkdtemp(path.data()) == nullptr)
      return fail(Code::io, format("`{}`: {}", path, std::strerror(errno)));
    Scratch scratch(std::move(path));
    if (mkdir(scratch.state().c_str(), 0700) != 0)
      return fail(Code::io, format("`{}`: {}", scratch.state(), std::strerror(errno)));
    const std::string script = scratch.path_ + "/sitecustomize.py";
    std::FILE* file = std::fopen(script.c_str(), "wxb");
    bool good = file != nullptr;
    if (good) {
      good = std::fputs(record_sitecustomize(), file) >= 0;
      good = std::fclose(file) == 0 && good;
    }
    if (!good) return fail(Code::io, format("`{}` cannot be written", script));
    return scratch;
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    if (path_.empty()) return;
    for (const std::string& name : names_in(state())) unlink((state() + "/" + name).c_str());
    rmdir(state().c_str());
    unlink((path_ + "/sitecustomize.py").c_str());
    // Python may have kept a compiled copy.
    const std::string compiled = path_ + "/__pycache__";
    for (const std::string& name : names_in(compiled)) unlink((compiled + "/" + name).c_str());
    rmdir(compiled.c_str());
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  std::string state() const { return path_ + "/state"; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

void set_environment(const RecordOptions& options, const Scratch& scratch) {
  const char* before = std::getenv("PYTHONPATH");
  std::string path = scratch.path();
  if (before != nullptr && *before != '\0') path += ":" + std::string(before);
  setenv("PYTHONPATH", path.c_str(), 1);
  setenv("CUFIT_RECORD_STATE", scratch.state().c_str(), 1);
  setenv("CUFIT_RECORD_OUT", options.folder.c_str(), 1);
  setenv("CUFIT_RECORD_EVENTS", std::to_string(options.events).c_str(), 1);
  setenv("CUFIT_RECORD_STACKS", options.stacks.c_str(), 1);
  if (options.at_exit)
    setenv("CUFIT_RECORD_EXIT", "1", 1);
  else
    unsetenv("CUFIT_RECORD_EXIT");
}

// Parents of all processes that this user can see.
std::map<pid_t, pid_t> process_parents() {
  std::map<pid_t, pid_t> parents;
  for (const std::string& name : names_in("/proc")) {
    const std::optional<uint64_t> pid = parse_uint(name);
    if (!pid) continue;
    const std::string stat = read_small("/proc/" + name + "/stat");
    // "PID (NAME) STATE PPID": the name may hold anything, brackets too.
    const size_t end = stat.rfind(')');
    if (end == std::string::npos || end + 4 >= stat.size()) continue;
    const std::vector<std::string_view> rest = split(std::string_view(stat).substr(end + 2), ' ');
    if (rest.size() < 2) continue;
    if (const std::optional<uint64_t> parent = parse_uint(rest[1]))
      parents[static_cast<pid_t>(*pid)] = static_cast<pid_t>(*parent);
  }
  return parents;
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
  const std::map<pid_t, pid_t> parents = process_parents();
  const auto below_child = [&](pid_t pid) {
    std::set<pid_t> seen;
    while (pid > 1 && seen.insert(pid).second) {
      if (pid == child) return true;
      const auto parent = parents.find(pid);
      if (parent == parents.end()) return false;
      pid = parent->second;
    }
    return false;
  };
  for (const auto& [pid, parent] : parents)
    if (below_child(pid) && catches_usr1(pid)) kill(pid, SIGUSR1);
}

// The child's side; returns only where the program could not be started.
int become(const RecordOptions& options, const Scratch& scratch, const sigset_t& before) {
  set_environment(options, scratch);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  std::vector<char*> arguments;
  for (const std::string& word : options.command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  return errno;
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

void read_state(const Scratch& scratch, RecordOutcome& outcome) {
  for (const std::string& name : names_in(scratch.state())) {
    if (!parse_uint(name)) continue;
    ++outcome.pythons;
    const std::string text = read_small(scratch.state() + "/" + name);
    for (const std::string_view line : split_lines(text)) {
      if (starts_with(line, "recording ")) ++outcome.recording;
      if (starts_with(line, "snapshot ")) outcome.snapshots.emplace_back(line.substr(9));
      if (starts_with(line, "unwritten ")) outcome.unwritten.emplace_back(line.substr(10));
      if (starts_with(line, "failed ")) outcome.failures.emplace_back(line.substr(7));
    }
  }
}

}  // namespace

Result<RecordOutcome> record_run(const RecordOptions& options) {
  CUFIT_TRY(scratch, Scratch::make());
  const sigset_t awaited = awaited_signals();
  sigset_t before;
  signal(SIGCHLD, SIG_DFL);  // ignored, it would take the child's exit code away
  sigprocmask(SIG_BLOCK, &awaited, &before);
  int report[2];  // the child tells why it could not start
  if (pipe2(report, O_CLOEXEC) != 0) return fail(Code::io, std::strerror(errno));
  const pid_t child = fork();
  if (child < 0) return fail(Code::io, format("fork: {}", std::strerror(errno)));
  if (child == 0) {
    const int why = become(options, scratch, before);
    (void)!write(report[1], &why, sizeof why);
    _exit(127);
  }
  close(report[1]);
  int why = 0;
  const bool failed = read(report[0], &why, sizeof why) == sizeof why;
  close(report[0]);
  RecordOutcome outcome;
  outcome.exit_code = wait_for(child, awaited);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (failed)
    return fail(Code::not_found, format("`{}`: {}", options.command[0], std::strerror(why)));
  read_state(scratch, outcome);
  return outcome;
}

}  // namespace cufit::host
