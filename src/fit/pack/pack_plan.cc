// SPDX-License-Identifier: Apache-2.0
#include "fit/pack/pack_plan.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace cufit::pack {
namespace {

// 0.15 s for the hardest of 20 instances of 64 jobs on 16 GPUs, on one core of 2020; thrice as many steps proved no more of them.
constexpr uint64_t k_pack_node_limit = 600'000;
constexpr unsigned k_mib_bits = 20;

uint64_t mib_up(uint64_t bytes) { return (bytes + (1u << k_mib_bits) - 1) >> k_mib_bits; }

const JobSize::OnCard* predicted_on(const Job& job, const Gpu& gpu) {
  for (const JobSize::OnCard& one : job.size.on_cards)
    if (!gpu.table.empty() && one.gpu == gpu.table) return &one;
  return nullptr;
}

uint64_t context_on(const Job& job, const Gpu& gpu) {
  if (const JobSize::OnCard* one = predicted_on(job, gpu)) return one->outside;
  return job.size.total ? 0 : gpu.context;
}

class Planner {
 public:
  Planner(const Question& question, const knowledge::Knowledge& knowledge) : question_(question) {
    for (const Gpu& gpu : question.gpus) {
      // What others run there would stop, and MIG mode does not change under them.
      const bool divides =
          question.divide && !gpu.is_instance && !gpu.in_parts && gpu.in_use < k_given_away;
      cards_.push_back(divides ? mig_card(gpu.table, knowledge) : std::nullopt);
      add_gpu(gpu, cards_.back());
    }
    for (const Job& job : question.jobs) add_job(job);
  }

  Plan plan(const AssignmentSearch& search) {
    const Assignment found = search(problem_);
    Plan out;
    out.goal = question_.goal;
    out.used = found.used;
    out.most_placed = found.most_placed;
    out.fewest_used = found.fewest_used;
    out.headroom = uint64_t{found.headroom} << k_mib_bits;
    out.most_headroom = uint64_t{found.most_headroom} << k_mib_bits;
    out.optimal = found.placed == found.most_placed &&
                  (out.goal == Goal::fewest ? found.used == found.fewest_used
                                            : found.headroom == found.most_headroom);
    for (size_t gpu = 0; gpu < question_.gpus.size(); ++gpu) out.gpus.push_back(packed(gpu, found));
    for (size_t job = 0; job < question_.jobs.size(); ++job)
      if (found.bin_of[job] == k_no_bin) out.unplaced.push_back(why_not(job, out));
    return out;
  }

 private:
  // GPUs are of one kind where nothing tells them apart for the search.
  void add_gpu(const Gpu& gpu, const std::optional<MigCard>& card) {
    const auto same = std::find_if(of_kind_.begin(), of_kind_.end(), [&](const Gpu* other) {
      return other->table == gpu.table && other->usable >> k_mib_bits == gpu.usable >> k_mib_bits &&
             other->context == gpu.context && other->is_instance == gpu.is_instance &&
             other->profile == gpu.profile &&
             (!gpu.table.empty() || model_name(*other) == model_name(gpu)) &&
             other->whole == gpu.whole && other->grain == gpu.grain &&
             other->in_parts == gpu.in_parts &&
             (other->in_use >= k_given_away) == (gpu.in_use >= k_given_away);
    });
    if (same != of_kind_.end()) {
      problem_.bins.push_back(static_cast<uint32_t>(same - of_kind_.begin()));
    } else {
      BinKind kind = card ? divided_kind(*card) : BinKind{};
      if (!card)
        kind.mib = static_cast<uint32_t>(
            std::min<uint64_t>(gpu.usable >> k_mib_bits, k_most_job_bytes >> k_mib_bits));
      problem_.bins.push_back(static_cast<uint32_t>(problem_.kinds.size()));
      problem_.kinds.push_back(std::move(kind));
      of_kind_.push_back(&gpu);
    }
  }

  void add_job(const Job& job) {
    Item item;
    for (size_t kind = 0; kind < of_kind_.size(); ++kind) {
      const BinKind& bin = problem_.kinds[kind];
      const std::optional<uint64_t> bytes = bin.divided()
                                                ? taken_of_divided(job, *of_kind_[kind], bin)
                                                : taken_on(job, *of_kind_[kind]);
      item.mib.push_back(bytes ? static_cast<uint32_t>(*bytes >> k_mib_bits) : k_never);
    }
    problem_.items.push_back(std::move(item));
  }

  // An instance of its own holds it, however the GPU would be given as a whole. A job of several GPUs
  // has the GPU as it is, which takes as much room as the instance of all units.
  static std::optional<uint64_t> taken_of_divided(const Job& job, const Gpu& gpu,
                                                  const BinKind& kind) {
    const std::optional<uint64_t> bytes = bytes_on(job, gpu);
    if (!bytes || *bytes > gpu.usable) return std::nullopt;
    if (!is_of_several(job)) return bytes;
    const SlotType& largest = kind.slots.back();
    if (largest.units != kind.units) return std::nullopt;
    return uint64_t{largest.mib} << k_mib_bits;
  }

  PackedGpu packed(size_t gpu, const Assignment& found) const {
    const BinKind& kind = problem_.kinds[problem_.bins[gpu]];
    PackedGpu out;
    out.usable = uint64_t{kind.mib} << k_mib_bits;
    out.left = out.usable;
    out.divided = cards_[gpu];
    for (size_t job = 0; job < question_.jobs.size(); ++job) {
      if (found.bin_of[job] != gpu) continue;
      PlacedJob placed;
      placed.job = job;
      if (out.divided && is_of_several(question_.jobs[job])) {
        out.divided.reset();
        out.usable = question_.gpus[gpu].usable >> k_mib_bits << k_mib_bits;
        out.left = out.usable;
      }
      placed.bytes = bytes_on(question_.jobs[job], question_.gpus[gpu]).value_or(0);
      placed.context = context_on(question_.jobs[job], question_.gpus[gpu]);
      out.left -= placed.bytes;
      out.jobs.push_back(placed);
    }
    std::stable_sort(out.jobs.begin(), out.jobs.end(),
                     [](const PlacedJob& a, const PlacedJob& b) { return a.bytes > b.bytes; });
    if (out.divided) divide(out);
    return out;
  }

  static void divide(PackedGpu& gpu) {
    std::vector<uint32_t> mib;
    for (const PlacedJob& job : gpu.jobs)
      mib.push_back(static_cast<uint32_t>(job.bytes >> k_mib_bits));
    const std::optional<std::vector<MigInstance>> instances = instances_for(*gpu.divided, mib);
    CUFIT_CHECK(instances.has_value(), "the search found that these instances fit");
    gpu.free_units = gpu.divided->units;
    for (size_t i = 0; i < gpu.jobs.size(); ++i) {
      gpu.jobs[i].instance = (*instances)[i];
      gpu.free_units -= (*instances)[i].profile->units;
    }
    std::stable_sort(gpu.jobs.begin(), gpu.jobs.end(), [](const PlacedJob& a, const PlacedJob& b) {
      return a.instance->start < b.instance->start;
    });
    for (size_t i = 0; i < gpu.jobs.size(); ++i)
      for (size_t before = 0; before < i; ++before)
        if (gpu.jobs[before].instance->profile == gpu.jobs[i].instance->profile) ++gpu.jobs[i].same;
  }

  // The GPU that the job misses by least, and by how much: alone on it (one that would hold it without other programs
  // first), or beside the others where it would fit alone.
  Unplaced why_not(size_t job, const Plan& plan) const {
    Unplaced out;
    out.job = job;
    out.too_large = true;
    for (const bool alone : {true, false}) {
      out.missing = UINT64_MAX;
      uint64_t out_when_empty = UINT64_MAX;
      for (size_t gpu = 0; gpu < plan.gpus.size(); ++gpu) {
        const std::optional<uint64_t> bytes = bytes_on(question_.jobs[job], question_.gpus[gpu]);
        const uint64_t room = alone ? plan.gpus[gpu].usable : plan.gpus[gpu].left;
        const uint64_t wanted = bytes.value_or(k_most_job_bytes);
        const uint64_t missing = wanted > room ? wanted - room : 0;
        const uint64_t in_use = alone ? question_.gpus[gpu].in_use : 0;
        const uint64_t when_empty = missing - std::min(missing, in_use);
        if (!alone && wanted > plan.gpus[gpu].usable) continue;
        if (std::pair(when_empty, missing) >= std::pair(out_when_empty, out.missing)) continue;
        out_when_empty = when_empty;
        out.missing = missing;
        out.gpu = gpu;
        out.bytes = wanted;
      }
      if (alone && out.missing > 0) return out;
      out.too_large = false;
    }
    return out;
  }

  const Question& question_;
  std::vector<std::optional<MigCard>> cards_;
  Problem problem_;
  std::vector<const Gpu*> of_kind_;
};

}  // namespace

std::string model_name(const Gpu& gpu) {
  const size_t comma = starts_with(gpu.name, "GPU ") ? gpu.name.find(", ") : std::string::npos;
  return gpu.name.substr(comma == std::string::npos ? 0 : comma + 2);
}

std::optional<uint64_t> bytes_on(const Job& job, const Gpu& gpu) {
  uint64_t bytes = 0;
  if (const JobSize::OnCard* one = predicted_on(job, gpu)) {
    if (one->allocator > k_most_job_bytes || one->outside > k_most_job_bytes) return std::nullopt;
    bytes = one->allocator + one->outside;
  } else if (job.size.total) {
    // No process has less than its context: a smaller total was measured on another card.
    bytes = std::max(*job.size.total, gpu.context + (uint64_t{1} << k_mib_bits));
  } else {
    if (job.size.allocator.value_or(0) > k_most_job_bytes) return std::nullopt;
    bytes = job.size.allocator.value_or(0) + gpu.context;
  }
  if (bytes > k_most_job_bytes) return std::nullopt;
  return mib_up(bytes) << k_mib_bits;
}

std::optional<uint64_t> taken_on(const Job& job, const Gpu& gpu) {
  const std::optional<uint64_t> bytes = bytes_on(job, gpu);
  const uint64_t room = gpu.usable >> k_mib_bits << k_mib_bits;
  if (!bytes || *bytes > room || (is_of_several(job) && gpu.is_instance)) return std::nullopt;
  if (gpu.whole || job.whole)
    return gpu.in_use >= k_given_away || gpu.in_parts ? std::nullopt : std::optional(room);
  if (gpu.grain == 0) return bytes;
  const uint64_t grain = std::max<uint64_t>(gpu.grain >> k_mib_bits, 1) << k_mib_bits;
  const uint64_t parts = (*bytes + grain - 1) / grain * grain;
  return parts > room ? std::nullopt : std::optional(parts);
}

Result<Plan> make_plan(const Question& question, const knowledge::Knowledge& knowledge) {
  if (question.jobs.size() > k_most_jobs)
    return fail(Code::usage, format("{} jobs: at most {} are planned at once", question.jobs.size(),
                                    k_most_jobs));
  if (question.gpus.size() > k_most_gpus)
    return fail(Code::usage, format("{} GPUs: at most {} are planned for at once",
                                    question.gpus.size(), k_most_gpus));
  if (question.divide && question.goal == Goal::headroom)
    return fail(Code::usage,
                "`--goal headroom` goes without `--mig`: the size of an instance is fixed");
  for (const Job& job : question.jobs)
    if (job.gpus > 1)
      return fail(Code::usage, format("job `{}` asks for {} GPUs: `cufit pack` gives each job one; "
                                      "`cufit fleet plan` plans for several",
                                      job.name, job.gpus));
  return plan_by(question, knowledge, [&](const Problem& problem) {
    return question.goal == Goal::fewest ? fewest_bins(problem, k_pack_node_limit)
                                         : most_headroom(problem, k_pack_node_limit);
  });
}

Plan plan_by(const Question& question, const knowledge::Knowledge& knowledge,
             const AssignmentSearch& search) {
  return Planner(question, knowledge).plan(search);
}

}  // namespace cufit::pack
