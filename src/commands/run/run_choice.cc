// SPDX-License-Identifier: Apache-2.0
#include "commands/run/run_choice.h"

#include <cstdlib>

#include "commands/run/find_live_target.h"
#include "base/format.h"
#include "base/nearest.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "commands/resolve/targets.h"
#include "host/files/paths.h"
#include "host/install/environments.h"
#include "host/install/ownership.h"
#include "host/files/atomic_write.h"
#include "host/process/this_process.h"

namespace cufit::commands {
namespace {

using knowledge::Knowledge;
using report::RunGroup;
using report::RunRefusal;
using resolve::LiveTarget;
using resolve::LockClass;
using resolve::LockFile;
using resolve::Routing;

constexpr const char* k_run_choice_lock_name = "cufit.lock";

}  // namespace

// What an edited row says of hardware may be anything: nothing is chosen or made by it.
Result<void> verify_lock_checksum(const LockFile& lock, const std::string& path,
                                  const std::string& folder) {
  if (!lock.edited) return {};
  return fail(Code::malformed,
              format("`{}` is not as `cufit lock` wrote it (its own SHA-256 differs); `cufit lock "
                     "-o {}` makes it again",
                     path, shell_word(folder)));
}

void warn_missing_checksum(const Context& context, const LockFile& lock, const std::string& path,
                           const std::string& folder) {
  if (lock.summed) return;
  context.output.print_error(
      format("`{}` has no sum of its own, so whether it was edited cannot be told; `cufit lock -o "
             "{}` writes one",
             path, shell_word(folder)));
}

namespace {

Result<FoundLock> load_lock(const host::Host& files, const std::string& path) {
  CUFIT_TRY(real, files.real_path(path));
  CUFIT_TRY(text, files.read_file(real, size_t{4} << 20));
  CUFIT_TRY(lock, resolve::parse_lock(text, path));
  const std::string folder = normal_folder(real);
  if (Result<void> same = verify_lock_checksum(lock, path, folder); !same) return same.error();
  return FoundLock{folder, std::move(lock), false};
}

// Classes that the policy allows take part; the others have its reasons for a verdict.
Routing route_allowed(const LockFile& lock, const resolve::Target& target,
                      const resolve::Policy& policy, const Knowledge& knowledge) {
  LockFile allowed = lock;
  allowed.classes.clear();
  std::vector<size_t> places;
  Routing out;
  for (size_t i = 0; i < lock.classes.size(); ++i) {
    std::vector<resolve::Reason> reasons = resolve::forbids(policy, lock.classes[i].wheel);
    for (resolve::Reason& reason : resolve::forbids_python(policy, lock.classes[i].python))
      reasons.push_back(std::move(reason));
    out.verdicts.push_back({reasons.empty() ? resolve::Fit::unknown : resolve::Fit::no, reasons});
    if (!reasons.empty()) continue;
    allowed.classes.push_back(lock.classes[i]);
    places.push_back(i);
  }
  Routing routed = resolve::route(allowed, target, knowledge);
  for (size_t i = 0; i < places.size(); ++i)
    out.verdicts[places[i]] = std::move(routed.verdicts[i]);
  if (routed.chosen != Routing::npos) out.chosen = places[routed.chosen];
  return out;
}

// "CUDA_VISIBLE_DEVICES=..." of all visible GPUs of these kinds; empty where they cannot be named.
std::string variables_for(const LiveTarget& live, const std::vector<resolve::TargetGpu>& kinds) {
  std::vector<std::string> uuids, numbers;
  size_t wanted = 0;
  for (const resolve::VisibleGpu& gpu : live.gpus) {
    bool inside = false;
    for (const resolve::TargetGpu& kind : kinds)
      inside = inside || (gpu.name == kind.name && gpu.cc && *gpu.cc == kind.cc);
    if (!inside) continue;
    ++wanted;
    if (!gpu.uuid.empty()) uuids.push_back(gpu.uuid);
    if (gpu.number) numbers.push_back(std::to_string(*gpu.number));
  }
  if (wanted > 0 && uuids.size() == wanted) return "CUDA_VISIBLE_DEVICES=" + join(uuids, ",");
  if (wanted > 0 && numbers.size() == wanted)
    return "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=" + join(numbers, ",");
  return {};
}

// One group per class that some kind of GPU alone is served by, and one for those that none serves.
std::vector<RunGroup> groups_of(const LockFile& lock, const LiveTarget& live,
                                const resolve::Policy& policy, const Knowledge& knowledge) {
  std::vector<size_t> classes;  // in the order of the GPUs
  std::vector<std::vector<resolve::TargetGpu>> kinds;
  for (const resolve::TargetGpu& gpu : live.target.gpus) {
    const size_t chosen =
        route_allowed(lock, resolve::with_gpus(live.target, {gpu}), policy, knowledge).chosen;
    size_t at = 0;
    while (at < classes.size() && classes[at] != chosen) ++at;
    if (at == classes.size()) {
      classes.push_back(chosen);
      kinds.emplace_back();
    }
    kinds[at].push_back(gpu);
  }
  std::vector<RunGroup> out;
  for (size_t i = 0; i < classes.size(); ++i) {
    RunGroup group;
    group.gpus = resolve::gpus_text(resolve::with_gpus(live.target, kinds[i]));
    if (classes[i] != Routing::npos) {
      group.class_name = lock.classes[classes[i]].name;
      group.variables = variables_for(live, kinds[i]);
    }
    out.push_back(std::move(group));
  }
  return out;
}

// The command that locks anew for the same targets and a machine without a GPU.
std::string with_cpu_class(const FoundLock& found) {
  std::string out = "cufit lock";
  for (const std::string& target : found.lock.targets)
    if (target != "cpu") out += " --for " + shell_word(target);
  return out + " --for cpu -o " +
         (host::working_folder() == found.folder ? std::string(".") : shell_word(found.folder));
}

bool has_cpu_class(const LockFile& lock) {
  for (const LockClass& one : lock.classes)
    if (one.wheel.is_cpu()) return true;
  return false;
}

RunRefusal nothing_fits(const FoundLock& found, const RunChoice& choice,
                        const resolve::Policy& policy, const Knowledge& knowledge) {
  RunRefusal out;
  out.args["lock"] = found.lock.path;
  if (choice.live.target.gpus.size() > 1 && choice.live.target.unknown_gpus.empty()) {
    out.groups = groups_of(found.lock, choice.live, policy, knowledge);
    for (const RunGroup& group : out.groups)
      if (!group.class_name.empty()) out.id = "groups";
    if (!out.id.empty()) return out;
    out.groups.clear();
  }
  if (choice.live.sight == LiveTarget::Sight::none && !found.lock.classes.empty() &&
      !has_cpu_class(found.lock)) {
    out.id = "no_cpu_class";
    out.next = with_cpu_class(found);
    return out;
  }
  out.id = "no_fit";
  for (size_t i = 0; i < found.lock.classes.size(); ++i)
    for (const resolve::Reason& reason : choice.routing.verdicts[i].reasons) {
      out.reasons.emplace_back(found.lock.classes[i].name, reason);
      break;  // the decisive one
    }
  out.next = "cufit resolve";
  return out;
}

// nullopt = nothing would be run that is another user's.
std::optional<RunRefusal> foreign(const host::Host& files, const FoundLock& found,
                                  const std::string& class_name) {
  const std::optional<host::ForeignOwner> foreign =
      host::foreign_owner(files, found.folder, found.named, class_name);
  if (!foreign) return std::nullopt;
  RunRefusal out;
  out.id = "foreign_owner";
  out.args = {{"path", foreign->path}, {"owner", foreign->owner}};
  out.next =
      "export CUFIT_SAFE_DIRECTORY=" + shell_word(host::with_safe_directory(files, found.folder));
  return out;
}

// nullopt = it is there and made from this very lock.
Result<std::optional<RunRefusal>> environment_of(const FoundLock& found, const LockClass& one,
                                                 std::string& folder) {
  CUFIT_TRY(paths, host::environment_paths(found.folder, one.name));
  folder = paths.folder;
  RunRefusal out;
  out.args = {{"class", one.name}, {"env", folder}};
  out.next = create_command(found.folder, one.name);
  if (!host::path_exists(folder)) {
    out.id = "env_missing";
    return std::optional<RunRefusal>(std::move(out));
  }
  const Result<formats::EnvRecord> record = host::read_record(paths);
  if (!record || !host::may_run(folder + "/bin/python")) {
    out.id = "env_broken";
    out.args["why"] = record ? "bin/python" : record.error().text();
    const bool foreign = !record && record.error().code == Code::not_found;
    if (!record && !foreign) out.next += " --force";
    if (foreign)  // `create` does not touch what it did not make
      out.next =
          format("mv {} {} && {}", shell_word(folder), shell_word(folder + ".old"), out.next);
    return std::optional<RunRefusal>(std::move(out));
  }
  if (record->pylock_sha256 == one.sha256) return std::optional<RunRefusal>();
  out.id = "env_stale";
  out.args["created"] = record->created;
  return std::optional<RunRefusal>(std::move(out));
}

Result<size_t> class_named(const LockFile& lock, const std::string& name) {
  std::vector<std::string> names;
  for (size_t i = 0; i < lock.classes.size(); ++i) {
    if (lock.classes[i].name == name) return i;
    names.push_back(lock.classes[i].name);
  }
  const std::vector<std::string> close = nearest(name, names, 1);
  return fail(Code::usage, format("`--env {}`: {} has {}{}", name, lock.path, join(names, ", "),
                                  close.empty() ? "" : format("; did you mean `{}`?", close[0])));
}

}  // namespace

Result<std::optional<FoundLock>> find_lock(const Context& context,
                                           const std::optional<std::string>& asked, bool quiet) {
  std::string path = asked.value_or("");
  const std::string from_variable = context.files.variable("CUFIT_LOCK").value_or("");
  const bool named = !path.empty() || !from_variable.empty();
  if (path.empty()) path = from_variable;
  if (!named) path = host::find_upwards(host::working_folder(), k_run_choice_lock_name);
  if (path.empty()) return std::optional<FoundLock>();
  if (host::is_folder(path)) path += std::string("/") + k_run_choice_lock_name;
  CUFIT_TRY(found, load_lock(context.files, path));
  found.named = named;
  if (!quiet) warn_missing_checksum(context, found.lock, path, found.folder);
  return std::optional<FoundLock>(std::move(found));
}

std::string create_command(const std::string& lock_folder, const std::string& class_name) {
  std::string out = "cufit env create " + shell_word(class_name);
  if (host::working_folder() != lock_folder) out += " --lock " + shell_word(lock_folder);
  return out;
}

Result<RunChoice> choose_class(const Context& context, const FoundLock& found,
                               const std::string& asked_class, const resolve::Policy& policy) {
  const Knowledge& knowledge = context.knowledge;
  RunChoice out;
  out.asked_for = !asked_class.empty();
  if (out.asked_for) {
    CUFIT_TRY(index, class_named(found.lock, asked_class));
    out.index = index;
  }
  out.refusal = foreign(context.files, found, "");
  if (out.refusal) return out;
  LiveOptions options;
  options.may_ask_driver = !out.asked_for;
  out.live = find_live_target(context.machine, options, knowledge);
  const bool told =
      out.live.sight == LiveTarget::Sight::gpus || out.live.sight == LiveTarget::Sight::none;
  if (!told && !out.asked_for) {
    out.refusal = RunRefusal{"unclear", {}, {}, {}, "cufit doctor"};
    return out;
  }
  out.routing = route_allowed(found.lock, out.live.target, policy, knowledge);
  std::vector<resolve::Reason> forbidden = resolve::forbids(policy, out.live.target, knowledge);
  if (out.asked_for) {
    for (resolve::Reason& reason : resolve::forbids(policy, found.lock.classes[out.index].wheel))
      forbidden.push_back(std::move(reason));
    for (resolve::Reason& reason :
         resolve::forbids_python(policy, found.lock.classes[out.index].python))
      forbidden.push_back(std::move(reason));
    if (!told) out.routing.verdicts.clear();
  } else {
    out.index = out.routing.chosen;
  }
  if (!forbidden.empty()) {
    out.refusal = RunRefusal{"policy", {{"file", policy.file}}, {}, {}, "cufit resolve"};
    for (resolve::Reason& reason : forbidden)
      out.refusal->reasons.emplace_back("", std::move(reason));
    return out;
  }
  if (out.index == Routing::npos) {
    out.refusal = nothing_fits(found, out, policy, knowledge);
    return out;
  }
  out.refusal = foreign(context.files, found, found.lock.classes[out.index].name);
  if (out.refusal) return out;
  CUFIT_TRY(refusal, environment_of(found, found.lock.classes[out.index], out.env));
  out.refusal = std::move(refusal);
  return out;
}

}  // namespace cufit::commands
