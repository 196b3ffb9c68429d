// SPDX-License-Identifier: Apache-2.0
#include "commands/mem_explain.h"

#include "analysis/diagnosis.h"
#include "commands/mem_snapshot.h"
#include "commands/settings.h"
#include "report/mem_explain.h"

namespace cufit::commands {
namespace {

constexpr Option k_options[] = {
    {"SNAPSHOT", "", "", false, "", true},
    {"--limit", "GIB", "", false, ""},
    k_device_option,
    k_torch_option,
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

}  // namespace

std::span<const Option> mem_explain_options() { return k_options; }

// 1 where something is wrong: it ran out of memory, or it will.
int run_mem_explain(const Arguments& arguments) {
  std::optional<uint64_t> limit;
  if (arguments.has("limit")) {
    const Result<uint64_t> size = size_argument("--limit", arguments.get("limit"));
    if (!size) return give_up(size.error());
    limit = *size;
  }
  const auto torch = chosen_torch(arguments);
  if (!torch) return give_up(torch.error());
  const std::string path = arguments.get("SNAPSHOT");
  const Result<memory::Snapshot> snapshot = load_snapshot(path);
  if (!snapshot) return give_up(snapshot.error());
  const Result<uint32_t> device = chosen_device(arguments, *snapshot);
  if (!device) return give_up(device.error());
  const Result<memory::Study> study = memory::study_of(*snapshot, *device, *torch);
  if (!study) return give_up(Error(study.error()).in(path));
  const Result<analysis::Diagnosis> diagnosis = analysis::diagnose(*snapshot, *study, limit);
  if (!diagnosis) return give_up(Error(diagnosis.error()).in(path));
  const report::MemExplainView view{path, *snapshot, *study, *diagnosis,
                                    knowledge::Knowledge::builtin()};
  const int code = diagnosis->oom || !diagnosis->causes.empty() ? k_findings : k_ok;
  if (arguments.has("json")) return print(report::mem_explain_json(view), code);
  return print(report::mem_explain_text(view, style_for(arguments)), code);
}

}  // namespace cufit::commands
