// SPDX-License-Identifier: Apache-2.0
#include "host/process/process_owner.h"

#include <unistd.h>

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/format.h"
#include "base/number.h"
#include "facts/secrets.h"
#include "formats/prose/printable.h"
#include "formats/system/cgroup_owner.h"

namespace cufit::host {
namespace {

constexpr size_t k_command_bytes = 4096;  // that are shown
constexpr size_t k_command_read_bytes =
    4 * k_command_bytes;  // a word that is cut in two hides no secret behind the cut
constexpr size_t k_variables_bytes =
    6u << 20;  // the kernel's bound of arguments and variables is 3/4 of 8 MiB of stack
constexpr double k_keep_seconds = 60, k_program_seconds = 5;

struct ProcessStat {
  std::string name;
  char state = 0;
  uint64_t start_ticks = 0;
  uint32_t parent = 0;
};

// Of the first thread: /proc/PID/stat adds the times of all threads up, and a program with CUDA has hundreds. The name
// between brackets may hold brackets and blanks.
std::optional<ProcessStat> read_stat(const Host& host, uint32_t pid) {
  const Result<std::string> text = host.read_head(format("/proc/{}/task/{}/stat", pid, pid), 1024);
  if (!text) return std::nullopt;
  const std::string_view stat(*text);
  const size_t begin = stat.find('('), end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
    return std::nullopt;
  const std::vector<std::string_view> fields = split(stat.substr(end + 1), ' ');
  if (fields.size() < 21 || fields[1].size() != 1) return std::nullopt;
  const std::optional<uint64_t> start = parse_uint(fields[20]);
  if (!start) return std::nullopt;
  return ProcessStat{std::string(stat.substr(begin + 1, end - begin - 1)), fields[1][0], *start,
                     static_cast<uint32_t>(parse_uint(fields[2]).value_or(0))};
}

// "Uid:\t1000\t1000\t1000\t1000": the real one, whose job it is also where a program runs with another's rights.
std::optional<uint32_t> read_uid(const Host& host, uint32_t pid) {
  const Result<std::string> text = host.read_head(format("/proc/{}/status", pid), 4096);
  if (!text) return std::nullopt;
  for (const std::string_view line : split_lines(*text)) {
    if (!starts_with(line, "Uid:")) continue;
    const std::vector<std::string_view> fields = split(line, '\t');
    const std::optional<uint64_t> uid = fields.size() < 2 ? std::nullopt : parse_uint(fields[1]);
    if (uid && *uid <= UINT32_MAX) return static_cast<uint32_t>(*uid);
  }
  return std::nullopt;
}

// The variables that say whose a process is. They are what it was started with, written by its user.
struct OwnerVariables {
  std::string job, step, domain, environment, virtual_env, conda_prefix, hostname;
};

OwnerVariables read_owner_variables(const Host& host, uint32_t pid) {
  OwnerVariables out;
  const Result<std::string> text =
      host.read_file(format("/proc/{}/environ", pid), k_variables_bytes);
  if (!text) return out;
  struct Wanted {
    std::string_view name;
    std::string& value;
  };
  Wanted wanted[] = {{"SLURM_JOB_ID=", out.job},        {"SLURM_STEP_ID=", out.step},
                     {"CUFIT_DOMAIN=", out.domain},     {"CUFIT_CLASS=", out.environment},
                     {"VIRTUAL_ENV=", out.virtual_env}, {"CONDA_PREFIX=", out.conda_prefix},
                     {"HOSTNAME=", out.hostname}};
  for (const std::string_view each : split(*text, '\0'))
    for (Wanted& one : wanted)
      if (starts_with(each, one.name) && one.value.empty())  // the first, as programs read it
        one.value = formats::printable(each.substr(one.name.size()), 1024);
  return out;
}

void take_variables(OwnerVariables variables, facts::ProcessOwner& owner) {
  if (owner.slurm_job.empty() && parse_uint(variables.job)) {
    owner.slurm_job = std::move(variables.job);
    owner.slurm_step = formats::slurm_step_name(variables.step);
  }
  owner.quota = std::move(variables.domain);
  owner.environment = std::move(variables.environment);
  owner.python_environment =
      std::move(variables.virtual_env.empty() ? variables.conda_prefix : variables.virtual_env);
}

void take_cgroup(const Host& host, uint32_t pid, facts::ProcessOwner& owner) {
  const Result<std::string> text = host.read_head(format("/proc/{}/cgroup", pid), 1u << 16);
  if (!text) return;
  formats::CgroupOwner said = formats::parse_cgroup_owner(*text);
  owner.runtime = std::move(said.runtime);
  owner.container = std::move(said.container);
  owner.container_name = std::move(said.container_name);
  owner.pod_uid = std::move(said.pod_uid);
  owner.slurm_job = std::move(said.slurm_job);
  owner.slurm_step = std::move(said.slurm_step);
  owner.unit = std::move(said.unit);
}

std::string command_of(const Host& host, uint32_t pid, const ProcessStat& stat) {
  const Result<std::string> words =
      host.read_head(format("/proc/{}/cmdline", pid), k_command_read_bytes);
  if (!words) return {};
  std::string shown = formats::printable(facts::shown_command(*words), k_command_bytes);
  // It is ending: its words are gone with its memory.
  return shown.empty() ? "[" + formats::printable(stat.name, 64) + "]" : shown;
}

// The kernel lets nobody read the words and variables of a process while it changes its own address space; one that hangs in
// the driver can be in the middle of that. Such a process waits uninterruptibly (D); it is looked at again by the next
// sample. Another of its threads can hang so as well: that is not seen here, and then the read waits with it.
KeptOwner read_owner(const Host& host, uint32_t pid, const ProcessStat& stat, KeptOwner before,
                     OwnerNames& names) {
  KeptOwner out;
  out.start_ticks = stat.start_ticks;
  out.name = stat.name;
  out.is_whole = stat.state != 'D';
  facts::ProcessOwner& owner = out.owner;
  owner.visible = true;
  owner.parent = stat.parent;
  owner.uid = read_uid(host, pid);
  take_cgroup(host, pid, owner);
  if (const std::optional<double> boot = names.boot_seconds(host)) {
    static const long k_ticks = ::sysconf(_SC_CLK_TCK);
    owner.started = *boot + static_cast<double>(stat.start_ticks) /
                                static_cast<double>(k_ticks > 0 ? k_ticks : 100);
  }
  if (out.is_whole) {
    owner.command = command_of(host, pid, stat);
    OwnerVariables variables = read_owner_variables(host, pid);
    out.hostname = std::move(variables.hostname);
    take_variables(std::move(variables), owner);
  } else if (before.start_ticks == stat.start_ticks && before.is_whole) {
    out.hostname = std::move(before.hostname);
    owner.command = std::move(before.owner.command);
    owner.quota = std::move(before.owner.quota);
    owner.environment = std::move(before.owner.environment);
    owner.python_environment = std::move(before.owner.python_environment);
    if (owner.slurm_job.empty()) {
      owner.slurm_job = std::move(before.owner.slurm_job);
      owner.slurm_step = std::move(before.owner.slurm_step);
    }
  } else {
    owner.command = "[" + formats::printable(stat.name, 64) + "]";
  }
  return out;
}

}  // namespace

facts::ProcessOwner read_process_owner(const Host& host, uint32_t pid, OwnerNames& names) {
  const std::optional<ProcessStat> stat = read_stat(host, pid);
  if (!stat) {
    names.forget(pid);
    return {};
  }
  const double now = names.now();
  KeptOwner* kept = names.kept(pid);
  std::string program;
  // Most execs change the name, too: the link is looked at less often.
  const bool same = kept != nullptr && kept->start_ticks == stat->start_ticks &&
                    kept->name == stat->name && now - kept->program_at < k_program_seconds;
  if (same) {
    program = kept->program;
  } else {
    program = host.read_link(format("/proc/{}/exe", pid)).value_or("");
    if (kept != nullptr) kept->program_at = now;
  }
  // Not all of one minute's at the same moment.
  const double keep_seconds = k_keep_seconds - pid % 16;
  if (kept == nullptr || kept->start_ticks != stat->start_ticks || kept->name != stat->name ||
      kept->program != program || !kept->is_whole || now - kept->read_at >= keep_seconds) {
    KeptOwner read = read_owner(host, pid, *stat, kept == nullptr ? KeptOwner() : *kept, names);
    // Its parts are of one process: the pid was not given to another meanwhile.
    const std::optional<ProcessStat> after = read_stat(host, pid);
    if (!after || after->start_ticks != stat->start_ticks) {
      names.forget(pid);
      return {};
    }
    read.program = std::move(program);
    read.program_at = now;
    read.read_at = now;
    names.keep(pid, std::move(read));
    kept = names.kept(pid);
  }
  kept->seen_at = now;
  names.name(host, kept->owner);
  return kept->owner;
}

}  // namespace cufit::host
