// SPDX-License-Identifier: Apache-2.0
// `cufit fit` asks the allocator's model about many plans and batch sizes: 12 plans at 10 batch
// sizes each of a training program of GPT-2's size. The target is one second for all 120.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "fit/search.h"

namespace {

using namespace cufit;

formats::TraceEvents read(const std::string& name) {
  std::ifstream in(CUFIT_SOURCE_DIR "/tests/fit/" + name, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  return formats::read_trace_events(std::make_shared<MemorySource>(name, std::move(bytes))).value();
}

fit::StepProgram gpt2() {
  const formats::TraceEvents traces[] = {read("gpt2-2.events.gz"), read("gpt2-4.events.gz")};
  return fit::align(traces).value();
}

void fit_plans(benchmark::State& state) {
  const fit::StepProgram program = gpt2();
  std::vector<fit::Plan> plans;
  for (const char* settings :
       {"", "expandable_segments:True", "max_split_size_mb:128", "max_split_size_mb:512"})
    for (const uint64_t gib : {24, 48, 80}) {
      fit::Plan plan{&program, {}, {}};
      plan.setup.settings = memory::parse_allocator_settings(settings, plan.setup.version).value();
      plan.setup.capacity = gib << 30;
      for (uint64_t batch = 2; batch <= 20; batch += 2) plan.batches.push_back(batch);
      plans.push_back(std::move(plan));
    }
  size_t answers = 0;
  for (auto _ : state) {
    answers = 0;
    for (const std::vector<fit::CurvePoint>& curve : fit::curves(plans)) answers += curve.size();
  }
  state.counters["answers"] = static_cast<double>(answers);
}
BENCHMARK(fit_plans)->Unit(benchmark::kMillisecond)->UseRealTime();

void fit_align(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(gpt2().events.size());
}
BENCHMARK(fit_align)->Unit(benchmark::kMillisecond);

}  // namespace
