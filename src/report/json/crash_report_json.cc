// SPDX-License-Identifier: Apache-2.0
#include "report/crash_report.h"
#include "report/explain.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

Json memory_before(const facts::Supervised& run) {
  Json gpus = Json::array();
  for (const facts::GpuMemory& gpu : run.memory)
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name},
                    {"used_bytes", gpu.used_bytes},
                    {"total_bytes", gpu.total_bytes}});
  return {{"seconds_before_end", run.memory_age_seconds}, {"gpus", std::move(gpus)}};
}

Json memory_after(const facts::Facts& facts) {
  Json gpus = Json::array();
  for (const facts::NvmlGpu& gpu : facts.nvml.gpus) {
    if (!gpu.memory_used_bytes || !gpu.memory_total_bytes) continue;
    gpus.push_back({{"index", gpu.index},
                    {"name", gpu.name.value_or("")},
                    {"used_bytes", *gpu.memory_used_bytes},
                    {"total_bytes", *gpu.memory_total_bytes}});
  }
  return {{"gpus", std::move(gpus)}};
}

Json host_memory(const facts::Supervised& run) {
  Json out = Json::object();
  if (run.host_memory) {
    out["seconds_before_end"] = run.host_memory_age_seconds;
    out["total_bytes"] = run.host_memory->total_bytes;
    out["available_bytes"] = run.host_memory->available_bytes;
  }
  const auto kills = [&](const char* name, const std::optional<uint64_t>& before,
                         const std::optional<uint64_t>& after) {
    if (before && after) out[name] = {{"before", *before}, {"after", *after}};
  };
  kills("cgroup_oom_kills", run.kills_before.cgroup, run.kills_after.cgroup);
  kills("machine_oom_kills", run.kills_before.machine, run.kills_after.machine);
  return out;
}

// What the limit of GPU memory refused, by process.
Json gpu_limit(const CrashReportView& view) {
  Json out = Json::array();
  for (const formats::GpuRing& ring : view.rings) {
    if (ring.refusal_count == 0 && !ring.domain_failed) continue;
    Json one = {{"pid", ring.pid},
                {"program", ring.program},
                {"limited", ring.quota && !ring.domain_failed},
                {"refusals", ring.refusal_count}};
    if (!ring.refusals.empty()) {
      const formats::RingRefusal& last = ring.refusals.back();
      one["last"] = {{"by", last.what == formats::RingWhat::refused ? "limit" : "driver"},
                     {"gpu", last.device},
                     {"asked_bytes", last.asked_bytes},
                     {"own_bytes", last.own_bytes},
                     {"all_bytes", last.domain_bytes},
                     {"limit_bytes", last.limit_bytes},
                     {"processes", last.processes}};
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string crash_report_json(const CrashReportView& view) {
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
  if (Json limit = gpu_limit(view); !limit.empty()) out["gpu_limit"] = std::move(limit);
  const std::string reason = crash_report_reason(view, "en");
  if (!reason.empty()) out["reason"] = reason;
  if (view.explanation.program_error) out["last_error"] = view.explanation.program_error->line;
  out["host_memory"] = host_memory(view.run);
  out["explanation"] = explain_value({view.explanation, view.knowledge});
  out["output_bytes"] = view.run.output_bytes;
  out["tail"] = plain_tail(view.run.tail);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
