// SPDX-License-Identifier: Apache-2.0
#include "explain/supervised_end.h"

#include <algorithm>
#include <csignal>

#include "base/format.h"
#include "facts/ring_text.h"

namespace cufit::explain {
namespace {

// What the system told of host memory, where it speaks for a kill: evidence and its source.
std::vector<EvidenceLine> memory_evidence(const facts::Supervised& run) {
  std::vector<EvidenceLine> out;
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
void add_memory_kill(const facts::Supervised& run, Explanation& explanation) {
  constexpr int k_killed = 128 + SIGKILL;  // also of a child, as a shell reports it
  if (run.exit_code != k_killed) return;
  std::vector<EvidenceLine> evidence = memory_evidence(run);
  if (evidence.empty()) return;
  const char* const k_id = "host_ram_kill";
  std::vector<Cause>& causes = explanation.causes;
  Cause cause;
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
  cause.confidence = Confidence::likely;
  cause.score = 0.9;
  for (EvidenceLine& line : cause.evidence) evidence.push_back(std::move(line));
  cause.evidence = std::move(evidence);
  const bool proved = !causes.empty() && causes[0].confidence == Confidence::certain;
  causes.insert(causes.begin() + (proved ? 1 : 0), std::move(cause));
}

// torch stopped before it asked the driver: it names what the fraction allows.
bool stopped_by_fraction(const std::string& said) {
  return contains(said, " allowed; of the allocated memory");
}

bool says_oom(const Explanation& explanation, const std::string& said) {
  return explanation.oom || contains(said, "out of memory") || contains(said, "outofmemory");
}

// A refusal that a process recorded is the answer, where nothing was asked for after it or the output says out of memory:
// what words and sizes of the output suggest beside it was told under the limit. Only what is proved stays.
void answer_by_ring(std::string_view tail, Explanation& explanation) {
  std::vector<Cause>& causes = explanation.causes;
  const auto found = std::find_if(causes.begin(), causes.end(), [](const Cause& cause) {
    return cause.id == "cufit_quota_reached";
  });
  if (found == causes.end()) return;
  Cause cause = std::move(*found);
  causes.erase(found);
  const bool oom = says_oom(explanation, lower(std::string(tail)));
  if (cause.confidence == Confidence::possible && oom) {
    cause.confidence = Confidence::likely;
    cause.score = 0.9;
  }
  if (cause.confidence == Confidence::possible) return causes.push_back(std::move(cause));
  cause.would_decide = false;
  causes.erase(
      std::remove_if(causes.begin(), causes.end(),
                     [](const Cause& other) { return other.confidence != Confidence::certain; }),
      causes.end());
  causes.insert(causes.begin(), std::move(cause));
}

// torch stopped by its own fraction, which cufit set: no process asked the driver.
void add_fraction(std::string_view tail, Explanation& explanation) {
  const std::string said = lower(std::string(tail));
  if (!says_oom(explanation, said) || !stopped_by_fraction(said)) return;
  const char* const k_id = "gpu_quota_limit";
  std::vector<Cause>& causes = explanation.causes;
  if (!causes.empty() && causes[0].id == "cufit_quota_reached") return;
  Cause cause;
  cause.id = k_id;
  cause.finding.id = k_id;
  cause.finding.variant = "fraction";
  cause.confidence = Confidence::likely;
  cause.score = 0.9;
  cause.evidence.push_back({0, "quota", "per_process_memory_fraction"});
  for (size_t i = 0; i < causes.size(); ++i)
    if (causes[i].id == k_id) {
      for (EvidenceLine& line : causes[i].evidence) cause.evidence.push_back(line);
      causes.erase(causes.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  causes.insert(causes.begin(), std::move(cause));
}

// The refusal that ended the run: the latest that nothing followed, else the latest that less was asked for after. Its place
// in `rings`; as many as there are: none.
size_t telling_ring(const std::vector<formats::GpuRing>& rings) {
  size_t out = rings.size();
  std::pair<facts::AfterRefusal, uint64_t> best{facts::AfterRefusal::came_through, UINT64_MAX};
  for (size_t i = 0; i < rings.size(); ++i) {
    const formats::RingRefusal* last = facts::telling_refusal(rings[i]);
    if (!last || !rings[i].quota) continue;
    const std::pair weight(facts::after_refusal(rings[i], *last), last->ns);
    if (weight > best) best = weight, out = i;
  }
  return out;
}

}  // namespace

Explanation explain_end(const SupervisedEnd& end, const knowledge::Knowledge& knowledge) {
  Explainer explainer(knowledge);
  explainer.begin("output");
  explainer.add(end.tail);
  for (const formats::GpuRing& ring : end.rings)
    for (const formats::RingDevice& device : ring.devices)
      if (device.limited) explainer.know_limit(device.limit_bytes);
  if (const size_t telling = telling_ring(end.rings); telling < end.rings.size()) {
    const std::string& path = end.ring_files[telling];
    explainer.begin(path.substr(path.rfind('/') + 1));
    explainer.add_ring(end.rings[telling]);
  }
  Options options;
  options.name = "output";
  options.beside = &end.machine;
  options.dead = DeadRun{end.is_cpu};
  Explanation out = explainer.finish(options);
  answer_by_ring(end.tail, out);
  if (end.limited) add_fraction(end.tail, out);
  add_memory_kill(end.run, out);
  return out;
}

}  // namespace cufit::explain
