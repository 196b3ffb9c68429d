// SPDX-License-Identifier: Apache-2.0
// Runs of other shapes, seeds and cards than development_runs.cc has, most of them drawn by hand. Written before
// memory_trend.cc was; no threshold was chosen on them.
#include <algorithm>
#include <cmath>
#include <functional>

#include "base/format.h"
#include "unit/watch/memory_runs.h"

namespace cufit::test {
namespace {

// Bytes as a function of time, until the card is full.
MemoryRun drawn(const std::string& name, double hours, double sample_seconds, uint64_t card,
                const std::function<double(double)>& gib_at) {
  MemoryRun run{name, card, false, 0, {}};
  for (double time = 0; time < hours * 3600; time += sample_seconds) {
    // The allocator takes segments of 20 MiB.
    const double bytes = std::floor(gib_at(time) * 1024 / 20) * 20 * static_cast<double>(k_mib);
    if (bytes >= static_cast<double>(card)) break;
    run.samples.push_back({time, static_cast<uint64_t>(std::max(bytes, 0.0)), 0});
  }
  return run;
}

MemoryRun leaking(MemoryRun run, double since) {
  run.leaks = true;
  run.leak_begins = since;
  double before = 0;
  for (MemorySample& sample : run.samples) {
    const double bytes = static_cast<double>(sample.bytes);
    if (sample.time <= since) before = std::max(before, bytes);
    sample.leaked = std::max(0.0, bytes - before);
  }
  return run;
}

// A server: a request each second or so, of a size with a long tail; what was once held stays.
std::function<double(double)> server(uint64_t seed, double longest) {
  return [dice = Dice(seed), held = 2.0, longest](double) mutable {
    held = std::max(held, 2 + std::min(longest, 0.05 * std::pow(1 - dice.uniform(), -0.6)));
    return held;
  };
}

// Trials of a search over settings, 5 to 15 minutes each; between them the cache is emptied.
std::function<double(double)> trials(uint64_t seed) {
  return [dice = Dice(seed), ends = 0.0, size = 0.0](double time) mutable {
    if (time >= ends) {
      ends = time + dice.between(300, 900);
      size = dice.between(3, 45);
      return 1.0;
    }
    return size;
  };
}

void add_healthy(std::vector<MemoryRun>& to, uint64_t seed) {
  const auto name = [&](const char* words) { return format("{} #{}", words, seed); };
  Dice dice(seed);
  to.push_back(drawn(name("a server"), 6, 1, 24 * k_gib, server(seed, 18)));
  to.push_back(drawn(name("a server, 15 s"), 48, 15, 80 * k_gib, server(seed + 50, 60)));
  to.push_back(drawn(name("a search over settings"), 5, 5, 48 * k_gib, trials(seed)));
  // Predictions of an epoch are kept on the GPU, and freed at its end.
  const double epoch = dice.between(400, 900), rise = dice.between(4, 9);
  to.push_back(drawn(name("sawtooth"), 4, 2, 40 * k_gib,
                     [=](double time) { return 14 + std::fmod(time, epoch) / epoch * rise; }));
  to.push_back(drawn(name("sawtooth, what was taken is kept"), 4, 2, 40 * k_gib,
                     [=](double time) { return 14 + std::min(1.0, time / epoch) * rise; }));
  // Longer sequences in three phases.
  const double phase = dice.between(1500, 3000);
  to.push_back(drawn(name("curriculum"), 4, 1, 80 * k_gib, [=](double time) {
    return 8.0 * std::pow(2, std::min(2.0, std::floor(time / phase)));
  }));
  // A search for the largest batch, then training.
  to.push_back(drawn(name("batch finder"), 2, 1, 80 * k_gib, [=](double time) {
    return time < 120 ? 2 + std::pow(2, std::floor(time / 20)) : 50.0;
  }));
  // Fragmentation: ever slower, without an end.
  to.push_back(drawn(name("logarithm"), 24, 5, 80 * k_gib,
                     [=](double time) { return 20 + 2.5 * std::log(1 + time / 60); }));
  to.push_back(drawn(name("square root"), 24, 15, 80 * k_gib,
                     [=](double time) { return 20 + 0.06 * std::sqrt(time); }));
  to.push_back(drawn(name("saturates in an hour"), 8, 1, 80 * k_gib,
                     [=](double time) { return 20 + 25 * (1 - std::exp(-time / 1800)); }));
  to.push_back(drawn(name("data onto the GPU in 5 min"), 3, 1, 80 * k_gib, [=](double time) {
    return 1 + 18 * std::min(1.0, time / 300) + (time > 320 ? 11 : 0);
  }));
  Training expandable;  // long batches are rare: the largest share of a card comes late
  expandable.hours = 4;
  expandable.step_seconds = 1.3;
  expandable.activation_bytes = 50 * k_gib;
  expandable.shortest = 0.02;
  expandable.epoch_steps = 700;
  expandable.validation = 0.8;
  expandable.sample_seconds = 10;
  to.push_back(run_of(name("lengths, validation"), expandable, 141 * k_gib, seed + 100));
}

void add_leaks(std::vector<MemoryRun>& to, uint64_t seed) {
  const auto name = [&](const char* words) { return format("{} #{}", words, seed); };
  Dice dice(seed + 7);
  const auto line = [](double base, double since, double gib_per_min) {
    return [=](double time) { return base + std::max(0.0, time - since) / 60 * gib_per_min; };
  };
  const double rate = dice.between(0.7, 1.4);
  to.push_back(
      leaking(drawn(name("full in 5 min"), 1, 1, 80 * k_gib,
                    [=](double time) { return time < 8 ? 0.5 : 12 + (time - 8) / 60 * 13 * rate; }),
              8));
  to.push_back(
      leaking(drawn(name("full in 8 min, 15 s"), 1, 15, 80 * k_gib,
                    [=](double time) { return time < 20 ? 0.5 : 6 + (time - 20) / 60 * 9 * rate; }),
              20));
  to.push_back(
      leaking(drawn(name("from the first sample"), 3, 2, 80 * k_gib, line(0.5, 0, 2 * rate)), 0));
  to.push_back(leaking(drawn(name("after 6 h"), 14, 1, 80 * k_gib, line(30, 6 * 3600, 0.4 * rate)),
                       6 * 3600));
  to.push_back(
      leaking(drawn(name("100 MiB/h"), 240, 15, 40 * k_gib, line(18, 0, 0.1 / 60 * rate)), 0));
  // The job is stopped for two hours, then half as fast.
  to.push_back(leaking(drawn(name("stopped for a while"), 40, 5, 80 * k_gib,
                             [=](double time) {
                               const double at_work =
                                   std::min(time, 7200.0) + std::max(0.0, time - 14400) * 0.5;
                               return 15 + at_work / 60 * 0.1 * rate;
                             }),
                       0));
  // Requests that leak, at any moment.
  to.push_back(leaking(drawn(name("requests that leak"), 30, 5, 80 * k_gib,
                             [=, requests = Dice(seed + 9), held = 9.0](double) mutable {
                               if (requests.uniform() < 0.03) held += 0.12 * rate;
                               return held;
                             }),
                       0));
  // What an epoch keeps comes on top of a sawtooth.
  const double epoch = dice.between(300, 500);
  to.push_back(leaking(drawn(name("sawtooth and leak"), 20, 2, 48 * k_gib,
                             [=](double time) {
                               return 10 + std::fmod(time, epoch) / epoch * 6 +
                                      std::floor(time / epoch) * 1.1 * rate;
                             }),
                       0));
  Training uneven;  // epochs of uneven length: the steps' lengths differ
  uneven.hours = 40;
  uneven.step_seconds = 1.1;
  uneven.shortest = 0.3;
  uneven.epoch_steps = 600;
  uneven.validation = 2;
  uneven.leak_epoch_bytes = 2.2 * rate * static_cast<double>(k_gib);
  uneven.leak_tensor = 200 * k_mib;
  uneven.sample_seconds = 10;
  to.push_back(run_of(name("epochs of uneven length"), uneven, 80 * k_gib, seed + 200));
  Training small;  // small tensors beside long batches
  small.hours = 60;
  small.shortest = 0.05;
  small.activation_bytes = 20 * k_gib;
  small.leak_step_bytes = 2.0 * rate * static_cast<double>(k_mib);
  small.leak_tensor = 300 * 1024;
  small.sample_seconds = 15;
  to.push_back(run_of(name("small tensors, long batches"), small, 96 * k_gib, seed + 300));
}

// Written after the first trial; judged once.
void add_later(std::vector<MemoryRun>& to, uint64_t seed) {
  const auto name = [&](const char* words) { return format("{} #{}", words, seed); };
  Dice dice(seed + 1000);
  const double speed = dice.between(0.8, 1.25);
  // Lengths with a long tail: a record is rare, and high.
  to.push_back(drawn(name("log-normal lengths"), 10, 2, 80 * k_gib,
                     [lengths = Dice(seed + 1), held = 6.0](double) mutable {
                       held =
                           std::max(held, 6 + std::min(66.0, 2 * std::exp(0.7 * lengths.normal())));
                       return held;
                     }));
  // Buckets of lengths, from short to long, five minutes each in the first epoch.
  to.push_back(drawn(name("buckets from short to long"), 6, 1, 80 * k_gib, [=](double time) {
    return 8 + 4 * std::pow(1.35, std::min(7.0, std::floor(time / (300 * speed))));
  }));
  // Adapters that are loaded one after the other, at any time.
  to.push_back(drawn(name("adapters"), 8, 5, 48 * k_gib,
                     [comes = Dice(seed + 2), held = 15.0](double) mutable {
                       if (comes.uniform() < 0.0015 && held < 27) held += comes.between(0.4, 3);
                       return held;
                     }));
  to.push_back(drawn(name("an interactive session"), 9, 10, 24 * k_gib,
                     [acts = Dice(seed + 3), held = 1.0](double) mutable {
                       if (acts.uniform() < 0.01) held = acts.between(1, 17);
                       return held;
                     }));
  to.push_back(
      leaking(drawn(name("leak after a peak at the start"), 12, 5, 80 * k_gib,
                    [=](double time) { return time < 40 ? 50 : 16 + time / 60 * 0.25 * speed; }),
              45));
  to.push_back(leaking(drawn(name("leak of uneven requests"), 20, 3, 80 * k_gib,
                             [=, asks = Dice(seed + 4), held = 20.0](double) mutable {
                               if (asks.uniform() < 0.02) held += 0.4 * speed * asks.uniform();
                               return held;
                             }),
                       0));
  to.push_back(leaking(drawn(name("leak of an evaluation, every 25 min"), 30, 15, 80 * k_gib,
                             [=](double time) {
                               return 22 + 2.4 * speed * std::floor(time / 1500) +
                                      (std::fmod(time, 1500) > 1380 ? 5 : 0);
                             }),
                       0));
  to.push_back(leaking(
      drawn(name("leak in a small card"), 2, 1, 16 * k_gib,
            [=](double time) { return time < 15 ? 1 : 4 + (time - 15) / 60 * 0.6 * speed; }),
      15));
}

}  // namespace

std::vector<MemoryRun> later_held_out_runs() {
  std::vector<MemoryRun> runs;
  for (const uint64_t seed : {31, 32, 33, 34, 35}) {
    add_healthy(runs, seed);
    add_later(runs, seed);
  }
  return runs;
}

std::vector<MemoryRun> held_out_runs() {
  std::vector<MemoryRun> runs;
  for (const uint64_t seed : {11, 12, 13, 14}) {
    add_healthy(runs, seed);
    add_leaks(runs, seed);
  }
  return runs;
}

}  // namespace cufit::test
