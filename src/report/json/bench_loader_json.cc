// SPDX-License-Identifier: Apache-2.0
// Schema cufit.bench.loader/1. Members may be added within the schema's version, none is renamed or removed.
#include "report/bench_loader.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

Json real_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json loader_json(const formats::LoaderAnswer& answer) {
  Json out;
  out["place"] = or_null(answer.place);
  out["dataset"] = answer.dataset;
  out["iterable"] = answer.iterable;
  out["batches"] = or_null(answer.batches);
  out["batch_size"] = or_null(answer.batch_size);
  out["batch_bytes"] = answer.batch_bytes;
  out["num_workers"] = answer.num_workers;
  out["pin_memory"] = answer.pin_memory;
  out["prefetch_factor"] = or_null(answer.prefetch_factor);
  out["persistent_workers"] = answer.persistent_workers;
  return out;
}

Json alone_json(const formats::LoaderAlone& one) {
  return {{"workers", one.workers},
          {"seconds", real_or_null(one.seconds)},
          {"first_seconds", real_or_null(one.first_seconds)},
          {"batches", one.batches},
          {"error", or_null(one.error)}};
}

Json advice_json(const resolve::LoaderAdvice& advice) {
  static constexpr const char* k_verdicts[] = {"not_told", "fed",  "unsteady",
                                               "restarts", "more", "host_bound"};
  Json out;
  out["verdict"] = k_verdicts[static_cast<int>(advice.verdict)];
  out["waited"] = advice.waited;
  out["num_workers"] = or_null(advice.workers);
  out["seconds"] = advice.best_seconds;
  out["arguments"] = or_null(resolve::loader_arguments(advice));
  out["may_repeat_samples"] = advice.may_repeat_samples;
  out["shm_bytes"] = advice.shm_bytes;
  out["shm_is_small"] = advice.shm_is_small;
  return out;
}

}  // namespace

std::string bench_loader_json(const BenchLoaderView& view) {
  const formats::LoaderAnswer& answer = view.answer;
  Json out;
  out["schema"] = "cufit.bench.loader/1";
  out["cufit"] = CUFIT_VERSION;
  out["phase"] = answer.phase;
  out["torch"] = answer.torch;
  out["cuda"] = answer.cuda;
  out["optimizer_steps"] = answer.optimizer_steps;
  out["processes"] = answer.processes;
  out["other_loaders"] = answer.other_loaders;
  out["loader"] = loader_json(answer);
  out["watched"] = {{"batches", answer.watched_batches},
                    {"wait_seconds", answer.wait_seconds},
                    {"work_seconds", answer.work_seconds}};
  out["step"] = answer.step_seconds
                    ? Json{{"steps", answer.steps}, {"seconds", *answer.step_seconds}}
                    : Json(nullptr);
  out["alone"] = Json::array();
  for (const formats::LoaderAlone& one : answer.alone) out["alone"].push_back(alone_json(one));
  out["host"] = {{"cpus", or_null(view.host.cpus)},
                 {"cpu_limit", real_or_null(view.host.cpu_limit)},
                 {"shm_bytes", or_null(view.host.shm_bytes)}};
  out["advice"] = advice_json(view.advice);
  out["end"] = view.end ? Json{{"code", view.end->code},
                               {"timed_out", view.end->timed_out},
                               {"workers", or_null(answer.trying)}}
                        : Json(nullptr);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
