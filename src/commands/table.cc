// SPDX-License-Identifier: Apache-2.0
// Every command, in the order in which help lists them. Summary texts: data/messages/help.toml.
#include "commands/bench/bench.h"
#include "commands/bench/bench_loader.h"
#include "commands/doctor/collect_env.h"
#include "commands/command.h"
#include "commands/diff/diff.h"
#include "commands/doctor/doctor.h"
#include "commands/env/env.h"
#include "commands/explain/explain.h"
#include "commands/export/export.h"
#include "commands/fit/fit.h"
#include "commands/image/image_audit.h"
#include "commands/fleet/fleet_check.h"
#include "commands/fleet/fleet_plan.h"
#include "commands/inspect/inspect.h"
#include "commands/k8s/k8s_lint.h"
#include "commands/run/run.h"
#include "commands/lock/lock.h"
#include "commands/mem/mem_compare.h"
#include "commands/mem/mem_explain.h"
#include "commands/mem/mem_record.h"
#include "commands/mem/mem_replay.h"
#include "commands/mem/mem_view.h"
#include "commands/pack/mig_plan.h"
#include "commands/pack/pack.h"
#include "commands/quota/quota_plan.h"
#include "commands/quota/quota_set.h"
#include "commands/quota/quota_status.h"
#include "commands/quota/quota_verify.h"
#include "commands/run/preflight.h"
#include "commands/watch/exporter.h"
#include "commands/watch/top.h"
#include "commands/watch/watch.h"
#include "commands/resolve/resolve.h"
#include "commands/self/self.h"

namespace cufit::commands {

std::span<const Command> table() {
  static const Command k_table[] = {
      command<DoctorRequest, run_doctor>("doctor", doctor_options()),
      command<ExplainRequest, run_explain>("explain", explain_options()),
      command<InspectRequest, run_inspect>("inspect", inspect_options()),
      command<FitRequest, run_fit>("fit", fit_options()),
      command<MemExplainRequest, run_mem_explain>("mem explain", mem_explain_options()),
      command<MemCompareRequest, run_mem_compare>("mem compare", mem_compare_options()),
      command<MemRecordRequest, run_mem_record>("mem record", mem_record_options()),
      command<MemReplayRequest, run_mem_replay>("mem replay", mem_replay_options()),
      command<MemViewRequest, run_mem_view>("mem view", mem_view_options()),
      command<PackRequest, run_pack>("pack", pack_options()),
      command<MigPlanRequest, run_mig_plan>("mig plan", mig_plan_options()),
      command<QuotaStatusRequest, run_quota_status>("quota status", quota_status_options()),
      command<QuotaPlanRequest, run_quota_plan>("quota plan", quota_plan_options()),
      command<QuotaVerifyRequest, run_quota_verify>("quota verify", quota_verify_options()),
      command<QuotaSetRequest, run_quota_set>("quota set", quota_set_options()),
      command<QuotaClearRequest, run_quota_clear>("quota clear", quota_clear_options()),
      command<BenchRequest, run_bench>("bench", bench_options()),
      command<BenchLoaderRequest, run_bench_loader>("bench loader", bench_loader_options()),
      command<TopRequest, run_top>("top", top_options()),
      command<WatchRequest, run_watch>("watch", watch_options()),
      command<ExporterRequest, run_exporter>("exporter", exporter_options()),
      command<ResolveRequest, run_resolve>("resolve", resolve_options()),
      command<LockRequest, run_lock>("lock", lock_options()),
      command<EnvCreateRequest, run_env_create>("env create", env_create_options()),
      command<EnvListRequest, run_env_list>("env list", env_list_options()),
      command<EnvCheckRequest, run_env_check>("env check", env_check_options()),
      command<EnvRemoveRequest, run_env_remove>("env remove", env_remove_options()),
      command<RunRequest, run_run>("run", run_options()),
      command<ExportRequest, run_export>("export", export_options()),
      command<DiffRequest, run_diff>("diff", diff_options()),
      command<FleetCheckRequest, run_fleet_check>("fleet check", fleet_check_options()),
      command<FleetPlanRequest, run_fleet_plan>("fleet plan", fleet_plan_options()),
      command<ImageAuditRequest, run_image_audit>("image audit", image_audit_options()),
      command<K8sLintRequest, run_k8s_lint>("k8s lint", k8s_lint_options()),
      command<PreflightRequest, run_preflight>("preflight", preflight_options()),
      command<CollectEnvRequest, run_collect_env>("collect-env", collect_env_options()),
      command<SelfRequest, run_self>("self", self_options()),
  };
  return k_table;
}

}  // namespace cufit::commands
