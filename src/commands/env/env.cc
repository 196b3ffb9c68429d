// SPDX-License-Identifier: Apache-2.0
#include "commands/env/env.h"

#include <algorithm>

#include "base/format.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "host/files/paths.h"
#include "host/install/lock_folder.h"
#include "resolve/lock/lock_check.h"

namespace cufit::commands {
namespace {

constexpr size_t k_env_most_bytes = 64u << 20;

constexpr Option k_env_list_options[] = {
    k_class_option<EnvListRequest>,
    k_lock_option<EnvListRequest>,
    k_env_json_option<EnvListRequest>,
};
constexpr Option k_env_remove_options[] = {
    k_class_option<EnvRemoveRequest>,
    k_lock_option<EnvRemoveRequest>,
    k_env_json_option<EnvRemoveRequest>,
};

int print_rows(const Output& output, const report::EnvListView& view, const EnvRequest& request) {
  return output.print(request.json ? env_list_json(view) : env_list_text(view, output.style()),
                      k_ok);
}

}  // namespace

Result<FoundLock> open_lock(const Context& context, const std::optional<std::string>& asked) {
  CUFIT_TRY(found, find_lock(context, asked, false));
  if (found) return std::move(*found);
  // Projects of other package managers have their own way to make an environment.
  for (const auto& [file, command] :
       {std::pair("pixi.toml", "pixi install"),
        std::pair("environment.yml", "conda env create -f environment.yml")}) {
    const std::string other = host::find_upwards(host::working_folder(), file);
    if (!other.empty())
      return fail(Code::usage,
                  format("no cufit.lock here; `{}` belongs to another package manager, which "
                         "makes its environment itself: `{}`",
                         other, command));
  }
  return fail(Code::usage, "no cufit.lock in this folder or its parents: `cufit lock` makes one");
}

std::string lock_option(const EnvRequest& request) {
  return request.lock ? " --lock " + shell_word(*request.lock) : std::string();
}

Result<std::vector<size_t>> chosen_classes(const std::vector<std::string>& asked,
                                           const resolve::LockFile& lock) {
  std::vector<std::string> names;
  for (const resolve::LockClass& one : lock.classes) names.push_back(one.name);
  std::vector<size_t> out;
  for (const std::string& name : asked) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end())
      return fail(Code::usage,
                  format("no class `{}` in `{}`; it has {}", name, lock.path, join(names, ", ")));
    out.push_back(static_cast<size_t>(found - names.begin()));
  }
  if (out.empty())
    for (size_t i = 0; i < names.size(); ++i) out.push_back(i);
  return out;
}

Result<formats::Pylock> read_pylock(const host::Host& files, const FoundLock& found,
                                    const resolve::LockClass& one) {
  const std::string path = found.folder + "/" + one.file;
  CUFIT_TRY(bytes,
            host::read_locked(files, found.folder, {one.file, one.sha256}, k_env_most_bytes));
  if (sha256(bytes) != one.sha256)
    return fail(Code::malformed,
                format("`{}` is not what was locked (its SHA-256 differs from cufit.lock): `cufit "
                       "lock --check -o {}` says more",
                       path, shell_word(found.folder)));
  CUFIT_TRY(lock, formats::parse_pylock(bytes, path));
  // Said before gigabytes are installed that could only be thrown away.
  if (const std::string other = resolve::other_torch(one, lock); !other.empty())
    return fail(Code::malformed,
                format("`{}` holds torch {}, cufit.lock says {}+{}: one of them was edited; `cufit "
                       "lock -o {}` makes both again",
                       path, other, one.wheel.torch, one.wheel.tag, shell_word(found.folder)));
  return lock;
}

report::EnvRow env_row(const host::Host& files, const host::EnvironmentPaths& paths,
                       const resolve::LockClass& one) {
  report::EnvRow row;
  row.name = one.name;
  row.folder = paths.folder;
  const bool there = files.exists(paths.folder);
  const Result<formats::EnvRecord> record = host::read_record(paths);
  if (!there) {
    row.state = "absent";
    return row;
  }
  if (!record) {
    const bool foreign = record.error().code == Code::not_found;
    row.state = foreign ? "foreign" : "damaged";
    if (!foreign) row.why = record.error().text();
    return row;
  }
  // Without its interpreter it is made again: `run` refuses it, too.
  const bool whole = files.exists(paths.folder + "/bin/python");
  row.state = !whole ? "broken" : record->pylock_sha256 == one.sha256 ? "current" : "outdated";
  row.python = record->python;
  row.torch = record->torch;
  row.installer = record->installer;
  row.created = record->created;
  row.packages = record->packages;
  row.bytes = record->bytes;
  row.shared_bytes = record->shared_bytes;
  return row;
}

std::span<const Option> env_list_options() { return k_env_list_options; }
std::span<const Option> env_remove_options() { return k_env_remove_options; }

int run_env_list(const Context& context, const EnvListRequest& request) {
  const Output& output = context.output;
  const Result<FoundLock> found = open_lock(context, request.lock);
  if (!found) return output.exit_code_for(found.error());
  const Result<std::vector<size_t>> chosen = chosen_classes(request.classes, found->lock);
  if (!chosen) return output.exit_code_for(chosen.error());
  report::EnvListView view{"cufit.env.list/1", {}, "", lock_option(request), context.knowledge};
  for (const size_t index : *chosen) {
    const resolve::LockClass& one = found->lock.classes[index];
    const Result<host::EnvironmentPaths> paths = host::environment_paths(found->folder, one.name);
    if (!paths) return output.exit_code_for(paths.error());
    view.rows.push_back(env_row(context.files, *paths, one));
    const std::string& state = view.rows.back().state;
    if (state != "current" && state != "foreign") view.next = "env.next_create";
  }
  for (const report::EnvRow& row : view.rows)  // before the others: `create` stops at it
    if (row.state == "damaged") {
      view.at = " --force " + row.name + lock_option(request);
      break;
    }
  return print_rows(output, view, request);
}

int run_env_remove(const Context& context, const EnvRemoveRequest& request) {
  const Output& output = context.output;
  const Result<FoundLock> found = open_lock(context, request.lock);
  if (!found) return output.exit_code_for(found.error());
  if (request.classes.empty())
    return output.exit_code_for(fail(Code::usage, "`cufit env remove` needs the names of classes"));
  const Result<std::vector<size_t>> chosen = chosen_classes(request.classes, found->lock);
  if (!chosen) return output.exit_code_for(chosen.error());
  report::EnvListView view{"cufit.env.remove/1", {}, "", "", context.knowledge};
  host::Interrupts interrupts;
  for (const size_t index : *chosen) {
    const resolve::LockClass& one = found->lock.classes[index];
    const Result<host::EnvironmentPaths> paths = host::environment_paths(found->folder, one.name);
    if (!paths) return output.exit_code_for(paths.error());
    report::EnvRow row = env_row(context.files, *paths, one);
    if (row.state != "absent" || context.files.exists(paths->record)) {
      const Result<host::EnvironmentsLock> lock = host::EnvironmentsLock::take(paths->envs);
      if (!lock) return output.exit_code_for(lock.error());
      if (const Result<void> done = host::remove_environment(*paths); !done)
        return output.exit_code_for(done.error());
      row = report::EnvRow{one.name, "removed", paths->folder};
    }
    view.rows.push_back(std::move(row));
  }
  return print_rows(output, view, request);
}

}  // namespace cufit::commands
