// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_compare.h"

#include "commands/mem/mem_snapshot.h"
#include "commands/settings.h"
#include "report/mem_compare.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_compare_options[] = {
    {"A", "", "", false, "", true},
    {"B", "", "", false, "", true},
    k_device_option,
    k_torch_option,
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

Result<report::MemRun> read_run(const Arguments& arguments, const std::string& path) {
  report::MemRun run;
  run.file = path;
  CUFIT_TRY(torch, chosen_torch(arguments));
  CUFIT_TRY(snapshot, load_snapshot(path));
  run.snapshot = std::move(snapshot);
  const Result<uint32_t> device = chosen_device(arguments, run.snapshot);
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

int run_mem_compare(const Arguments& arguments) {
  if (arguments.get("A") == "-" && arguments.get("B") == "-")
    return exit_code_for(fail(Code::usage, "`compare - -`: standard input holds one snapshot"));
  const Result<report::MemRun> a = read_run(arguments, arguments.get("A"));
  if (!a) return exit_code_for(a.error());
  const Result<report::MemRun> b = read_run(arguments, arguments.get("B"));
  if (!b) return exit_code_for(b.error());
  const std::vector<analysis::PlaceChange> places =
      analysis::place_changes(a->snapshot, a->seen, b->snapshot, b->seen);
  const report::MemCompareView view{*a, *b, places, knowledge::Knowledge::builtin()};
  if (arguments.has("json")) return print(report::mem_compare_json(view), k_ok);
  return print(report::mem_compare_text(view, style_for(arguments)), k_ok);
}

}  // namespace cufit::commands
