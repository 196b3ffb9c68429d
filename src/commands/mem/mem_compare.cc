// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_compare.h"

#include "commands/mem/mem_snapshot.h"
#include "report/mem_compare.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_compare_options[] = {
    option<&MemCompareRequest::a>("A").needed(),
    option<&MemCompareRequest::b>("B").needed(),
    k_device_option<MemCompareRequest>,
    k_torch_option<MemCompareRequest>,
    option<&MemCompareRequest::json>("--json"),
    option<&MemCompareRequest::verbose>("-v,--verbose"),
};

Result<report::MemRun> read_run(const Context& context, const MemCompareRequest& request,
                                const std::string& path) {
  report::MemRun run;
  run.file = path;
  CUFIT_TRY(torch, chosen_torch(request.torch, context.knowledge));
  CUFIT_TRY(snapshot, load_snapshot(context, path));
  run.snapshot = std::move(snapshot);
  const Result<uint32_t> device = chosen_device(request.device, run.snapshot);
  if (!device) return Error(device.error()).in(path);
  Result<memory::VerifiedRecording> verified =
      memory::verify_recording(run.snapshot, *device, torch);
  if (!verified) return std::move(verified.error()).in(path);
  run.verified = std::move(*verified);
  run.seen = analysis::observe(run.snapshot, run.verified, std::nullopt);
  return run;
}

}  // namespace

std::span<const Option> mem_compare_options() { return k_mem_compare_options; }

int run_mem_compare(const Context& context, const MemCompareRequest& request) {
  const Output& output = context.output;
  if (request.a == "-" && request.b == "-")
    return output.exit_code_for(
        fail(Code::usage, "`compare - -`: standard input holds one snapshot"));
  const Result<report::MemRun> a = read_run(context, request, request.a);
  if (!a) return output.exit_code_for(a.error());
  const Result<report::MemRun> b = read_run(context, request, request.b);
  if (!b) return output.exit_code_for(b.error());
  const std::vector<analysis::PlaceChange> places =
      analysis::place_changes(a->snapshot, a->seen, b->snapshot, b->seen);
  const report::MemCompareView view{*a, *b, places, context.knowledge};
  if (request.json) return output.print(report::mem_compare_json(view), k_ok);
  return output.print(report::mem_compare_text(view, output.style(request.verbose)), k_ok);
}

}  // namespace cufit::commands
