// SPDX-License-Identifier: Apache-2.0
#include "host/python/loader_run.h"

#include "base/format.h"
#include "host/process/process_tree.h"
#include "host/python/sitecustomize_dir.h"

namespace cufit::host {

Result<LoaderRun> loader_run(const LoaderRunOptions& options, Interrupts& interrupts) {
  CUFIT_TRY(folder, ScriptFolder::make("loader", loader_sitecustomize(), {}));
  const std::string answer = folder.path() + "/answer";
  std::vector<std::string> counts;
  for (const uint64_t count : options.workers) counts.push_back(std::to_string(count));
  ChildOptions child;
  child.command = options.command;
  child.variables = options.variables;
  child.variables.emplace_back("PYTHONPATH", folder.python_path());
  child.variables.emplace_back("CUFIT_LOADER_OUT", answer);
  child.variables.emplace_back("CUFIT_LOADER_SECONDS", format("{:g}", options.seconds));
  child.variables.emplace_back("CUFIT_LOADER_WORKERS", join(counts, ","));
  child.variables.emplace_back("CUFIT_LOADER_CPUS", std::to_string(options.cpus));
  child.pass_on = true;
  child.leave_none = true;
  child.seconds = options.seconds + options.start_seconds;
  CUFIT_TRY(outcome, run_child(child, interrupts));
  LoaderRun run;
  run.exit_code = outcome.code;
  run.timed_out = outcome.timed_out;
  run.answer = read_small(answer);
  run.said = std::move(outcome.err);
  return run;
}

}  // namespace cufit::host
