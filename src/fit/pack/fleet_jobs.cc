// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/fleet_jobs.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/format.h"

namespace cufit::pack {
namespace {

JobCannot what_is_missing(const Job& job, const Machine& machine, const MachineFit& fit) {
  JobCannot out;
  out.gpus = job.gpus;
  if (machine.gpus.empty()) {
    out.why = machine.given_away > 0 ? JobCannot::Why::given_away : JobCannot::Why::no_gpu;
    return out;
  }
  out.gpu = model_name(machine.gpus[fit.gpu]);
  out.needs = fit.needs;
  out.least = out.most = fit.has;
  out.least_good = out.most_good = fit.good_gpus;
  const bool small = fit.needs > fit.has;
  const bool divided = job.gpus > 1 && std::any_of(machine.gpus.begin(), machine.gpus.end(),
                                                   [](const Gpu& gpu) { return gpu.is_instance; });
  out.why = small                                            ? JobCannot::Why::too_small
            : job.gpus > 1 && fit.good_gpus > 0              ? JobCannot::Why::too_few
            : divided                                        ? JobCannot::Why::instances
            : job.gpus > 1 && job.gpus > machine.gpus.size() ? JobCannot::Why::too_few
                                                             : JobCannot::Why::given_away;
  return out;
}

}  // namespace

JobNodes nodes_for_job(const Job& job, const std::vector<Machine>& machines,
                       const std::vector<MachineOut>& out) {
  JobNodes told;
  told.name = job.name;
  std::map<std::tuple<JobCannot::Why, std::string, std::string, uint64_t>, JobCannot> alike;
  const auto add = [&](const std::string& name, JobCannot one) {
    JobCannot& sum = alike[{one.why, one.out_as + one.detail, one.gpu, one.needs}];
    if (sum.nodes.empty()) {
      sum = std::move(one);
    } else {
      sum.least = std::min(sum.least, one.least);
      sum.most = std::max(sum.most, one.most);
      sum.least_good = std::min(sum.least_good, one.least_good);
      sum.most_good = std::max(sum.most_good, one.most_good);
    }
    sum.nodes.push_back(name);
  };
  for (const Machine& machine : machines) {
    const MachineFit fit = fit_on_machine(job, machine);
    if (fit.fits)
      told.nodes.push_back(machine.name);
    else
      add(machine.name, what_is_missing(job, machine, fit));
  }
  for (const MachineOut& one : out) {
    JobCannot cannot;
    cannot.out_as = one.as;
    cannot.detail = one.why;
    add(one.name, std::move(cannot));
  }
  for (auto& [key, cannot] : alike) told.cannot.push_back(std::move(cannot));
  std::stable_sort(
      told.cannot.begin(), told.cannot.end(),
      [](const JobCannot& a, const JobCannot& b) { return a.nodes.size() > b.nodes.size(); });
  return told;
}

}  // namespace cufit::pack
