// SPDX-License-Identifier: Apache-2.0
// The answers of `cufit quota` and their views.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "facts/memory_limits.h"
#include "facts/quota_domains.h"
#include "report/report.h"
#include "resolve/quota/backend.h"
#include "resolve/quota/domain_usage.h"
#include "resolve/quota/trial_verdict.h"

namespace cufit::report {

struct QuotaStatusView {
  const std::vector<resolve::DomainUsage>& domains;
  const std::vector<facts::SkippedDomain>& skipped;
  std::vector<resolve::BackendVerdict> verdicts;  // of this machine, best first
  bool nvml_answers = false;
  bool gpus_seen = false;
  bool one_user = true;  // who asks sees no domains but his own
  const knowledge::Knowledge& knowledge;
  std::vector<facts::QueuedJob> queue = {};            // first come first
  std::map<std::string, uint32_t> index_by_uuid = {};  // of the GPUs that NVML tells of
};

std::string quota_status_text(const QuotaStatusView& view, const Style& style);
std::string quota_status_json(const QuotaStatusView& view);  // schema cufit.quota/1

struct QuotaPlanView {
  std::vector<resolve::BackendVerdict> verdicts;  // best first
  bool gpus_seen = false;
  bool recorded = false;
  const knowledge::Knowledge& knowledge;
};

std::string quota_plan_text(const QuotaPlanView& view, const Style& style);
std::string quota_plan_json(const QuotaPlanView& view);  // schema cufit.quota/1
// `kind`: "why" or "enable"; empty for an empty id.
std::string quota_reason(const resolve::BackendVerdict& verdict, std::string_view kind,
                         std::string_view id, std::string_view lang,
                         const knowledge::Knowledge& knowledge);

struct QuotaSetView {
  std::string cgroup;
  facts::MemoryLimits wanted;
  bool dry_run = false;
  bool undone = false;  // a GPU refused: all have what they had
  const std::vector<facts::LimitedGpu>& gpus;
  const knowledge::Knowledge& knowledge;
};

std::string quota_set_text(const QuotaSetView& view, const Style& style);

// A GPU of the trials.
struct VerifiedGpu {
  uint32_t number = 0;  // CUDA's
  std::string name, uuid;
  std::optional<uint64_t> limit_bytes;
  uint64_t room_bytes = 0;  // of the limit, that nobody held when the trials began
  facts::TrialSizes sizes;
  // no_limit: the quota has none for it. no_room: others of the quota hold too much of it.
  enum class Skipped { no, no_limit, no_room } skipped = Skipped::no;
};
// The program that was named.
struct VerifiedCommand {
  int code = 0;
  uint64_t peak_bytes = 0, refusals = 0;
  bool went_over = false;  // passed the limit
};

struct QuotaVerifyView {
  std::vector<VerifiedGpu> gpus;  // empty: none was found
  size_t others = 0;              // that CUDA shows and nobody asked for
  std::vector<resolve::Trial> trials;
  std::optional<VerifiedCommand> command;
  const knowledge::Knowledge& knowledge;
};

std::string quota_verify_text(const QuotaVerifyView& view, const Style& style);
std::string quota_verify_json(const QuotaVerifyView& view);  // schema cufit.quota.verify/1
// Every way that was tried holds, one was, and the program stayed below.
bool all_verified(const QuotaVerifyView& view);

}  // namespace cufit::report
