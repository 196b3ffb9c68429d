// SPDX-License-Identifier: Apache-2.0
#include "fit/search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "base/parallel.h"

namespace cufit::fit {
namespace {

std::optional<CurvePoint> point_at(const StepProgram& program, uint64_t batch, const Setup& setup) {
  const Result<Prediction> got = predict(program, batch, setup);
  if (!got) return std::nullopt;
  return CurvePoint{batch, got->peak_allocated, got->peak_reserved, got->peak_reserved_upper,
                    got->fits()};
}

// Probes that are remembered.
class Probes {
 public:
  Probes(const StepProgram& program, const Setup& setup) : program_(program), setup_(setup) {}
  bool fits(uint64_t batch) {
    const auto [place, is_new] = known_.try_emplace(batch);
    if (is_new) place->second = point_at(program_, batch, setup_);
    return place->second && place->second->fits;
  }
  std::vector<CurvePoint> all() const {
    std::vector<CurvePoint> out;
    for (const auto& [batch, point] : known_)
      if (point) out.push_back(*point);
    return out;
  }

 private:
  const StepProgram& program_;
  const Setup& setup_;
  std::map<uint64_t, std::optional<CurvePoint>> known_;
};

std::vector<uint64_t> traced_batches(const StepProgram& program) {
  if (program.differences.empty()) return program.batches;
  std::vector<uint64_t> out;
  for (const StepProgram& apart : program.apart)
    out.insert(out.end(), apart.batches.begin(), apart.batches.end());
  return out;
}

}  // namespace

std::vector<std::vector<CurvePoint>> curves(std::span<const Plan> plans) {
  struct Probe {
    size_t plan;
    uint64_t batch;
    std::optional<CurvePoint> point;
  };
  std::vector<Probe> probes;
  for (size_t i = 0; i < plans.size(); ++i)
    for (const uint64_t batch : plans[i].batches) probes.push_back({i, batch, std::nullopt});
  in_parallel(probes.size(), std::max(1u, std::thread::hardware_concurrency()), [&](size_t i) {
    const Plan& plan = plans[probes[i].plan];
    probes[i].point = point_at(*plan.program, probes[i].batch, plan.setup);
  });
  std::vector<std::vector<CurvePoint>> out(plans.size());
  for (const Probe& probe : probes)
    if (probe.point) out[probe.plan].push_back(*probe.point);
  return out;
}

std::vector<CurvePoint> curve(const StepProgram& program, std::span<const uint64_t> batches,
                              const Setup& setup) {
  const Plan plan{&program, setup, {batches.begin(), batches.end()}};
  return curves({&plan, 1}).front();
}

std::vector<uint64_t> curve_batches(const StepProgram& program, uint64_t wanted, size_t count) {
  std::set<uint64_t> chosen;
  for (const uint64_t batch : traced_batches(program))
    if (chosen.size() < count) chosen.insert(batch);
  if (!program.extrapolates()) return {chosen.begin(), chosen.end()};
  if (wanted != 0) chosen.insert(wanted);
  const uint64_t middle = std::max<uint64_t>(wanted, 1);
  const uint64_t lowest = std::max<uint64_t>(middle / 64, 2);
  for (uint64_t power = 1; power < uint64_t{1} << 24 && chosen.size() < count; power *= 2)
    if (power >= lowest) chosen.insert(power);
  return {chosen.begin(), chosen.end()};
}

LargestBatch largest_batch(const StepProgram& program, const Setup& setup, uint64_t highest) {
  LargestBatch out;
  Probes probes(program, setup);
  const std::vector<uint64_t> traced = traced_batches(program);
  if (!program.extrapolates()) {
    out.only_traced = true;
    for (const uint64_t batch : traced)
      if (probes.fits(batch)) out.batch = std::max(out.batch, batch);
    out.unbounded = !traced.empty() && out.batch == traced.back();
    out.probes = probes.all();
    return out;
  }
  uint64_t good = 0, bad = 0;  // 0: none known
  for (uint64_t batch = traced.back(); bad == 0; batch *= 2) {
    batch = std::min(batch, highest);
    (probes.fits(batch) ? good : bad) = batch;
    if (good == highest) break;
  }
  while (bad > good + 1) {
    const uint64_t middle = good + (bad - good) / 2;
    (probes.fits(middle) ? good : bad) = middle;
  }
  out.batch = good;
  out.unbounded = good == highest;
  out.probes = probes.all();
  return out;
}

uint64_t largest_within(const LargestBatch& fits, uint64_t capacity, const UpperAt& upper) {
  const auto within = [&](uint64_t batch) {
    const std::optional<uint64_t> bytes = upper(batch);
    return bytes && *bytes <= capacity;
  };
  if (fits.only_traced) {
    uint64_t largest = 0;
    for (const CurvePoint& probe : fits.probes)
      if (probe.fits && within(probe.batch)) largest = std::max(largest, probe.batch);
    return largest;
  }
  if (fits.batch == 0 || within(fits.batch)) return fits.batch;
  uint64_t good = 0, bad = fits.batch;
  while (good + 1 < bad) {
    const uint64_t middle = good + (bad - good) / 2;
    (within(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace cufit::fit
