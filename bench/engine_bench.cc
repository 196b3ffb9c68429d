// SPDX-License-Identifier: Apache-2.0
// What the parts of one report cost without touching the machine: reading a recording, judging it,
// rendering it. Whole-process figures against other tools come from tools/bench.
#include <benchmark/benchmark.h>

#include "checks/doctor.h"
#include "facts/facts_json.h"
#include "host/files/host.h"
#include "knowledge/knowledge.h"
#include "report/report.h"

namespace {

using namespace cufit;

std::string recording() {
  const std::string path = CUFIT_SOURCE_DIR "/tests/machines/h200-torch211-cu130/facts.json";
  return host::RealHost().read_file(path, 64u << 20).value();
}
facts::Facts facts() { return facts::facts_from_json(recording(), "recording").value(); }
const knowledge::Knowledge& tables() { return knowledge::Knowledge::builtin(); }

void read_recording(benchmark::State& state) {
  const std::string text = recording();
  for (auto _ : state) benchmark::DoNotOptimize(facts::facts_from_json(text, "recording"));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(read_recording);

void examine(benchmark::State& state) {
  const facts::Facts machine = facts();
  for (auto _ : state) benchmark::DoNotOptimize(checks::examine(machine, tables()));
}
BENCHMARK(examine);

void render(benchmark::State& state) {
  const facts::Facts machine = facts();
  const checks::Report report = checks::examine(machine, tables());
  report::Style style;
  if (state.range(0) == 1) style.lang = "zh";
  for (auto _ : state)
    benchmark::DoNotOptimize(report::doctor_text({machine, report, tables()}, style));
}
BENCHMARK(render)->Arg(0)->Arg(1);

void write_json(benchmark::State& state) {
  const facts::Facts machine = facts();
  const checks::Report report = checks::examine(machine, tables());
  for (auto _ : state) benchmark::DoNotOptimize(report::doctor_json({machine, report, tables()}));
}
BENCHMARK(write_json);

}  // namespace
