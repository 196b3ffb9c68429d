// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "report/death.h"
#include "report/explain.h"

namespace cufit::report {
namespace {

using Json = nlohmann::ordered_json;

Json memory_before(const host::Supervised& run) {
  Json gpus = Json::array();
  for (const host::GpuMemory& gpu : run.memory)
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"used_bytes", gpu.used_bytes},
                    {"total_bytes", gpu.total_bytes}});
  return {{"seconds_before_end", run.memory_age_seconds}, {"gpus", std::move(gpus)}};
}

Json memory_after(const host::Facts& facts) {
  Json gpus = Json::array();
  for (const host::NvmlGpu& gpu : facts.nvml.gpus) {
    if (!gpu.memory_used_bytes || !gpu.memory_total_bytes) continue;
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name.value_or("")},
                    {"used_bytes", *gpu.memory_used_bytes},
                    {"total_bytes", *gpu.memory_total_bytes}});
  }
  return {{"gpus", std::move(gpus)}};
}

}  // namespace

std::string death_json(const DeathView& view) {
  Json out;
  out["schema"] = "cufit.run.report/1";
  out["cufit"] = CUFIT_VERSION;
  out["time"] = view.time;
  out["command"] = view.command;
  out["class"] = view.class_name;
  out["torch"] = view.torch;
  out["env"] = view.env;
  out["pid"] = view.run.pid;
  out["exit_code"] = view.run.exit_code;
  if (view.run.signal != 0) out["signal"] = view.run.signal;
  out["seconds"] = view.run.seconds;
  if (!view.run.memory.empty()) out["memory_before"] = memory_before(view.run);
  out["memory_after"] = memory_after(view.after);
  out["explanation"] =
      Json::parse(explain_json({view.explanation, view.knowledge}), nullptr, false);
  out["output_bytes"] = view.run.output_bytes;
  out["tail"] = plain_tail(view.run.tail);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace cufit::report
