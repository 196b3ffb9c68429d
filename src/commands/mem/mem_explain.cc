// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_explain.h"

#include "memory/analysis/diagnosis.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/size_argument.h"
#include "report/mem_explain.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_explain_options[] = {
    k_snapshot_option<MemExplainRequest>,       option<&MemExplainRequest::limit>("--limit", "GIB"),
    k_device_option<MemExplainRequest>,         k_torch_option<MemExplainRequest>,
    option<&MemExplainRequest::json>("--json"), option<&MemExplainRequest::verbose>("-v,--verbose"),
};

// What `cufit mem record` wrote down of the process's limit, bytes: of a device that ran out alone,
// as it says what refused the request.
std::optional<uint64_t> written_limit(const memory::Snapshot& snapshot, uint32_t device) {
  const auto found = snapshot.process_limits.find(device);
  if (found == snapshot.process_limits.end() || !memory::ran_out(snapshot, device))
    return std::nullopt;
  return found->second;
}

}  // namespace

std::span<const Option> mem_explain_options() { return k_mem_explain_options; }

// 1 where something is wrong: it ran out of memory, or it will.
int run_mem_explain(const Context& context, const MemExplainRequest& request) {
  const Output& output = context.output;
  std::optional<uint64_t> limit;
  if (request.limit) {
    const Result<uint64_t> size = size_argument("--limit", *request.limit);
    if (!size) return output.exit_code_for(size.error());
    limit = *size;
  }
  analysis::EarlyWork early;
  const Result<OpenedRecording> opened = open_recording(
      context, request,
      [&](const auto& snapshot, const memory::VerifiedRecording& verified) {
        early = analysis::begin_early(snapshot, verified);
      },
      limit);
  if (!opened) return output.exit_code_for(opened.error());
  const auto& [path, snapshot, device, verified] = *opened;
  std::optional<uint64_t> written;
  if (!limit) written = written_limit(*snapshot, device);
  Result<analysis::Diagnosis> diagnosis =
      analysis::diagnose(*snapshot, verified, limit ? limit : written, std::move(early));
  // The card was full before that limit was met, or it was set after this moment.
  if (written && diagnosis && *report::limit_warning(*diagnosis) != 0) {
    written.reset();
    diagnosis = analysis::diagnose(*snapshot, verified, limit);
  }
  if (!diagnosis) return output.exit_code_for(Error(diagnosis.error()).in(path));
  const report::MemExplainView view{path,       *snapshot,         verified,
                                    *diagnosis, context.knowledge, written.has_value()};
  const int code = diagnosis->oom || !diagnosis->causes.empty() ? k_findings : k_ok;
  if (request.json) return output.print(report::mem_explain_json(view), code);
  return output.print(report::mem_explain_text(view, output.style(request.verbose)), code);
}

}  // namespace cufit::commands
