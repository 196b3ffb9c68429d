// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_explain.h"

#include "memory/analysis/diagnosis.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/settings.h"
#include "report/mem_explain.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_explain_options[] = {
    {"SNAPSHOT", "", "", false, "", true},
    {"--limit", "GIB", "", false, ""},
    k_device_option,
    k_torch_option,
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

}  // namespace

std::span<const Option> mem_explain_options() { return k_mem_explain_options; }

// 1 where something is wrong: it ran out of memory, or it will.
int run_mem_explain(const Arguments& arguments) {
  std::optional<uint64_t> limit;
  if (arguments.has("limit")) {
    const Result<uint64_t> size = size_argument("--limit", arguments.get("limit"));
    if (!size) return exit_code_for(size.error());
    limit = *size;
  }
  analysis::EarlyWork early;
  const Result<OpenedStudy> opened = open_study(
      arguments,
      [&](const auto& snapshot, const memory::VerifiedRecording& verified) {
        early = analysis::begin_early(snapshot, verified);
      },
      limit);
  if (!opened) return exit_code_for(opened.error());
  const auto& [path, snapshot, device, verified] = *opened;
  const Result<analysis::Diagnosis> diagnosis =
      analysis::diagnose(*snapshot, verified, limit, std::move(early));
  if (!diagnosis) return exit_code_for(Error(diagnosis.error()).in(path));
  const report::MemExplainView view{path, *snapshot, verified, *diagnosis,
                                    knowledge::Knowledge::builtin()};
  const int code = diagnosis->oom || !diagnosis->causes.empty() ? k_findings : k_ok;
  if (arguments.has("json")) return print(report::mem_explain_json(view), code);
  return print(report::mem_explain_text(view, style_for(arguments)), code);
}

}  // namespace cufit::commands
