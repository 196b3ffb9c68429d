// SPDX-License-Identifier: Apache-2.0
#include "commands/mem_compare.h"

#include "commands/mem_snapshot.h"
#include "commands/settings.h"
#include "report/mem_compare.h"

namespace cufit::commands {
namespace {

constexpr Option k_options[] = {
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
  Result<memory::Study> study = memory::study_of(run.snapshot, *device, torch);
  if (!study) return std::move(study.error()).in(path);
  run.study = std::move(*study);
  run.seen = analysis::observe(run.snapshot, run.study, std::nullopt);
  return run;
}

}  // namespace

std::span<const Option> mem_compare_options() { return k_options; }

int run_mem_compare(const Arguments& arguments) {
  if (arguments.get("A") == "-" && arguments.get("B") == "-")
    return give_up(fail(Code::usage, "`compare - -`: standard input holds one snapshot"));
  const Result<report::MemRun> a = read_run(arguments, arguments.get("A"));
  if (!a) return give_up(a.error());
  const Result<report::MemRun> b = read_run(arguments, arguments.get("B"));
  if (!b) return give_up(b.error());
  const std::vector<analysis::PlaceChange> places =
      analysis::place_changes(a->snapshot, a->seen, b->snapshot, b->seen);
  const report::MemCompareView view{*a, *b, places, knowledge::Knowledge::builtin()};
  if (arguments.has("json")) return print(report::mem_compare_json(view), k_ok);
  return print(report::mem_compare_text(view, style_for(arguments)), k_ok);
}

}  // namespace cufit::commands
