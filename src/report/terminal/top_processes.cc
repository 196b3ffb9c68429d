// SPDX-License-Identifier: Apache-2.0
// The processes of `cufit top`: who uses which GPU, how its memory grows, when the card is full.
#include <algorithm>
#include <functional>
#include <set>

#include "base/format.h"
#include "report/terminal/mem_words.h"
#include "report/terminal/top_lines.h"

namespace cufit::report {
namespace {

using watch::MemoryTrend;
using watch::WatchedProcess;

constexpr int k_gpu = 4, k_pid = 9, k_user = 10, k_memory = 11, k_use = 5, k_growth = 13,
              k_full = 8, k_age = 8, k_where = 18, k_with_where = 90, k_with_age = 116;
// Below it the difference is rounding, or what each context keeps outside of its own figure.
constexpr uint64_t k_least_unowned = uint64_t{64} << 20;

// Job, pod, container or unit: the first that is there says most.
std::string where_of(const facts::ProcessOwner& owner) {
  if (!owner.slurm_job.empty())
    return owner.slurm_step.empty() ? "job " + owner.slurm_job
                                    : format("job {}.{}", owner.slurm_job, owner.slurm_step);
  if (!owner.pod.empty()) return owner.pod_namespace + "/" + owner.pod;
  if (!owner.container_name.empty()) return owner.container_name;
  if (!owner.container.empty()) return owner.container.substr(0, 12);
  if (!owner.pod_uid.empty()) return "pod " + owner.pod_uid.substr(0, 8);
  return owner.unit;
}

std::string user_of(const facts::ProcessOwner& owner) {
  if (!owner.user.empty()) return owner.user;
  return owner.uid ? std::to_string(*owner.uid) : "?";
}

// "/opt/env/bin/python train.py" as "python train.py": the folder is in --json.
std::string_view without_folder(std::string_view command) {
  const size_t slash = command.substr(0, command.find(' ')).rfind('/');
  return slash == std::string_view::npos ? command : command.substr(slash + 1);
}

double growth_of(const WatchedProcess& process) {
  return process.trend.slope_bytes_per_s.value_or(0);
}

bool before(TopSort sort, const WatchedProcess& a, const WatchedProcess& b) {
  switch (sort) {
    case TopSort::memory:
      return a.now.memory_bytes.value_or(0) > b.now.memory_bytes.value_or(0);
    case TopSort::utilization:
      return a.now.utilization.value_or(-1) > b.now.utilization.value_or(-1);
    case TopSort::growth:
      return growth_of(a) > growth_of(b);
    case TopSort::age:
      return a.now.owner.started.value_or(1e18) < b.now.owner.started.value_or(1e18);
    case TopSort::pid:
      return a.now.pid < b.now.pid;
    case TopSort::user:
      return user_of(a.now.owner) < user_of(b.now.owner);
  }
  return false;
}

class ProcessLines {
 public:
  ProcessLines(const TopWords& words, TopLines& out) : words_(words), out_(out) {}

  void make() {
    head();
    std::vector<const WatchedProcess*> shown = chosen();
    if (words_.picture.tree)
      tree(shown);
    else
      for (const WatchedProcess* process : shown) row(*process, 0);
    if (words_.picture.filter.empty())
      for (const watch::WatchedGpu& gpu : words_.machine.gpus) unowned(gpu);
    if (out_.processes.empty()) {
      LineMaker line(words_.width);
      line.add(words_.say(words_.picture.filter.empty() ? "top.no_process" : "top.none_matches",
                          {{"filter", printable(words_.picture.filter)}}),
               Look::dim);
      out_.processes.push_back(line.done());
    }
  }

 private:
  bool has_where() const { return words_.width >= k_with_where; }
  bool has_age() const { return words_.width >= k_with_age; }

  void head() {
    LineMaker line(words_.width);
    const auto say = [&](const char* key) { return words_.say(std::string("top.column.") + key); };
    line.left(say("gpu"), k_gpu, Look::bold).right(say("pid"), k_pid, Look::bold).add("  ");
    line.left(say("user"), k_user, Look::bold).right(say("memory"), k_memory, Look::bold);
    line.right(say("use"), k_use, Look::bold).right(say("growth"), k_growth, Look::bold);
    line.right(say("full"), k_full, Look::bold);
    if (has_age()) line.right(say("age"), k_age, Look::bold);
    line.add("  ");
    if (has_where()) line.left(say("where"), k_where, Look::bold).add(" ");
    line.add(say("command"), Look::bold);
    out_.process_head.push_back(line.done());
  }

  std::vector<const WatchedProcess*> chosen() const {
    std::vector<const WatchedProcess*> out;
    for (const WatchedProcess& process : words_.machine.processes)
      if (matches(process)) out.push_back(&process);
    const TopPicture& picture = words_.picture;
    std::stable_sort(out.begin(), out.end(), [&](const WatchedProcess* a, const WatchedProcess* b) {
      if (picture.by_gpu && a->now.gpu != b->now.gpu) return a->now.gpu < b->now.gpu;
      return before(picture.sort, *a, *b);
    });
    return out;
  }

  // What a process started stands under it; what one launcher started (torchrun uses no GPU) stands together.
  void tree(const std::vector<const WatchedProcess*>& shown) {
    std::set<uint32_t> listed;
    for (const WatchedProcess* process : shown) listed.insert(process->now.pid);
    std::set<const WatchedProcess*> done;
    const auto parent = [](const WatchedProcess* process) { return process->now.owner.parent; };
    const std::function<void(const WatchedProcess*, int)> put = [&](const WatchedProcess* process,
                                                                    int depth) {
      if (!done.insert(process).second) return;
      row(*process, std::min(depth, 8));
      for (const WatchedProcess* child : shown)
        if (parent(child) == process->now.pid) put(child, depth + 1);
    };
    for (const WatchedProcess* process : shown) {
      if (listed.count(parent(process)) > 0) continue;
      for (const WatchedProcess* sibling : shown)
        if (sibling == process || (parent(process) > 1 && parent(sibling) == parent(process)))
          put(sibling, 0);
    }
    for (const WatchedProcess* process : shown) put(process, 0);  // of a ring of parents
  }

  // Every word stands somewhere in the row, in any case.
  bool matches(const WatchedProcess& process) const {
    if (words_.picture.filter.empty()) return true;
    const facts::ProcessOwner& owner = process.now.owner;
    const std::string row =
        lower(format("{} {} {} {} {} {} {}", user_of(owner), process.now.pid, where_of(owner),
                     owner.command, owner.unit, owner.container, owner.environment));
    for (const std::string_view word : split(words_.picture.filter, ' '))
      if (!word.empty() && !contains(row, lower(word))) return false;
    return true;
  }

  std::string gpu_name(uint32_t place) const {
    const facts::SampledGpu& gpu = words_.machine.gpus[place].now;
    if (gpu.profile.empty()) return std::to_string(gpu.index);
    uint32_t number = 0;  // of the instances of its GPU
    for (uint32_t i = 0; i < place; ++i)
      if (words_.machine.gpus[i].now.parent_uuid == gpu.parent_uuid) ++number;
    return format("{}:{}", gpu.index, number);
  }

  void row(const WatchedProcess& process, int depth) {
    const facts::SampledProcess& now = process.now;
    const facts::ProcessOwner& owner = now.owner;
    const MemoryTrend& trend = process.trend;
    const bool grows = trend.state == MemoryTrend::State::growing;
    LineMaker line(words_.width);
    line.left(gpu_name(now.gpu), k_gpu).right(std::to_string(now.pid), k_pid).add("  ");
    line.left(printable(user_of(owner)), k_user);
    line.right(now.memory_bytes ? gib(*now.memory_bytes) : "-", k_memory);
    line.right(now.utilization ? format("{:.0f}%", *now.utilization * 100) : "-", k_use);
    line.right(grows ? growth_text(*trend.slope_bytes_per_s) : "-", k_growth,
               grows ? Look::warn : Look::plain);
    const Look urgent = trend.full_in_s && *trend.full_in_s < 3600 ? Look::bad : Look::warn;
    line.right(trend.full_in_s ? rough_time(*trend.full_in_s, words_.lang) : "-", k_full,
               trend.full_in_s ? urgent : Look::plain);
    if (has_age())
      line.right(
          owner.started ? rough_time(words_.machine.time - *owner.started, words_.lang) : "-",
          k_age);
    line.add("  ");
    if (has_where()) line.left(printable(where_of(owner)), k_where).add(" ");
    if (depth > 0) line.add(std::string(static_cast<size_t>(depth - 1) * 2, ' ') + "`-");
    if (!owner.visible)
      line.add(words_.say("top.hidden"), Look::dim);
    else
      line.add(owner.command.empty() ? words_.say("top.no_command")
                                     : printable(without_folder(owner.command)));
    out_.processes.push_back(line.done());
  }

  void unowned(const watch::WatchedGpu& gpu) {
    if (gpu.unowned_bytes.value_or(0) < k_least_unowned) return;
    const auto place = static_cast<uint32_t>(&gpu - words_.machine.gpus.data());
    LineMaker line(words_.width);
    line.left(gpu_name(place), k_gpu).right("-", k_pid).add("  ").left("-", k_user);
    line.right(gib(*gpu.unowned_bytes), k_memory).add("  ");
    line.add(words_.say("top.unowned"), Look::dim);
    out_.processes.push_back(line.done());
  }

  const TopWords& words_;
  TopLines& out_;
};

}  // namespace

std::optional<TopSort> sort_at(int column) {
  struct Column {
    int width;
    std::optional<TopSort> sort;
  };
  const Column columns_in_order[] = {
      {k_gpu, std::nullopt},         {k_pid, TopSort::pid},
      {2 + k_user, TopSort::user},   {k_memory, TopSort::memory},
      {k_use, TopSort::utilization}, {k_growth + k_full, TopSort::growth},
      {k_age, TopSort::age}};
  for (const Column& one : columns_in_order) {
    if (column < one.width) return one.sort;
    column -= one.width;
  }
  return std::nullopt;
}

void top_process_lines(const TopWords& words, TopLines& out) { ProcessLines(words, out).make(); }

}  // namespace cufit::report
