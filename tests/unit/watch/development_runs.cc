// SPDX-License-Identifier: Apache-2.0
// The runs on which the thresholds of memory_trend.cc were chosen.
#include "base/format.h"
#include "unit/watch/memory_runs.h"

namespace cufit::test {
namespace {

void add(std::vector<MemoryRun>& to, const char* name, const Training& training,
         uint64_t card = 80 * k_gib) {
  for (const uint64_t seed : {1, 2})
    to.push_back(run_of(format("{} #{}", name, seed), training, card, seed));
}

void add_healthy(std::vector<MemoryRun>& to) {
  Training fixed;
  add(to, "fixed lengths", fixed);
  add(to, "fixed lengths, a full card", fixed, 14 * k_gib);
  Training search = fixed;
  search.searches_algorithms = true;
  add(to, "cuDNN's search", search);
  Training lengths = fixed;
  lengths.shortest = 0.1;
  lengths.hours = 3;
  add(to, "variable lengths", lengths);
  add(to, "variable lengths, a full card", lengths, 18 * k_gib);
  lengths.activation_bytes = 40 * k_gib;
  lengths.step_seconds = 20;  // records come slowly: a new one still after hours
  lengths.hours = 12;
  add(to, "variable lengths, slow steps", lengths);
  lengths.sample_seconds = 15;
  add(to, "variable lengths, slow steps, 15 s", lengths);
  Training peaks = fixed;
  peaks.hours = 3;
  peaks.validation = 1.5;
  add(to, "validation peaks", peaks);
  peaks.empties_cache = true;
  add(to, "validation peaks, cache emptied", peaks);
  peaks.shortest = 0.2;
  peaks.checkpoint_bytes = 3 * k_gib;
  add(to, "validation, checkpoint, lengths, cache emptied", peaks);
  Training checkpoints = fixed;
  checkpoints.checkpoint_bytes = 12 * k_gib;
  add(to, "checkpoints", checkpoints);
  Training second = fixed;
  second.second_model_step = 3000;
  second.second_model_bytes = 20 * k_gib;
  add(to, "a second model", second);
  Training loading = fixed;
  loading.model_bytes = 50 * k_gib;
  loading.load_seconds = 90;
  add(to, "a large model, loaded in 90 s", loading);
}

void add_leaks(std::vector<MemoryRun>& to) {
  Training leak;
  leak.hours = 30;
  leak.leak_step_bytes = 16.0 * k_mib;  // 1.9 GiB/min
  add(to, "leak per step, fast", leak);
  leak.leak_step_bytes = 80.0 * k_mib;
  leak.leak_tensor = 16 * k_mib;
  add(to, "leak per step, card full in 7 min", leak);
  leak.leak_step_bytes = 0.5 * k_mib;  // 60 MiB/min: 19 hours
  leak.leak_tensor = 256 * 1024;
  add(to, "leak per step, slow", leak);
  leak.sample_seconds = 15;
  add(to, "leak per step, slow, 15 s", leak);
  leak.leak_step_bytes = 8.0 * k_mib;
  leak.shortest = 0.1;
  leak.leak_tensor = 3 * k_mib;
  add(to, "leak with variable lengths, 15 s", leak);
  leak.leak_from_step = 30000;  // after some hours
  leak.sample_seconds = 1;
  add(to, "leak that begins late", leak);
  Training epochs;
  epochs.hours = 30;
  epochs.leak_epoch_bytes = 3.0 * k_gib;
  epochs.leak_tensor = 64 * k_mib;
  add(to, "leak per epoch", epochs);
  epochs.validation = 1.5;
  epochs.empties_cache = true;
  add(to, "leak per epoch, peaks, cache emptied", epochs);
  epochs.leak_epoch_bytes = 6.0 * k_gib;
  add(to, "leak per epoch, few epochs", epochs);
  Training graph;  // losses kept with their graphs: a list of the program's own
  graph.hours = 10;
  graph.shortest = 0.3;
  graph.validation = 1.2;
  graph.leak_step_bytes = 12.0 * k_mib;
  graph.leak_tensor = 6 * k_mib;
  add(to, "kept graphs, peaks", graph);
}

}  // namespace

std::vector<MemoryRun> development_runs() {
  std::vector<MemoryRun> runs;
  add_healthy(runs);
  add_leaks(runs);
  return runs;
}

}  // namespace cufit::test
