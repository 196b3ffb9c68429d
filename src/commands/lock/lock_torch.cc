// SPDX-License-Identifier: Apache-2.0
#include "commands/lock/lock_torch.h"

#include <algorithm>

#include "base/format.h"
#include "host/files/paths.h"
#include "host/process/this_process.h"
#include "resolve/lock/lock_class.h"

namespace cufit::commands {
namespace {

// What the installer takes for a class when torch is open, and with the class's own torch.
struct TwoWays {
  std::string torch;  // that the packages want
  // Of what is asked for and would be older with the class's torch: "vllm 0.33.0", "vllm 0.2.5".
  std::vector<std::string> newer, older;
};

std::string release_of(const std::string& version) { return version.substr(0, version.find('+')); }

std::string version_in(const formats::Pylock& lock, const std::string& name) {
  const formats::PylockPackage* package = formats::find_package(lock, name);
  return package == nullptr ? std::string() : release_of(package->version);
}

// "0.2.5 of 2023-12-14" where the index tells.
std::string dated(const formats::Pylock& lock, const std::string& name) {
  const formats::PylockPackage* package = formats::find_package(lock, name);
  if (package == nullptr) return name;
  const std::string day = formats::uploaded(*package);
  return name + " " + release_of(package->version) + (day.empty() ? "" : " of " + day);
}

bool is_older(const std::string& a, const std::string& b) {
  const auto x = formats::parse_python_version(a), y = formats::parse_python_version(b);
  return x && y && formats::compare(*x, *y) < 0;
}

// The file of the old lock for the same machines; empty: there is none.
std::string old_pylock(const LockJob& job, const resolve::Plan& plan, const resolve::Class& one) {
  if (!job.old || one.targets.empty()) return {};
  const std::string& label = plan.targets[one.targets.front()].label;
  for (const resolve::LockClass& row : job.old->classes)
    if (std::find(row.serves.begin(), row.serves.end(), label) != row.serves.end())
      return job.folder + "/" + row.file;
  return {};
}

// nullopt: the class's torch costs nothing, or the installer does not say.
Result<std::optional<TwoWays>> weigh(const Context& context, const LockJob& job,
                                     const host::Installer& uv, const resolve::Plan& plan,
                                     const resolve::Class& one, bool upgrade,
                                     host::Interrupts& interrupts) {
  const resolve::Wheel& wheel = one.choice.wheel;
  const std::string output =
      format("{}/pylock.{}-open-cufit-{}.toml", job.folder, one.name, host::process_id());
  const std::string before = upgrade ? std::string() : old_pylock(job, plan, one);
  if (!before.empty()) (void)host::copy_file(before, output);
  ClassToCompile asked = {
      wheel, one.choice.python, resolve::uv_platform(plan, one), one.choice.companions, output,
      true};
  const Result<CompiledClass> open = compile_class(context.files, job, uv, asked, interrupts);
  if (!open && open.error().code == Code::cancelled) return open.error();
  if (!open) return std::optional<TwoWays>();
  TwoWays out;
  out.torch = version_in(open->pylock, "torch");
  if (out.torch.empty() || out.torch == wheel.torch) return std::optional<TwoWays>();
  asked.torch_is_open = false;
  asked.wheel.on_default_index = asked.wheel.on_default_index || job.given.empty();
  const Result<CompiledClass> fixed = compile_class(context.files, job, uv, asked, interrupts);
  if (!fixed && fixed.error().code == Code::cancelled) return fixed.error();
  for (const formats::Requirement& each : job.inputs.requirements) {
    if (each.name == "torch") continue;
    const std::string newest = version_in(open->pylock, each.name);
    const std::string then = fixed ? version_in(fixed->pylock, each.name) : "";
    if (newest.empty() || (fixed && !is_older(then, newest))) continue;
    out.newer.push_back(each.name + " " + newest);
    if (fixed) out.older.push_back(dated(fixed->pylock, each.name));
  }
  if (out.newer.empty()) return std::optional<TwoWays>();
  return std::optional<TwoWays>(std::move(out));
}

// The class's machines with such a torch ("torch==2.7.1"); nullopt where none of it serves them all.
std::optional<resolve::Choice> choice_of(const Context& context, const resolve::Plan& plan,
                                         const resolve::Class& one, resolve::Request request,
                                         const std::string& torch) {
  const Result<formats::Requirement> demand = formats::parse_requirement(torch);
  if (!demand) return std::nullopt;
  request.requirements.push_back(*demand);
  request.python = one.choice.python;
  std::vector<resolve::Target> targets;
  for (const size_t index : one.targets) targets.push_back(plan.targets[index]);
  resolve::Plan found = resolve::plan_classes(targets, request, context.knowledge);
  if (!found.failed.empty() || found.classes.size() != 1) return std::nullopt;
  return std::move(found.classes.front().choice);
}

std::string labels_of(const resolve::Plan& plan, const resolve::Class& one) {
  std::vector<std::string> labels;
  for (const size_t index : one.targets) labels.push_back(plan.targets[index].label);
  return join(labels, "; ");
}

// "transformers[torch]==4.54.1 depends on torch>=2.1 and you require ...": "torch>=2.1".
std::string demand_in(const std::string& said, const std::string& package) {
  std::string flat;
  for (const std::string_view word : split(said, ' '))
    for (const std::string_view part : split_lines(word))
      if (!trim(part).empty()) flat += std::string(trim(part)) + " ";
  const std::string begins = package + " depends on ";
  const size_t at = flat.find(begins + "torch");
  if (at == std::string::npos) return {};
  const size_t from = at + begins.size();
  std::string demand = flat.substr(from, flat.find(' ', from) - from);
  while (!demand.empty() && (demand.back() == ',' || demand.back() == '.')) demand.pop_back();
  return formats::parse_requirement(demand) ? demand : std::string();
}

bool pins_torch(const LockJob& job) {
  for (const formats::Requirement& one : job.inputs.requirements)
    for (const formats::VersionClause& clause : one.clauses)
      if (one.name == "torch" && starts_with(clause.op, "==")) return true;
  return false;
}

}  // namespace

Result<bool> meet_torch_extras(const Context& context, const LockJob& job,
                               const host::Installer& uv, const resolve::Request& request,
                               resolve::Plan& plan, size_t index, const ClassToCompile& asked,
                               const formats::Pylock& resolved, host::Interrupts& interrupts) {
  for (const knowledge::TorchExtra& row : context.knowledge.torch_extras) {
    const std::string name(row.package), version = version_in(resolved, name);
    if (version.empty()) continue;
    ClassToCompile with_extra = asked;
    with_extra.beside = format("{}[torch]=={}", name, version);
    with_extra.output = format("{}/pylock.{}-extra-cufit-{}.toml", job.folder,
                               plan.classes[index].name, host::process_id());
    const Result<CompiledClass> met = compile_class(context.files, job, uv, with_extra, interrupts);
    if (met) continue;
    if (met.error().code == Code::cancelled) return met.error();
    const std::string demand = demand_in(met.error().what, with_extra.beside);
    if (demand.empty()) continue;  // something else: the class itself was resolved
    const resolve::Class& one = plan.classes[index];
    const std::string torch = one.choice.wheel.torch;
    const std::string because = format("class {}: {} {} works with `{}` (its extra `torch`)",
                                       one.name, name, version, demand);
    std::optional<resolve::Choice> choice = choice_of(context, plan, one, request, demand);
    if (!choice && !pins_torch(job))
      return fail(Code::malformed,
                  format("class {}: {} {} works with `{}` (its extra `torch`), and no wheel of "
                         "such a torch serves {}; ask for an older {} (torch there is {}), or "
                         "leave that machine out",
                         one.name, name, version, demand, labels_of(plan, one), name, torch));
    context.output.print_error(
        choice ? format("{}; taking torch {}", because, choice->wheel.torch)
               : format("{}, and takes the torch {} that is asked for as none", because, torch));
    if (!choice) continue;
    resolve::replace_choice(plan, index, std::move(*choice));
    return true;
  }
  return false;
}

Result<void> let_packages_choose(const Context& context, const LockJob& job,
                                 const host::Installer& uv, const resolve::Request& request,
                                 resolve::Plan& plan, bool upgrade, host::Interrupts& interrupts) {
  const bool others =
      std::any_of(job.inputs.requirements.begin(), job.inputs.requirements.end(),
                  [](const formats::Requirement& one) { return !resolve::is_judged(one); });
  if (!others) return {};
  for (size_t i = 0; i < plan.classes.size(); ++i) {
    const resolve::Class& one = plan.classes[i];
    CUFIT_TRY(ways, weigh(context, job, uv, plan, one, upgrade, interrupts));
    if (!ways) continue;
    const std::string wanted = join(ways->newer, ", "), torch = one.choice.wheel.torch;
    std::optional<resolve::Choice> choice =
        choice_of(context, plan, one, request, "torch==" + ways->torch);
    if (!choice) {
      if (ways->older.empty()) continue;  // no solution at all: the installer tells why
      context.output.print_error(format(
          "class {}: {} wants torch {}, of which no wheel serves {}; with torch {} it is {}",
          one.name, wanted, ways->torch, labels_of(plan, one), torch, join(ways->older, ", ")));
      continue;
    }
    context.output.print_error(
        ways->older.empty()
            ? format("class {}: {} wants torch {}, and there is none of it for torch {}; taking "
                     "torch {}",
                     one.name, wanted, ways->torch, torch, ways->torch)
            : format("class {}: {} wants torch {}; with torch {} it would be {}; taking torch {}",
                     one.name, wanted, ways->torch, torch, join(ways->older, ", "), ways->torch));
    resolve::replace_choice(plan, i, std::move(*choice));
  }
  return {};
}

}  // namespace cufit::commands
