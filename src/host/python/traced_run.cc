// SPDX-License-Identifier: Apache-2.0
#include "host/python/traced_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "base/number.h"
#include "base/format.h"
#include "host/files/host.h"
#include "host/process/process_tree.h"
#include "host/python/sitecustomize_dir.h"

namespace cufit::host {
namespace {

using Variable = std::pair<std::string, std::optional<std::string>>;

std::optional<std::string> number(const std::optional<uint64_t>& value) {
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

// What the tracer is given to end the program with its own words, before it is made to.
constexpr double k_traced_run_grace_seconds = 10;

// On the clock that Python's time.monotonic() reads.
std::optional<std::string> deadline(uint64_t seconds) {
  if (seconds == 0) return std::nullopt;
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::to_string(static_cast<uint64_t>(time.tv_sec) + seconds);
}

std::string progress_file(const ScriptFolder& folder) { return folder.path() + "/progress"; }

// A program that holds Python's lock within a library keeps the tracer from looking at it. Each
// look at which it had advanced writes a file anew (python/cufit_tracer/watch.py).
class IdleTime {
 public:
  IdleTime(std::string beat, double most) : beat_(std::move(beat)), most_(most) {}

  bool is_over(double seconds) {
    struct stat now {};
    if (stat(beat_.c_str(), &now) == 0 &&
        (now.st_mtim.tv_sec != last_.tv_sec || now.st_mtim.tv_nsec != last_.tv_nsec)) {
      last_ = now.st_mtim;
      advanced_ = seconds;
    }
    return seconds - advanced_ > most_;
  }

 private:
  std::string beat_;
  double most_, advanced_ = 0;
  timespec last_{};
};

// Two lines: steps, source.
TraceProgress progress_of(const std::string& text) {
  TraceProgress progress;
  const std::vector<std::string_view> lines = split_lines(text);
  if (lines.size() < 2) return progress;
  progress.steps = parse_uint(lines[0]).value_or(0);
  progress.source = std::string(lines[1]);
  return progress;
}

std::vector<Variable> variables_of(const TraceOptions& options, const ScriptFolder& folder,
                                   const std::string& event_file) {
  std::vector<Variable> out = {
      {"PYTHONPATH", folder.python_path()},
      {"CUFIT_FIT_OUT", event_file},
      {"CUFIT_FIT_BATCH", number(options.batch)},
      {"CUFIT_FIT_BATCH_WAS", number(options.replaced_batch)},
      {"CUFIT_FIT_SEQ", number(options.seq)},
      {"CUFIT_FIT_STEPS", std::to_string(options.steps)},
      {"CUFIT_FIT_MOST_STEPS", number(options.most_steps)},
      {"CUFIT_FIT_GPU", options.gpu},
      {"CUFIT_FIT_DEADLINE", deadline(options.seconds)},
      {"CUFIT_FIT_IDLE",
       options.idle_seconds > 0 ? number(std::optional(options.idle_seconds)) : std::nullopt},
      {"CUFIT_FIT_PROGRESS", progress_file(folder)},
      {"CUFIT_FIT_CUDNN", options.cudnn.empty() ? std::nullopt : std::optional(options.cudnn)},
      {"CUFIT_FIT_DEVICE", options.device.empty() ? std::nullopt : std::optional(options.device)},
      {"CUFIT_FIT_SCRATCH", folder.path() + "/scratch"},
      {"CUFIT_FIT_WORLD", options.world == 0 ? std::optional<std::string>("auto")
                                             : number(options.world)},
      {"CUFIT_FIT_RANK", options.rank.last ? "last" : std::to_string(options.rank.number)},
      {"CUFIT_FIT_SENT", options.sent.empty() ? std::nullopt : std::optional(options.sent)},
      {"CUFIT_FIT_PLACED", std::nullopt},
      {"CUFIT_FIT_DEVICES", std::nullopt},
      {"PATH", folder.search_path()},
      {"CUFIT_FIT_VARIANT",
       options.variant.empty() ? std::nullopt : std::optional(options.variant)},
      {"CUFIT_FIT_FUNCTION",
       options.function.empty() ? std::nullopt : std::optional(options.function)},
      {"CUFIT_FIT_MODEL", options.model.empty() ? std::nullopt : std::optional(options.model)},
  };
  // A shell in a pod has those of its own rank. What was asked for goes before them.
  if (options.world.value_or(0) != 0)
    for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE"}) out.push_back({name, std::nullopt});
  return out;
}

// A program, the folder that it is given, and what came of it.
class Tracing {
 public:
  static Result<std::unique_ptr<Tracing>> make(const TraceOptions& options) {
    CUFIT_TRY(folder, ScriptFolder::make("fit", fit_tracer(), {"scratch", "bin"}));
    std::unique_ptr<Tracing> out(new Tracing(options, std::move(folder)));
    if (Result<void> filled = out->fill_folder(); !filled) return filled.error();
    out->set_child();
    return out;
  }

  const ChildOptions& child() const { return child_; }

  TracedRun run(ChildOutcome outcome) const {
    TracedRun run;
    run.exit_code = outcome.code;
    run.timed_out = outcome.timed_out;
    run.progress = progress_of(read_small(progress_file(folder_)));
    // Open, it can be read after the folder is gone.
    if (Result<std::unique_ptr<ByteSource>> opened = RealHost().open(event_file_))
      run.events = std::move(*opened);
    run.said = std::move(outcome.err);
    run.seconds = outcome.seconds;
    run.peak_bytes = outcome.peak_bytes;
    return run;
  }

 private:
  Tracing(const TraceOptions& options, ScriptFolder folder)
      : options_(options),
        folder_(std::move(folder)),
        event_file_(options.event_file.empty() ? folder_.path() + "/events" : options.event_file),
        idle_(progress_file(folder_) + ".beat",
              static_cast<double>(options.idle_seconds) + k_traced_run_grace_seconds) {}

  Result<void> fill_folder() {
    if (Result<void> added = folder_.add("no_accelerator.so", fit_no_accelerator()); !added)
      return added;
    for (const char* launcher : {"srun", "sbatch", "scontrol", "mpirun", "mpiexec"})
      if (Result<void> added = folder_.add_program(launcher, fit_rank_shim()); !added)
        return added;
    if (options_.model.empty()) return {};
    return folder_.add("model.py", fit_model_program());
  }

  void set_child() {
    unlink(event_file_.c_str());
    child_.command = options_.command;
    if (!options_.function.empty()) child_.command.push_back(folder_.script());
    if (!options_.model.empty()) child_.command.push_back(folder_.path() + "/model.py");
    child_.variables = variables_of(options_, folder_, event_file_);
    child_.pass_on = true;
    child_.leave_none = true;
    if (options_.seconds > 0)
      child_.seconds = static_cast<double>(options_.seconds) + k_traced_run_grace_seconds;
    if (options_.idle_seconds > 0)
      child_.gives_up = [this](double seconds) { return idle_.is_over(seconds); };
    if (options_.watch)
      child_.tick = [this](double seconds) {
        options_.watch(seconds, progress_of(read_small(progress_file(folder_))));
      };
  }

  const TraceOptions& options_;
  const ScriptFolder folder_;
  const std::string event_file_;
  IdleTime idle_;
  ChildOptions child_;
};

}  // namespace

Result<std::vector<TracedRun>> traced_runs(std::span<const TraceOptions> options,
                                           Interrupts& interrupts) {
  std::vector<std::unique_ptr<Tracing>> all;
  std::vector<ChildOptions> children;
  for (const TraceOptions& one : options) {
    CUFIT_TRY(tracing, Tracing::make(one));
    children.push_back(tracing->child());
    all.push_back(std::move(tracing));
  }
  CUFIT_TRY(outcomes, run_children(children, interrupts));
  std::vector<TracedRun> out;
  for (size_t i = 0; i < all.size(); ++i) out.push_back(all[i]->run(std::move(outcomes[i])));
  return out;
}

Result<TracedRun> traced_run(const TraceOptions& options, Interrupts& interrupts) {
  CUFIT_TRY(all, traced_runs({&options, 1}, interrupts));
  return std::move(all.front());
}

}  // namespace cufit::host
