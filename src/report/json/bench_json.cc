// SPDX-License-Identifier: Apache-2.0
// Schema cufit.bench/1. Members may be added within the schema's version, none is renamed or removed.
#include "report/bench.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

using resolve::BenchCase;
using resolve::BenchRun;

template <class T>
Json number_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json trouble_json(const formats::BenchRefusal& trouble) {
  if (trouble.kind.empty()) return nullptr;
  return {{"kind", trouble.kind}, {"why", trouble.why}};
}

Json interval_json(const resolve::Interval& one) {
  return {{"median", one.middle}, {"low", one.low}, {"high", one.high}};
}

Json bench_environment_json(const resolve::BenchEnvironment& env) {
  Json out;
  out["name"] = env.name;
  out["class"] = env.is_class;
  out["folder"] = env.folder;
  out["interpreter"] = or_null(env.interpreter);
  out["python"] = or_null(env.hello.python);
  out["torch"] = or_null(env.hello.torch);
  out["cuda"] = or_null(env.hello.cuda);
  out["cudnn"] = or_null(env.hello.cudnn);
  out["trouble"] = trouble_json(env.trouble);
  return out;
}

Json bench_run_json(const BenchRun& run) {
  Json out;
  out["environment"] = run.environment;
  out["precision"] = or_null(run.precision);
  out["rate"] = run.rate ? interval_json(*run.rate) : Json(nullptr);
  out["calls"] = run.calls;
  out["block_seconds"] = Json::array();
  for (const formats::BenchBlock& block : run.blocks) out["block_seconds"].push_back(block.seconds);
  out["warm_up_blocks"] = run.warm_up_blocks;
  out["steady"] = run.steady;
  out["reserved_bytes"] = number_or_null(resolve::reserved_bytes(run));
  out["process_bytes"] = number_or_null(run.process_bytes);
  out["joules_per_item"] = number_or_null(run.joules_per_item);
  out["sm_clock_min_mhz"] = number_or_null(run.sm_clock_min_mhz);
  out["sm_clock_max_mhz"] = number_or_null(run.sm_clock_max_mhz);
  out["throttle"] = run.throttle;
  out["trouble"] = trouble_json(run.trouble);
  return out;
}

// What all runs of a case have in common is told by the first that was loaded.
Json bench_case_json(const BenchCase& one) {
  Json out;
  const BenchRun* loaded = nullptr;
  for (const BenchRun& run : one.runs)
    if (loaded == nullptr && run.loaded.batch > 0) loaded = &run;
  out["workload"] = one.workload;
  out["shape"] = loaded ? Json(loaded->loaded.shape) : Json(nullptr);
  out["batch"] = loaded ? Json(loaded->loaded.batch) : Json(nullptr);
  out["unit"] = loaded ? Json(loaded->loaded.unit) : Json(nullptr);
  out["runs"] = Json::array();
  for (const BenchRun& run : one.runs) out["runs"].push_back(bench_run_json(run));
  out["comparisons"] = Json::array();
  static constexpr const char* k_words[] = {"none", "slower", "faster"};
  for (const resolve::BenchComparison& two : one.comparisons)
    out["comparisons"].push_back({{"base", two.base},
                                  {"other", two.other},
                                  {"ratio", interval_json(two.ratio)},
                                  {"difference", k_words[static_cast<int>(two.difference)]}});
  out["fastest"] = resolve::fastest_of(one);
  return out;
}

Json bench_device_json(const resolve::BenchMeasurement& result) {
  Json out = {{"number", result.device == "cpu" ? Json(nullptr) : Json(std::stoul(result.device))},
              {"name", nullptr},
              {"compute_capability", nullptr},
              {"uuid", nullptr},
              {"memory_bytes", nullptr}};
  for (const resolve::BenchEnvironment& env : result.environments) {
    if (!env.hello.gpu) continue;
    out["name"] = env.hello.gpu->name;
    out["compute_capability"] = env.hello.gpu->capability;
    out["uuid"] = or_null(env.hello.gpu->uuid);
    out["memory_bytes"] = env.hello.gpu->memory_bytes;
    break;
  }
  out["driver"] = or_null(result.driver);
  return out;
}

}  // namespace

std::string bench_json(const BenchView& view) {
  const resolve::BenchMeasurement& result = view.result;
  Json out;
  out["schema"] = "cufit.bench/1";
  out["cufit"] = CUFIT_VERSION;
  out["time"] = static_cast<int64_t>(view.time);
  out["device"] = bench_device_json(result);
  out["rounds"] = result.rounds;
  out["seconds"] = result.seconds;
  out["environments"] = Json::array();
  for (const resolve::BenchEnvironment& env : result.environments)
    out["environments"].push_back(bench_environment_json(env));
  out["cases"] = Json::array();
  for (const BenchCase& one : result.cases) out["cases"].push_back(bench_case_json(one));
  out["neighbours"] = Json::array();
  for (const resolve::BenchNeighbour& other : result.neighbours)
    out["neighbours"].push_back({{"pid", other.pid},
                                 {"command", or_null(other.command)},
                                 {"memory_bytes", number_or_null(other.memory_bytes)}});
  out["no_nvml"] = or_null(result.no_nvml);
  out["marks"] = bench_marks(view, "en");
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
