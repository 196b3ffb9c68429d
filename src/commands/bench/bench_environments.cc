// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_environments.h"

#include <algorithm>
#include <optional>

#include "base/format.h"
#include "base/nearest.h"
#include "commands/run/run_choice.h"
#include "host/files/paths.h"
#include "host/install/environments.h"
#include "host/python/python_prefix.h"

namespace cufit::commands {
namespace {

using resolve::BenchEnvironment;

// Each has a CUDA context and a model on the card at once.
constexpr size_t k_most_bench_environments = 16;

void find_interpreter(const Context& context, BenchEnvironment& env) {
  std::vector<std::string> problems;
  host::PythonSearch search;
  search.env_dirs = {env.folder};
  for (const host::PythonPrefix& prefix :
       host::find_python_prefixes(context.machine, search, problems))
    if (prefix.interpreter) env.interpreter = *prefix.interpreter;
  if (env.interpreter.empty())
    env.trouble = {"no_python", problems.empty() ? std::string() : problems.front()};
}

std::vector<std::string> class_names(const FoundLock& found) {
  std::vector<std::string> out;
  for (const resolve::LockClass& one : found.lock.classes) out.push_back(one.name);
  return out;
}

Result<BenchEnvironment> class_environment(const Context& context, const FoundLock& found,
                                           const std::string& name) {
  CUFIT_TRY(paths, host::environment_paths(found.folder, name));
  BenchEnvironment env;
  env.name = name;
  env.is_class = true;
  env.folder = paths.folder;
  if (host::is_folder(paths.folder))
    find_interpreter(context, env);
  else
    env.trouble = {"not_created", create_command(found.folder, name)};
  return env;
}

Result<BenchEnvironment> one_environment(const Context& context, const std::string& asked,
                                         const std::optional<FoundLock>& found) {
  const std::string folder = host::absolute_folders({asked})[0];
  if (host::is_folder(folder)) {
    BenchEnvironment env;
    env.name = asked;
    env.folder = folder;
    find_interpreter(context, env);
    return env;
  }
  if (!found)
    return fail(Code::usage, format("`--env {}`: no such folder, and no cufit.lock here or above "
                                    "has a class of that name",
                                    asked));
  const std::vector<std::string> names = class_names(*found);
  if (std::find(names.begin(), names.end(), asked) != names.end())
    return class_environment(context, *found, asked);
  const std::vector<std::string> close = nearest(asked, names, 1);
  const std::string has =
      format("`--env {}`: {} has {}", asked, found->lock.path, join(names, ", "));
  return fail(Code::usage, close.empty() ? has : format("{}; did you mean `{}`?", has, close[0]));
}

Result<std::vector<BenchEnvironment>> of_lock(const Context& context, const FoundLock& found,
                                              bool cpu) {
  std::vector<BenchEnvironment> out;
  for (const resolve::LockClass& one : found.lock.classes) {
    if (one.wheel.is_cpu() && !cpu) continue;
    CUFIT_TRY(env, class_environment(context, found, one.name));
    out.push_back(std::move(env));
  }
  return out;
}

// The first that the shell would use.
std::vector<BenchEnvironment> active_environment(const Context& context) {
  std::vector<std::string> problems;
  std::vector<BenchEnvironment> out;
  for (const host::PythonPrefix& prefix :
       host::find_python_prefixes(context.machine, {}, problems)) {
    if (!prefix.interpreter || !out.empty()) continue;
    BenchEnvironment env;
    env.name = env.folder = prefix.path;
    env.interpreter = *prefix.interpreter;
    out.push_back(std::move(env));
  }
  return out;
}

// The same twice shows how far apart two processes of one environment are.
void tell_apart(std::vector<BenchEnvironment>& all) {
  std::vector<std::string> names;
  for (BenchEnvironment& env : all) {
    const auto before = std::count(names.begin(), names.end(), env.name);
    names.push_back(env.name);
    if (before > 0) env.name += format(" ({})", before + 1);
  }
}

}  // namespace

Result<BenchEnvironment> bench_environment(const Context& context, const std::string& asked) {
  CUFIT_TRY(found, find_lock(context, std::nullopt, true));
  return one_environment(context, asked, found);
}

Result<std::vector<BenchEnvironment>> bench_environments(const Context& context,
                                                         const std::vector<std::string>& asked,
                                                         bool cpu) {
  std::vector<BenchEnvironment> out;
  if (asked.size() > k_most_bench_environments)
    return fail(Code::usage, format("`--env`: at most {} of them", k_most_bench_environments));
  CUFIT_TRY(found, find_lock(context, std::nullopt, true));
  for (const std::string& word : asked) {
    CUFIT_TRY(env, one_environment(context, word, found));
    out.push_back(std::move(env));
  }
  if (asked.empty() && found) {
    CUFIT_TRY(all, of_lock(context, *found, cpu));
    // Those that nobody has made are not asked for.
    std::erase_if(all,
                  [](const BenchEnvironment& env) { return env.trouble.kind == "not_created"; });
    out = std::move(all);
    if (out.empty())
      return fail(Code::usage, format("no environment of `{}` is there yet: cufit env create",
                                      found->lock.path));
  }
  if (asked.empty() && !found) out = active_environment(context);
  if (out.empty())
    return fail(Code::usage, "no Python was found here; `--env DIR` names an environment");
  tell_apart(out);
  return out;
}

}  // namespace cufit::commands
