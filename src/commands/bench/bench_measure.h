// SPDX-License-Identifier: Apache-2.0
// The course of `cufit bench`: who is asked for what and when. What follows from the times is resolve/bench.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/bench/bench_process.h"
#include "commands/progress.h"
#include "host/driver/gpu_sampler.h"
#include "host/process/owner_names.h"
#include "watch/card_record.h"

namespace cufit::commands {

struct BenchPlan {
  std::vector<BenchWorkload> workloads;
  std::vector<std::string> precisions;  // empty: what suits the device
  std::optional<uint64_t> batch;        // nullopt: the workload's own
  bool largest_batch = false;
  size_t rounds = 0;
  double seconds = 0;  // of all measured blocks of a case
};

class BenchMeasure {
 public:
  BenchMeasure(BenchSetting& setting, const BenchPlan& plan,
               std::vector<resolve::BenchEnvironment> environments);

  // Error{cancelled} where a signal asked cufit to end. All else is in the answer.
  Result<resolve::BenchMeasurement> run();

 private:
  struct Side {
    size_t environment = 0;
    std::string precision;
    BenchProcess* process = nullptr;
  };

  void meet_all();
  void watch_card();
  void own_processes();
  void look_at_card(double seconds);
  std::vector<std::string> precisions() const;
  void one_workload(const BenchWorkload& workload);
  void one_case(const BenchWorkload& workload, const std::vector<Side>& sides);
  void load_all(const BenchWorkload& workload, const std::vector<Side>& sides,
                std::optional<uint64_t> batch, resolve::BenchCase& one);
  std::optional<uint64_t> largest_batch(const BenchWorkload& workload,
                                        const std::vector<Side>& sides, resolve::BenchCase& one);
  size_t rounds_of(const std::vector<Side>& sides) const;
  void warm_up(const std::vector<Side>& sides, resolve::BenchCase& one);
  void measure(const std::vector<Side>& sides, resolve::BenchCase& one);
  double block_seconds(const std::vector<Side>& sides) const;
  bool ask_block(const Side& side, double seconds, resolve::BenchRun& run,
                 formats::BenchBlock& out);
  void add_card(const std::vector<Side>& sides, resolve::BenchCase& one);
  bool stopped() const { return setting_.interrupts.caught() != 0; }

  BenchSetting& setting_;
  const BenchPlan& plan_;
  resolve::BenchMeasurement out_;
  std::vector<std::unique_ptr<BenchProcess>>
      processes_;  // one an environment, then of one more precisions
  std::unique_ptr<host::GpuSampler> sampler_;
  std::optional<watch::CardRecord> card_;
  host::OwnerNames owners_;  // without the name service: a thread beside forks
};

}  // namespace cufit::commands
