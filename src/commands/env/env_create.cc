// SPDX-License-Identifier: Apache-2.0
// `cufit env create`: each environment is made beside the one that is there, read as doctor reads
// it, and moved into place only when it is what the lock says.

#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/env/env.h"
#include "commands/env/env_tools.h"
#include "commands/resolve/targets.h"
#include "formats/python/index_config.h"
#include "host/files/paths.h"
#include "host/install/index_client.h"
#include "host/install/lock_folder.h"
#include "host/install/ownership.h"
#include "host/probe.h"
#include "host/process/this_process.h"
#include "report/terminal/mem_words.h"
#include "report/resolve.h"
#include "resolve/lock/environment_check.h"

namespace cufit::commands {
namespace {

constexpr Option k_env_create_options[] = {
    k_class_option<EnvCreateRequest>,
    k_lock_option<EnvCreateRequest>,
    option<&EnvCreateRequest::force>("--force"),
    option<&EnvCreateRequest::indexes>("--index", "URL"),
    option<&EnvCreateRequest::offline>("--offline"),
    option<&EnvCreateRequest::policy>("--policy", "FILE"),
    k_env_json_option<EnvCreateRequest>,
    option<&EnvCreateRequest::installer>("--installer", "TOOL", k_env_tools),
};

struct Job {
  const FoundLock& found;
  host::IndexChoice index;
  resolve::Policy policy;
  bool show = false;
  EnvTools tools = {};
  bool has_tools = false;
};

// Refuses only what cannot work: files that lie in the cache already need no room there.
Result<void> check_space(const Output& output, const Job& job, const resolve::LockClass& one,
                         const host::EnvironmentPaths& paths) {
  const std::optional<host::Space> here = host::space_at(paths.envs);
  const std::optional<host::Space> cache =
      job.tools.cache.empty() ? std::nullopt : host::space_at(job.tools.cache);
  if (!here) return {};
  const bool linked = cache && cache->device == here->device;
  if (here->free_bytes >= one.download_bytes) return {};
  const std::string text =
      format("{} to download, {} free in `{}`", report::gib(one.download_bytes),
             report::gib(here->free_bytes), paths.envs);
  if (!linked) return fail(Code::io, text + "; nothing was begun");
  output.print_error(format("class {}: ", one.name) + text +
                     "; it will do only where most of it is in the installer's cache already");
  return {};
}

// The sums were compared when the files came; an installer's cache is not read again when it is
// linked from, so that a file that was cut off there would be in every environment to come.
Error damaged(const host::Installer& installer, const std::string& said) {
  if (installer.kind != EnvTool::uv)
    return fail(Code::malformed, format("the new environment is damaged: {}", said));
  std::string clean;
  for (const std::string& word : installer.command) clean += shell_word(word) + " ";
  return fail(Code::malformed,
              format("the new environment is damaged: {} uv's cache may hold the same file: `{}`",
                     said, clean + "cache clean torch"));
}

// Removed unless it was moved into place.
class Partial {
 public:
  explicit Partial(std::string folder) : folder_(std::move(folder)) { host::remove_tree(folder_); }
  ~Partial() { host::remove_tree(folder_); }
  Partial(const Partial&) = delete;
  Partial& operator=(const Partial&) = delete;

 private:
  std::string folder_;
};

host::InstallRequest install_request(const Job& job, const resolve::LockClass& one,
                                     const host::EnvironmentPaths& paths) {
  host::InstallRequest out;
  out.folder = paths.partial;
  out.final_folder = paths.folder;
  out.python = one.python;
  out.pylock = job.found.folder + "/" + one.file;
  out.index = job.index;
  out.show = job.show;
  out.in_conda = job.tools.maker.has_value();
  return out;
}

Result<void> fill(const Job& job, const host::InstallRequest& request, const formats::Pylock& lock,
                  host::Interrupts& interrupts) {
  const bool with_pip = job.tools.installer.kind == EnvTool::pip;
  const Result<void> empty =
      job.tools.maker
          ? host::make_conda_environment(*job.tools.maker, request, with_pip, interrupts)
          : host::make_environment(job.tools.installer, request, interrupts);
  if (!empty) return empty.error();
  return host::install(job.tools.installer, request, lock, interrupts);
}

// Error{malformed} where the new environment is not what was locked; less is said on stderr. What
// `env check` would call an error in files that are just as locked: the texts of these.
Result<std::vector<std::string>> compare_with_lock(const Context& context, const Job& job,
                                                   const resolve::LockClass& one,
                                                   const formats::Pylock& lock,
                                                   const std::string& folder,
                                                   const facts::Facts& facts) {
  std::vector<std::string> errors;
  for (const checks::Finding& finding :
       resolve::examine_environment(one, lock, folder, resolve::without_gpu(facts), job.policy,
                                    resolve::DoctorPart::errors, context.knowledge)) {
    const std::string said =
        report::finding_text(finding, "why", context.language(), context.knowledge);
    if (finding.severity != checks::Severity::error) {
      context.output.print_message(said);
      continue;
    }
    if (!resolve::is_about_lock(finding) && !resolve::is_damage(finding)) {
      errors.push_back(said);
      continue;
    }
    if (resolve::is_damage(finding)) return damaged(job.tools.installer, said);
    return fail(Code::malformed, "the new environment is not what was locked: " + said);
  }
  return errors;
}

formats::EnvRecord record_of(const Job& job, const resolve::LockClass& one,
                             const facts::Facts& facts, const host::Usage& usage, std::time_t now) {
  formats::EnvRecord record;
  record.name = one.name;
  record.pylock = one.file;
  record.pylock_sha256 = one.sha256;
  record.created = host::utc_text(now);
  record.installer = (job.tools.maker ? job.tools.maker->name() + ", " : std::string()) +
                     job.tools.installer.name();
  if (!facts.envs.empty()) {
    record.python = facts.envs.front().python.value_or(one.python);
    record.torch = facts.envs.front().torch.version.value_or("");
    for (const facts::Distribution& installed : facts.envs.front().distributions.value_or({}))
      if (installed.kind != "conda-meta" && installed.installer != "conda") ++record.packages;
  }
  record.bytes = usage.bytes;
  record.shared_bytes = usage.shared_bytes;
  return record;
}

Result<report::EnvRow> create(const Context& context, const Job& job, const resolve::LockClass& one,
                              const host::EnvironmentPaths& paths, host::Interrupts& interrupts) {
  CUFIT_TRY(lock, read_pylock(context.files, job.found, one));
  if (Result<void> room = check_space(context.output, job, one, paths); !room) return room.error();
  const Partial partial(paths.partial);
  if (Result<void> done = fill(job, install_request(job, one, paths), lock, interrupts); !done)
    return done.error();
  host::ProbeOptions options;
  options.env_dirs = {paths.partial};
  options.driver_calls = false;  // files only: what the machine's GPU says is `env check`'s matter
  options.user_site = false;
  const facts::Facts facts = host::collect(context.files, options);
  CUFIT_TRY(errors, compare_with_lock(context, job, one, lock, paths.partial, facts));
  if (interrupts.caught() != 0) return fail(Code::cancelled, "interrupted");
  const formats::EnvRecord record =
      record_of(job, one, facts, host::usage_of(paths.partial), context.now());
  if (Result<void> done = host::swap_in(paths, record); !done) return done.error();
  report::EnvRow row = env_row(context.files, paths, one);
  row.state = errors.empty() ? "made" : "made_faulty";
  row.why = join(errors, "; ");
  return row;
}

// Where uv has no index configured but pip has, as in `cufit lock`.
host::IndexChoice index_choice(const host::Host& files, const EnvCreateRequest& request) {
  host::IndexChoice out;
  out.indexes = request.indexes;
  out.offline = request.offline;
  const host::IndexSettings configured = host::index_settings(files, host::working_folder());
  if (configured.tool != "pip") return out;
  for (const formats::IndexUrl& index : configured.indexes)
    if (index.is_default) out.default_index = index.url;
  return out;
}

int failed(const Context& context, const Error& error, const resolve::LockClass& one,
           const host::EnvironmentPaths& paths, const FoundLock& found,
           const std::optional<EnvTool>& asked, int signal) {
  const Output& output = context.output;
  if (error.code == Code::cancelled)
    output.print_error(format("interrupted while making {}", one.name));
  else
    output.print_error(format("{}: {}", one.name, formats::without_credentials(error.text())));
  output.print_error(context.files.exists(paths.folder)
                         ? format("`{}` is as it was before", paths.folder)
                         : format("nothing is left of `{}`", paths.folder));
  output.print_error(
      format("to try again: cufit env create --lock {}{} {}", shell_word(found.folder),
             asked ? format(" --installer {}", env_tool_word(*asked)) : "", one.name));
  return error.code == Code::cancelled ? interrupted_exit(signal) : k_failed;
}

// Held from before the first environment is made; what interrupted runs left goes.
Result<host::EnvironmentsLock> take_lock(const Output& output, const std::string& envs) {
  CUFIT_TRY(lock, host::EnvironmentsLock::take(envs));
  if (const size_t count = host::remove_leftovers(envs); count > 0)
    output.print_error(count == 1 ? std::string("removed what an interrupted run left behind")
                                  : format("removed what {} interrupted runs left behind", count));
  return lock;
}

// Why this environment may not be made or replaced.
Result<void> may_be_made(const Context& context, const Job& job, const EnvCreateRequest& request,
                         const resolve::LockClass& one, const report::EnvRow& row) {
  if (row.state == "foreign")
    return fail(Code::usage, format("`{}` was not made by cufit: move it away first", row.folder));
  if (row.state == "damaged" && !request.force)
    return fail(Code::malformed,
                format("{}; the environment beside it cannot be told from another lock's; to make "
                       "it anew: cufit env create --force {}{}",
                       row.why, one.name, lock_option(request)));
  for (const auto& reasons :
       {resolve::forbids(job.policy, one.wheel), resolve::forbids_python(job.policy, one.python)})
    if (!reasons.empty())
      return fail(Code::malformed, format("class {}: {}", one.name,
                                          report::reason_text(reasons.front(), context.language(),
                                                              context.knowledge)));
  return {};
}

// Packages may run code while they are built, and what is made is run later.
Result<void> is_own(const host::Host& files, const FoundLock& found,
                    const std::string& class_name) {
  const auto foreign = host::foreign_owner(files, found.folder, found.named, class_name);
  if (!foreign) return {};
  return fail(Code::no_permission,
              format("`{}` belongs to {}: what that user chose would be installed; if you trust "
                     "that user: export CUFIT_SAFE_DIRECTORY={}",
                     foreign->path, foreign->owner,
                     shell_word(host::with_safe_directory(files, found.folder))));
}

int create_all(const Context& context, const EnvCreateRequest& request, const FoundLock& found,
               const std::vector<size_t>& chosen) {
  const Output& output = context.output;
  host::Interrupts interrupts;
  const Result<resolve::Policy> policy = read_policy(context, request.policy, found.folder);
  if (!policy) return output.exit_code_for(policy.error());
  for (const size_t index : chosen)
    if (Result<void> own = is_own(context.files, found, found.lock.classes[index].name); !own)
      return output.exit_code_for(own.error());
  // An installer reads the files where they belong.
  std::vector<host::LockedSum> sums;
  for (const resolve::LockClass& one : found.lock.classes) sums.push_back({one.file, one.sha256});
  if (Result<void> done = host::recover_lock_folder(found.folder, sums); !done)
    return output.exit_code_for(done.error());
  Job job{found, index_choice(context.files, request), *policy,
          host::is_terminal(host::Stream::err)};
  report::EnvListView view{
      "cufit.env.create/1", {}, "env.next_run", lock_option(request), context.knowledge};
  std::optional<host::EnvironmentsLock> held;
  for (const size_t index : chosen) {
    const resolve::LockClass& one = found.lock.classes[index];
    const Result<host::EnvironmentPaths> paths = host::environment_paths(found.folder, one.name);
    if (!paths) return output.exit_code_for(paths.error());
    if (!held) {
      Result<host::EnvironmentsLock> lock = take_lock(output, paths->envs);
      if (!lock) return output.exit_code_for(lock.error());
      held.emplace(std::move(*lock));
    }
    report::EnvRow row = env_row(context.files, *paths, one);
    if (Result<void> may = may_be_made(context, job, request, one, row); !may)
      return output.exit_code_for(may.error());
    if (row.state == "current" && !request.force) {
      view.rows.push_back(std::move(row));
      continue;
    }
    if (!job.has_tools) {
      Result<EnvTools> tools = find_env_tools(context, request.installer, found.folder, interrupts);
      if (!tools)
        return failed(context, tools.error(), one, *paths, found, request.installer,
                      interrupts.caught());
      job.tools = std::move(*tools);
      job.has_tools = true;
    }
    Result<report::EnvRow> made = create(context, job, one, *paths, interrupts);
    if (!made)
      return failed(context, made.error(), one, *paths, found, request.installer,
                    interrupts.caught());
    view.rows.push_back(std::move(*made));
  }
  const bool faulty =
      std::any_of(view.rows.begin(), view.rows.end(),
                  [](const report::EnvRow& one) { return one.state == "made_faulty"; });
  if (faulty) view.next = "env.next_check";
  return output.print(request.json ? env_list_json(view) : env_list_text(view, output.style()),
                      faulty ? k_findings : k_ok);
}

}  // namespace

std::span<const Option> env_create_options() { return k_env_create_options; }

int run_env_create(const Context& context, const EnvCreateRequest& request) {
  const Result<FoundLock> found = open_lock(context, request.lock);
  if (!found) return context.output.exit_code_for(found.error());
  const Result<std::vector<size_t>> chosen = chosen_classes(request.classes, found->lock);
  if (!chosen) return context.output.exit_code_for(chosen.error());
  return create_all(context, request, *found, *chosen);
}

}  // namespace cufit::commands
