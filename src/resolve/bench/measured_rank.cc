// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/measured_rank.h"

#include <algorithm>
#include <optional>

#include "base/format.h"

namespace cufit::resolve {
namespace {

using formats::BenchFile;
using formats::BenchPair;

std::string bare_gpu(const std::string& name) {
  const std::string out = lower(name);
  return starts_with(out, "nvidia ") ? out.substr(7) : out;
}

bool is_that_gpu(const BenchFile& measured, const Target& target) {
  if (measured.gpu.empty() || target.gpus.empty() || !target.unknown_gpus.empty()) return false;
  return std::all_of(target.gpus.begin(), target.gpus.end(), [&](const TargetGpu& gpu) {
    return bare_gpu(gpu.name) == bare_gpu(measured.gpu);
  });
}

bool is_torch(const BenchFile& measured, size_t place, const Wheel& wheel) {
  const formats::BenchTorch& torch = measured.torches[place];
  return torch.version == wheel.torch && torch.tag == wheel.tag;
}

bool is_measured(const BenchFile& measured, const Wheel& wheel) {
  return std::any_of(measured.pairs.begin(), measured.pairs.end(), [&](const BenchPair& pair) {
    return is_torch(measured, pair.base, wheel) || is_torch(measured, pair.other, wheel);
  });
}

// How `a` was measured faster than `b`; nullopt where it was not, or was slower in another case.
std::optional<MeasuredFaster> faster_than(const BenchFile& measured, const Choice& a,
                                          const Choice& b) {
  std::optional<MeasuredFaster> out;
  for (const BenchPair& pair : measured.pairs) {
    double ratio = pair.ratio, low = pair.low, high = pair.high;
    if (is_torch(measured, pair.base, a.wheel) && is_torch(measured, pair.other, b.wheel)) {
      ratio = 1 / pair.ratio, low = 1 / pair.high, high = 1 / pair.low;
    } else if (!is_torch(measured, pair.other, a.wheel) ||
               !is_torch(measured, pair.base, b.wheel)) {
      continue;
    }
    if (high < 1) return std::nullopt;
    if (low > 1 && !out)
      out = MeasuredFaster{
          b.wheel.torch + "+" + b.wheel.tag, pair.workload, pair.precision, ratio, low, high, {}};
  }
  return out;
}

bool needs_compat(const Choice& choice) { return choice.verdict.fit == Fit::needs_compat; }

bool beats(const BenchFile& measured, const Choice& a, const Choice& b) {
  return needs_compat(a) == needs_compat(b) && faster_than(measured, a, b).has_value();
}

// Of those that are left the first that none of the others beats; the first where each is beaten by one.
size_t next_of(const BenchFile& measured, const std::vector<Choice>& left) {
  for (size_t i = 0; i < left.size(); ++i) {
    const bool beaten = std::any_of(left.begin(), left.end(), [&](const Choice& other) {
      return beats(measured, other, left[i]);
    });
    if (!beaten) return i;
  }
  return 0;
}

}  // namespace

bool rank_by(const BenchFile& measured, const std::string& file, Answer& answer) {
  if (!is_that_gpu(measured, answer.target)) return false;
  std::vector<size_t> places;
  for (size_t i = 0; i < answer.usable.size(); ++i)
    if (is_measured(measured, answer.usable[i].wheel)) places.push_back(i);
  if (places.size() < 2) return false;
  // What needs cuda-compat is behind the others already, and so it stays: the two are ranked apart.
  for (const bool compat : {false, true}) {
    std::vector<size_t> own;
    std::vector<Choice> left;
    for (const size_t place : places)
      if (needs_compat(answer.usable[place]) == compat) own.push_back(place);
    for (const size_t place : own) left.push_back(std::move(answer.usable[place]));
    for (const size_t place : own) {
      const size_t next = next_of(measured, left);
      Choice chosen = std::move(left[next]);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(next));
      for (const Choice& behind : left)
        if (std::optional<MeasuredFaster> how = faster_than(measured, chosen, behind)) {
          how->file = file;
          chosen.faster.push_back(std::move(*how));
        }
      answer.usable[place] = std::move(chosen);
    }
  }
  return true;
}

}  // namespace cufit::resolve
