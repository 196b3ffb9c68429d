// SPDX-License-Identifier: Apache-2.0
#include "host/traced_run.h"

#include <unistd.h>

#include "host/host.h"
#include "host/script_folder.h"

namespace cufit::host {
namespace {

using Variable = std::pair<std::string, std::optional<std::string>>;

std::optional<std::string> number(const std::optional<uint64_t>& value) {
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

std::vector<Variable> variables_of(const TraceOptions& options, const ScriptFolder& folder,
                                   const std::string& event_file) {
  return {
      {"PYTHONPATH", folder.python_path()},
      {"CUFIT_FIT_OUT", event_file},
      {"CUFIT_FIT_BATCH", number(options.batch)},
      {"CUFIT_FIT_STEPS", std::to_string(options.steps)},
      {"CUFIT_FIT_GPU", options.gpu},
      {"CUFIT_FIT_SCRATCH", folder.path() + "/scratch"},
      {"CUFIT_FIT_VARIANT",
       options.variant.empty() ? std::nullopt : std::optional(options.variant)},
      {"CUFIT_FIT_FUNCTION",
       options.function.empty() ? std::nullopt : std::optional(options.function)},
      {"CUFIT_FIT_MODEL", options.model.empty() ? std::nullopt : std::optional(options.model)},
  };
}

}  // namespace

Result<TracedRun> traced_run(const TraceOptions& options, Interrupts& interrupts) {
  CUFIT_TRY(folder, ScriptFolder::make("fit", fit_tracer(), {"scratch"}));
  if (Result<void> added = folder.add("no_accelerator.so", fit_no_accelerator()); !added)
    return added.error();
  const std::string event_file =
      options.event_file.empty() ? folder.path() + "/events" : options.event_file;
  unlink(event_file.c_str());
  ChildOptions child;
  child.command = options.command;
  if (!options.function.empty()) child.command.push_back(folder.script());
  if (!options.model.empty()) {
    if (Result<void> added = folder.add("model.py", fit_model_program()); !added)
      return added.error();
    child.command.push_back(folder.path() + "/model.py");
  }
  child.variables = variables_of(options, folder, event_file);
  child.pass_on = true;
  child.leave_none = true;
  CUFIT_TRY(outcome, run_child(child, interrupts));
  TracedRun run;
  run.exit_code = outcome.code;
  // Open, it can be read after the folder is gone.
  if (Result<std::unique_ptr<ByteSource>> opened = RealHost().open(event_file))
    run.events = std::move(*opened);
  run.said = std::move(outcome.err);
  return run;
}

}  // namespace cufit::host
