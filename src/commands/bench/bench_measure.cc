// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_measure.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "host/process/process_owner.h"
#include "host/process/signal_pause.h"

namespace cufit::commands {
namespace {

using resolve::BenchCase;
using resolve::BenchRun;

constexpr double k_sample_seconds = 0.2;
constexpr double k_first_sample_seconds =
    10;  // without the persistence daemon the firmware is brought up first
constexpr uint64_t k_largest_batch = 65536;  // of `auto`
// A call that takes longer than this is not asked for at twice the batch: it is memory that is looked for.
constexpr double k_longest_call = 5;

// The kinds of BenchAnswer that leave a process as it was.
bool is_out_of_memory(const formats::BenchRefusal& refusal) { return refusal.kind == "oom"; }

bool has_precision(const BenchWorkload& workload) { return workload.name != "copy"; }

}  // namespace

BenchMeasure::BenchMeasure(BenchSetting& setting, const BenchPlan& plan,
                           std::vector<resolve::BenchEnvironment> environments)
    : setting_(setting), plan_(plan), owners_({host::running_seconds, {}}) {
  out_.device = setting.device;
  out_.environments = std::move(environments);
  out_.rounds = plan.rounds;
  out_.seconds = plan.seconds;
  setting.idle = [this] { look_at_card(0); };
}

// One that ends of its workload was this measurement's all the same.
void BenchMeasure::own_processes() {
  for (const auto& process : processes_)
    if (card_ && process->pid() > 0) card_->own(static_cast<uint32_t>(process->pid()));
}

void BenchMeasure::look_at_card(double seconds) {
  own_processes();
  if (!sampler_ || !sampler_->wait(seconds)) return;
  facts::GpuSample sample = sampler_->newest();
  if (out_.driver.empty()) out_.driver = sample.driver_version;
  for (facts::SampledProcess& process : sample.processes)
    process.owner = host::read_process_owner(setting_.context.machine, process.pid, owners_);
  if (card_) card_->add(sample);
}

// The card as it is before a workload runs: the first sample tells who was there.
void BenchMeasure::watch_card() {
  std::string uuid;
  for (const resolve::BenchEnvironment& env : out_.environments)
    if (env.hello.gpu && uuid.empty()) uuid = env.hello.gpu->uuid;
  if (setting_.device == "cpu" || uuid.empty()) return;
  card_.emplace(uuid);
  own_processes();
  sampler_ = std::make_unique<host::GpuSampler>(
      setting_.context.machine,
      host::SamplerOptions{
          .library_dir = {}, .interval_seconds = k_sample_seconds, .all_each_time = true});
  for (int i = 0; i < 40 && !sampler_->has_answered() && !stopped(); ++i)
    look_at_card(k_first_sample_seconds / 40);
  if (!card_->found()) {
    const std::vector<facts::MissingValue>& missing = sampler_->newest().missing;
    out_.no_nvml = missing.empty() ? "NVML does not list this GPU" : missing.front().why;
    sampler_.reset();
    card_.reset();
  }
}

void BenchMeasure::meet_all() {
  for (resolve::BenchEnvironment& env : out_.environments) {
    processes_.push_back(std::make_unique<BenchProcess>(setting_, env));
    if (!env.trouble.kind.empty() || stopped()) continue;
    auto said = processes_.back()->hello();
    env.hello = std::move(said.value);
    env.trouble = std::move(said.refusal);
  }
}

std::vector<std::string> BenchMeasure::precisions() const {
  if (!plan_.precisions.empty()) return plan_.precisions;
  if (setting_.device == "cpu") return {"fp32"};
  for (const resolve::BenchEnvironment& env : out_.environments) {
    if (!env.hello.gpu) continue;
    const std::optional<Version> cc = parse_version(env.hello.gpu->capability);
    return {cc && cc->part(0) >= 8 ? "bf16" : "fp16"};
  }
  return {"fp32"};
}

Result<resolve::BenchMeasurement> BenchMeasure::run() {
  meet_all();
  watch_card();
  for (const BenchWorkload& workload : plan_.workloads)
    if (!stopped()) one_workload(workload);
  if (card_)
    for (const facts::SampledProcess& process : card_->neighbours())
      out_.neighbours.push_back({process.pid, process.owner.command, process.memory_bytes});
  if (stopped())
    return fail(Code::cancelled, format("interrupted by signal {}", setting_.interrupts.caught()));
  return std::move(out_);
}

// Environments side by side, a precision after the other; of one environment the precisions side by side.
void BenchMeasure::one_workload(const BenchWorkload& workload) {
  std::vector<size_t> living;
  for (size_t i = 0; i < out_.environments.size(); ++i)
    if (out_.environments[i].trouble.kind.empty()) living.push_back(i);
  if (living.empty()) return;
  const std::vector<std::string> all =
      has_precision(workload) ? precisions() : std::vector<std::string>{""};
  std::vector<Side> sides;
  if (living.size() == 1) {
    const size_t own =
        out_.environments.size() - 1;  // the process of the first precision is its own
    for (size_t i = 0; i < all.size(); ++i) {
      while (i > 0 && processes_.size() <= own + i)
        processes_.push_back(
            std::make_unique<BenchProcess>(setting_, out_.environments[living[0]]));
      sides.push_back({living[0], all[i], processes_[i == 0 ? living[0] : own + i].get()});
    }
    return one_case(workload, sides);
  }
  for (const std::string& precision : all) {
    sides.clear();
    for (const size_t i : living) sides.push_back({i, precision, processes_[i].get()});
    if (!stopped()) one_case(workload, sides);
  }
}

void BenchMeasure::load_all(const BenchWorkload& workload, const std::vector<Side>& sides,
                            std::optional<uint64_t> batch, BenchCase& one) {
  for (size_t i = 0; i < sides.size() && !stopped(); ++i) {
    BenchRun& run = one.runs[i];
    if (!run.trouble.kind.empty()) continue;
    auto loaded = sides[i].process->load(workload, sides[i].precision, batch);
    own_processes();
    run.loaded = std::move(loaded.value);
    run.trouble = std::move(loaded.refusal);
  }
}

// The largest power of two with which all run that run with a batch of 1; those that do not are left out.
std::optional<uint64_t> BenchMeasure::largest_batch(const BenchWorkload& workload,
                                                    const std::vector<Side>& sides,
                                                    BenchCase& one) {
  std::optional<uint64_t> good;
  for (uint64_t batch = 1; batch <= k_largest_batch && !stopped(); batch *= 2) {
    std::vector<BenchRun*> asked;
    for (BenchRun& run : one.runs)
      if (run.trouble.kind.empty()) asked.push_back(&run);
    load_all(workload, sides, batch, one);
    bool any = false, full = false;
    double slowest = 0;
    for (BenchRun* run : asked) {
      any = any || run->trouble.kind.empty();
      if (good && is_out_of_memory(run->trouble)) full = true, run->trouble = {};
      slowest = std::max(slowest, run->loaded.seconds);
    }
    if (!any || full) break;
    good = batch;
    if (slowest > k_longest_call) break;
  }
  return good;
}

void BenchMeasure::one_case(const BenchWorkload& workload, const std::vector<Side>& sides) {
  BenchCase one;
  one.workload = workload.name;
  for (const Side& side : sides) {
    one.runs.emplace_back();
    one.runs.back().environment = side.environment;
    one.runs.back().precision = side.precision;
  }
  std::optional<uint64_t> batch = plan_.batch;
  if (plan_.largest_batch) batch = largest_batch(workload, sides, one);
  // Again at that batch: each with nothing in its allocator that a larger one left.
  for (const Side& side : sides)
    if (plan_.largest_batch) side.process->free();
  load_all(workload, sides, batch, one);
  warm_up(sides, one);
  measure(sides, one);
  add_card(sides, one);
  for (const Side& side : sides) side.process->free();
  resolve::judge(one);
  out_.cases.push_back(std::move(one));
}

}  // namespace cufit::commands
