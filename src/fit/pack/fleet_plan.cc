// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_plan.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "fit/pack/fleet_assignment.h"

namespace cufit::pack {
namespace {

// A search of some 0.2 s, as that of pack_plan.cc.
constexpr uint64_t k_fleet_node_limit = 300'000;

std::string model_of(const Gpu& gpu) {
  return (gpu.table.empty() ? model_name(gpu) : gpu.table) + "|" + gpu.profile +
         format("|{}", gpu.context);
}

class FleetPlanner {
 public:
  FleetPlanner(const FleetQuestion& question, const knowledge::Knowledge& knowledge)
      : question_(question), knowledge_(knowledge) {
    for (const Job& job : question.jobs) {
      items_.emplace_back();
      for (uint32_t i = 0; i < job.gpus; ++i) {
        items_.back().push_back(static_cast<uint32_t>(out_.parts.jobs.size()));
        job_of_.push_back(items_.size() - 1);
        out_.parts.jobs.push_back(job);
        out_.parts.jobs.back().gpus = 1;
        out_.parts.jobs.back().part = job.gpus > 1;
      }
    }
    for (size_t i = 0; i < question.machines.size(); ++i) {
      out_.first_gpu.push_back(out_.parts.gpus.size());
      for (const Gpu& gpu : question.machines[i].gpus) {
        node_of_.push_back(static_cast<uint32_t>(i));
        out_.parts.gpus.push_back(gpu);
      }
    }
    out_.parts.goal = out_.goal = question.goal;
    out_.parts.divide = question.divide;
  }

  FleetPlan plan() && {
    FleetAssignment found;
    out_.plan = plan_by(out_.parts, knowledge_, [&](const Problem& problem) {
      const FleetProblem fleet{problem, node_of_, models(problem), items_};
      found = assign_fleet(fleet, question_.goal == Goal::headroom, k_fleet_node_limit);
      Assignment parts;
      parts.bin_of = found.bin_of;
      parts.used = found.used;
      return parts;
    });
    take(found);
    return std::move(out_);
  }

 private:
  // Equal numbers for kinds of GPUs that differ in what is free alone.
  std::vector<uint32_t> models(const Problem& problem) const {
    std::vector<uint32_t> out(problem.kinds.size(), 0);
    std::map<std::string, uint32_t> known;
    for (size_t bin = 0; bin < problem.bins.size(); ++bin) {
      const auto number = static_cast<uint32_t>(known.size());
      out[problem.bins[bin]] = known.emplace(model_of(out_.parts.gpus[bin]), number).first->second;
    }
    return out;
  }

  void take(const FleetAssignment& found) {
    constexpr unsigned k_mib_bits = 20;
    out_.used = found.used;
    out_.optimal = found.optimal();
    out_.most_placed = found.most_placed;
    out_.fewest_used = found.fewest_used;
    out_.headroom = uint64_t{found.headroom} << k_mib_bits;
    out_.most_headroom = uint64_t{found.most_headroom} << k_mib_bits;
    std::vector<FleetPlaced> of_job(question_.jobs.size());
    for (size_t gpu = 0; gpu < out_.plan.gpus.size(); ++gpu)
      for (const PlacedJob& part : out_.plan.gpus[gpu].jobs) {
        FleetPlaced& placed = of_job[job_of_[part.job]];
        placed.job = job_of_[part.job];
        placed.machine = node_of_[gpu];
        placed.gpus.push_back(gpu - out_.first_gpu[placed.machine]);
        placed.on.push_back(part);
        placed.bytes = std::max(placed.bytes, part.bytes);
      }
    for (size_t job = 0; job < of_job.size(); ++job) {
      CUFIT_CHECK(of_job[job].gpus.empty() || of_job[job].gpus.size() == items_[job].size(),
                  "a job has all of its GPUs or none");
      if (of_job[job].gpus.empty())
        out_.unplaced.push_back(job);
      else
        out_.placed.push_back(std::move(of_job[job]));
    }
    std::stable_sort(out_.placed.begin(), out_.placed.end(),
                     [](const FleetPlaced& a, const FleetPlaced& b) {
                       return std::pair(a.machine, a.gpus) < std::pair(b.machine, b.gpus);
                     });
  }

  const FleetQuestion& question_;
  const knowledge::Knowledge& knowledge_;
  std::vector<std::vector<uint32_t>> items_;  // of each job
  std::vector<size_t> job_of_;                // each part's
  std::vector<uint32_t> node_of_;             // each GPU's
  FleetPlan out_;
};

}  // namespace

Result<FleetPlan> make_fleet_plan(const FleetQuestion& question,
                                  const knowledge::Knowledge& knowledge) {
  size_t gpus = 0, parts = 0;
  for (const Machine& machine : question.machines) gpus += machine.gpus.size();
  for (const Job& job : question.jobs) parts += job.gpus;
  if (parts > k_most_fleet_jobs)
    return fail(Code::usage, format("jobs for {} GPUs: at most {} are planned at once", parts,
                                    k_most_fleet_jobs));
  if (gpus > k_most_fleet_gpus)
    return fail(Code::usage,
                format("{} GPUs: at most {} are planned for at once", gpus, k_most_fleet_gpus));
  if (question.divide && question.goal == Goal::headroom)
    return fail(Code::usage,
                "`--goal headroom` goes without `--mig`: the size of an instance is fixed");
  return FleetPlanner(question, knowledge).plan();
}

MachineFit fit_on_machine(const Job& job, const Machine& machine) {
  MachineFit out;
  std::map<std::string, uint32_t> good;  // by model
  uint64_t nearest = UINT64_MAX;
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    const Gpu& gpu = machine.gpus[i];
    const uint64_t needs = bytes_on(job, gpu).value_or(k_most_job_bytes);
    const uint64_t missing = needs > gpu.usable ? needs - gpu.usable : 0;
    if (missing < nearest) {
      nearest = missing;
      out.needs = needs;
      out.has = gpu.usable;
      out.gpu = i;
    }
    if (taken_on(job, gpu)) out.good_gpus = std::max(out.good_gpus, ++good[model_of(gpu)]);
  }
  out.fits = out.good_gpus >= job.gpus;
  return out;
}

}  // namespace cufit::pack
