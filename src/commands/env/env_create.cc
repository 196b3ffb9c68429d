// SPDX-License-Identifier: Apache-2.0
// `cufit env create`: each environment is made beside the one that is there, read as doctor reads
// it, and moved into place only when it is what the lock says.

#include <algorithm>
#include <cstdio>

#include "base/format.h"
#include "base/shell_word.h"
#include "commands/env/env.h"
#include "commands/settings.h"
#include "commands/resolve/targets.h"
#include "formats/python/index_config.h"
#include "formats/toml_text.h"
#include "host/files/paths.h"
#include "host/install/index_client.h"
#include "host/install/installer.h"
#include "host/probe.h"
#include "host/process/this_process.h"
#include "report/terminal/mem_words.h"
#include "report/resolve.h"
#include "resolve/lock/lock_check.h"

namespace cufit::commands {
namespace {

using knowledge::Knowledge;

constexpr Option k_env_create_options[] = {
    {"CLASS", "", "", true, ""},      {"--lock", "DIR", "", false, ""},
    {"--force", "", "", false, ""},   {"--index", "URL", "", true, ""},
    {"--offline", "", "", false, ""}, {"--policy", "FILE", "", false, ""},
    {"--json", "", "", false, ""},    {"--installer", "TOOL", "", false, "uv pip conda pixi"},
};

struct Job {
  const FoundLock& found;
  host::Installer installer;             // of the packages
  std::optional<host::Installer> maker;  // conda or pixi, where it makes the environment
  bool has_installer = false;
  host::IndexChoice index;
  resolve::Policy policy;
  bool show = false;
  std::string cache;  // of the installer
};

// Refuses only what cannot work: files that lie in the cache already need no room there.
Result<void> check_space(const Job& job, const resolve::LockClass& one,
                         const host::EnvironmentPaths& paths) {
  const std::optional<host::Space> here = host::space_at(paths.envs);
  const std::optional<host::Space> cache =
      job.cache.empty() ? std::nullopt : host::space_at(job.cache);
  if (!here) return {};
  const bool linked = cache && cache->device == here->device;
  if (here->free_bytes >= one.download_bytes) return {};
  const std::string text =
      format("{} to download, {} free in `{}`", report::gib(one.download_bytes),
             report::gib(here->free_bytes), paths.envs);
  if (!linked) return fail(Code::io, text + "; nothing was begun");
  print_error(format("class {}: ", one.name) + text +
              "; it will do only where most of it is in the installer's cache already");
  return {};
}

// The sums were compared when the files came; an installer's cache is not read again when it is
// linked from, so that a file that was cut off there would be in every environment to come.
Error damaged(const host::Installer& installer, const std::string& said) {
  if (installer.kind != host::Installer::Kind::uv)
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

Result<report::EnvRow> create(const Job& job, const resolve::LockClass& one,
                              const host::EnvironmentPaths& paths, host::Interrupts& interrupts) {
  CUFIT_TRY(lock, read_pylock(job.found, one));
  if (Result<void> room = check_space(job, one, paths); !room) return room.error();
  const Partial partial(paths.partial);
  host::InstallRequest request;
  request.folder = paths.partial;
  request.final_folder = paths.folder;
  request.python = one.python;
  request.pylock = job.found.folder + "/" + one.file;
  request.index = job.index;
  request.show = job.show;
  request.in_conda = job.maker.has_value();
  const bool with_pip = job.installer.kind == host::Installer::Kind::pip;
  const Result<void> empty =
      job.maker ? host::make_conda_environment(*job.maker, request, with_pip, interrupts)
                : host::make_environment(job.installer, request, interrupts);
  if (!empty) return empty.error();
  if (Result<void> done = host::install(job.installer, request, lock, interrupts); !done)
    return done.error();
  host::ProbeOptions options;
  options.env_dirs = {paths.partial};
  options.driver_calls = false;  // files only: what the machine's GPU says is `env check`'s matter
  const facts::Facts facts = [&] {
    const WithoutUserSite apart;
    return host::collect(host::RealHost(), options);
  }();
  for (const checks::Finding& finding :
       examine_environment(one, lock, paths.partial, facts, job.policy, true)) {
    const Knowledge& knowledge = Knowledge::builtin();
    const std::string said = report::finding_text(finding, "why", language(), knowledge);
    if (finding.severity != checks::Severity::error) {
      print_message(said);
      continue;
    }
    if (is_damage(finding)) return damaged(job.installer, said);
    return fail(Code::malformed, "the new environment is not what was locked: " + said);
  }
  if (interrupts.caught() != 0) return fail(Code::cancelled, "interrupted");
  const host::Usage usage = host::usage_of(paths.partial);
  formats::EnvRecord record;
  record.name = one.name;
  record.pylock = one.file;
  record.pylock_sha256 = one.sha256;
  record.created = host::utc_now();
  record.installer = (job.maker ? job.maker->name() + ", " : std::string()) + job.installer.name();
  if (!facts.envs.empty()) {
    record.python = facts.envs.front().python.value_or(one.python);
    record.torch = facts.envs.front().torch.version.value_or("");
    for (const facts::Distribution& installed : facts.envs.front().distributions.value_or({}))
      if (installed.kind != "conda-meta" && installed.installer != "conda") ++record.packages;
  }
  record.bytes = usage.bytes;
  record.shared_bytes = usage.shared_bytes;
  if (Result<void> done = host::swap_in(paths, record); !done) return done.error();
  report::EnvRow row = env_row(paths, one);
  row.state = "made";
  return row;
}

// Where uv has no index configured but pip has, as in `cufit lock`.
host::IndexChoice index_choice(const Arguments& arguments) {
  host::IndexChoice out;
  out.indexes = arguments.all("index");
  out.offline = arguments.has("offline");
  const host::IndexSettings configured = host::index_settings(host::RealHost(), host::working_folder());
  if (configured.tool != "pip") return out;
  for (const formats::IndexUrl& index : configured.indexes)
    if (index.is_default) out.default_index = index.url;
  return out;
}

bool is_pixi_project(const std::string& path) {
  const Result<std::string> text = host::RealHost().read_file(path, 1u << 20);
  const Result<formats::TomlDocument> document =
      text ? formats::parse_toml(*text, path) : Result<formats::TomlDocument>(text.error());
  if (!document) return false;
  const formats::TomlValue* tool = document->root.find("tool");
  return tool != nullptr && tool->find("pixi") != nullptr;
}

// The tool that `--installer` names, else the one whose project file stands beside the lock; `file`
// says which. Empty: uv, and pip where there is no uv.
std::string tool_asked(const Arguments& arguments, const std::string& folder, std::string& file) {
  if (arguments.has("installer")) return arguments.get("installer");
  const host::RealHost here;
  const auto is_there = [&](const char* name) {
    file = folder + "/" + name;
    return here.exists(file);
  };
  if (is_there("pixi.toml")) return "pixi";
  if (is_there("pyproject.toml") && is_pixi_project(file)) return "pixi";
  if (is_there("environment.yml") || is_there("environment.yaml")) return "conda";
  file.clear();
  return {};
}

Result<void> find_tools(const Arguments& arguments, Job& job, host::Interrupts& interrupts) {
  const host::RealHost here;
  std::string file;
  const std::string tool = tool_asked(arguments, job.found.folder, file);
  using Kind = host::Installer::Kind;
  if (tool == "conda" || tool == "pixi") {
    Result<host::Installer> maker =
        tool == "conda" ? host::find_conda(here, interrupts) : host::find_pixi(here, interrupts);
    const bool absent = !maker && maker.error().code == Code::not_found;
    const bool given = here.variable(tool == "conda" ? "CUFIT_CONDA" : "CUFIT_PIXI").has_value();
    if (!maker && (file.empty() || given || !absent))
      return file.empty() ? maker.error() : std::move(maker.error()).in(file);
    if (maker) job.maker = std::move(*maker);
    if (!maker)
      print_error(
          format("{} is not found, though `{}` is there: the environments are made without it",
                 tool, file));
    else if (!file.empty())
      print_error(
          format("the environments' Python comes from {}, as `{}` is there; `--installer uv` "
                 "makes them without",
                 tool, file));
  }
  Result<host::Installer> installer = tool == "pip" ? host::find_pip(here, "", interrupts)
                                      : tool.empty() || (!job.maker && tool != "uv")
                                          ? host::find_installer(here, "", interrupts)
                                          : host::find_uv(here, interrupts);
  const bool absent = !installer && installer.error().code == Code::not_found;
  if (job.maker && absent && !here.variable("CUFIT_UV"))
    installer = host::Installer{Kind::pip, {"pip"}, "", ""};  // its own, asked for with it
  if (!installer) return installer.error();
  job.installer = std::move(*installer);
  job.has_installer = true;
  if (job.installer.kind == Kind::uv) job.cache = host::cache_folder(job.installer, interrupts);
  return {};
}

int failed(const Error& error, const resolve::LockClass& one, const host::EnvironmentPaths& paths,
           const FoundLock& found, const Arguments& arguments) {
  if (error.code == Code::cancelled)
    print_error(format("interrupted while making {}", one.name));
  else
    print_error(format("{}: {}", one.name, formats::without_credentials(error.text())));
  print_error(host::RealHost().exists(paths.folder)
                  ? format("`{}` is as it was before", paths.folder)
                  : format("nothing is left of `{}`", paths.folder));
  print_error(format("to try again: cufit env create --lock {}{} {}", shell_word(found.folder),
                     arguments.has("installer") ? " --installer " + arguments.get("installer") : "",
                     one.name));
  return error.code == Code::cancelled ? k_interrupted : k_failed;
}

int create_all(const Arguments& arguments, const FoundLock& found,
               const std::vector<size_t>& chosen) {
  host::Interrupts interrupts;
  Job job{found, {}, {}, false, index_choice(arguments), {}, false, {}};
  Result<resolve::Policy> policy = read_policy(legacy_context(), arguments.get("policy"), found.folder);
  if (!policy) return exit_code_for(policy.error());
  job.policy = std::move(*policy);
  job.show = host::is_terminal(host::Stream::err);
  report::EnvListView view{
      "cufit.env.create/1", {}, "env.next_run", lock_option(arguments), Knowledge::builtin()};
  std::optional<host::EnvironmentsLock> held;
  for (const size_t index : chosen) {
    const resolve::LockClass& one = found.lock.classes[index];
    const Result<host::EnvironmentPaths> paths = host::environment_paths(found.folder, one.name);
    if (!paths) return exit_code_for(paths.error());
    if (!held) {
      Result<host::EnvironmentsLock> lock = host::EnvironmentsLock::take(paths->envs);
      if (!lock) return exit_code_for(lock.error());
      held.emplace(std::move(*lock));
      if (const size_t count = host::remove_leftovers(paths->envs); count > 0)
        print_error(count == 1 ? std::string("removed what an interrupted run left behind")
                               : format("removed what {} interrupted runs left behind", count));
    }
    report::EnvRow row = env_row(*paths, one);
    if (row.state == "foreign")
      return exit_code_for(fail(
          Code::usage, format("`{}` was not made by cufit: move it away first", paths->folder)));
    if (row.state == "damaged" && !arguments.has("force"))
      return exit_code_for(fail(
          Code::malformed,
          format("{}; the environment beside it cannot be told from another lock's; to make it "
                 "anew: cufit env create --force {}{}",
                 row.why, one.name, lock_option(arguments))));
    for (const auto& reasons :
         {resolve::forbids(job.policy, one.wheel), resolve::forbids_python(job.policy, one.python)})
      if (!reasons.empty())
        return exit_code_for(
            fail(Code::malformed,
                 format("class {}: {}", one.name,
                        report::reason_text(reasons.front(), language(), Knowledge::builtin()))));
    if (row.state == "current" && !arguments.has("force")) {
      view.rows.push_back(std::move(row));
      continue;
    }
    if (!job.has_installer)
      if (Result<void> found_tools = find_tools(arguments, job, interrupts); !found_tools)
        return failed(found_tools.error(), one, *paths, found, arguments);
    Result<report::EnvRow> made = create(job, one, *paths, interrupts);
    if (!made) return failed(made.error(), one, *paths, found, arguments);
    view.rows.push_back(std::move(*made));
  }
  return print(
      arguments.has("json") ? env_list_json(view) : env_list_text(view, style_for(arguments)),
      k_ok);
}

}  // namespace

std::span<const Option> env_create_options() { return k_env_create_options; }

int run_env_create(const Arguments& arguments) {
  const Result<FoundLock> found = open_lock(arguments);
  if (!found) return exit_code_for(found.error());
  const Result<std::vector<size_t>> chosen = chosen_classes(arguments, found->lock);
  if (!chosen) return exit_code_for(chosen.error());
  return create_all(arguments, *found, *chosen);
}

}  // namespace cufit::commands
