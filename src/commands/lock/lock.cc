// SPDX-License-Identifier: Apache-2.0
#include "commands/lock/lock.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "commands/lock/lock_index.h"
#include "commands/lock/lock_torch.h"
#include "commands/resolve/newer_torch.h"
#include "host/files/atomic_write.h"
#include "host/files/new_folder.h"
#include "host/files/paths.h"
#include "host/install/lock_folder.h"
#include "host/process/this_process.h"
#include "host/python/python_prefix.h"
#include "report/lock.h"
#include "resolve/lock/lock_class.h"

namespace cufit::commands {
namespace {

using knowledge::Knowledge;

constexpr Option k_lock_options[] = {
    option<&LockRequest::requirements>("REQUIREMENT"),
    option<&LockRequest::files>("-r,--requirements", "FILE"),
    option<&LockRequest::extras>("--extra", "NAME"),
    option<&LockRequest::targets>("--for", "TARGET"),
    option<&LockRequest::python>("--python", "3.X"),
    option<&LockRequest::policy>("--policy", "FILE"),
    option<&LockRequest::indexes>("--index", "URL"),
    option<&LockRequest::default_index_only>("--default-index-only"),
    option<&LockRequest::offline>("--offline"),
    option<&LockRequest::upgrade>("--upgrade"),
    option<&LockRequest::out>("-o,--out", "DIR"),
    option<&LockRequest::check>("--check"),
    option<&LockRequest::json>("--json"),
};

// The Python that an environment here would be made with, as "3.11"; empty = none.
std::string python_here(const host::Host& machine) {
  std::vector<std::string> problems;
  for (const host::PythonPrefix& prefix : host::find_python_prefixes(machine, {}, problems))
    if (prefix.interpreter && !prefix.minor_version().empty()) return prefix.minor_version();
  return {};
}

struct Targets {
  std::vector<resolve::Target> all;
  std::vector<std::string> labels;
};

Result<Targets> read_all_targets(const Context& context, const LockJob& job) {
  Targets out;
  for (const std::string& asked : job.targets) {
    CUFIT_TRY(one, read_target(context, asked));
    one.target.label = asked;
    if (lower(asked) == "here") {
      // A machine that is not at hand tomorrow is kept as words where words say it all: a lock is
      // checked on other machines too.
      const std::string words = resolve::description_of(one.target, context.knowledge);
      if (!words.empty()) one.target.label = words;
      // Which Python the machine has now is no demand: the environment brings its own.
      one.target.python.clear();
    }
    out.labels.push_back(one.target.label);
    out.all.push_back(std::move(one.target));
  }
  return out;
}

resolve::Request request_of(const LockJob& job, resolve::Request request) {
  request.requirements = job.inputs.requirements;
  request.pythons = job.inputs.pythons;
  request.policy = job.policy;
  request.default_index_only = job.default_index_only;
  request.python = job.python;
  return request;
}

resolve::Plan plan_for(const Context& context, const LockJob& job, const Targets& targets,
                       resolve::Request request) {
  request = request_of(job, std::move(request));
  if (job.python.empty()) {
    request.python = python_here(context.machine);
    resolve::Plan plan = resolve::plan_classes(targets.all, request, context.knowledge);
    if (plan.failed.empty() && !plan.classes.empty()) return plan;
    request.python.clear();
  }
  return resolve::plan_classes(targets.all, request, context.knowledge);
}

std::string name_of(const resolve::Class& one) {
  const resolve::Wheel& wheel = one.choice.wheel;
  return format("{} ({}), Python {}", wheel.torch, wheel.tag, one.choice.python);
}

bool was_there(const resolve::Plan& plan, const resolve::Wheel& wheel) {
  return std::any_of(plan.classes.begin(), plan.classes.end(), [&](const resolve::Class& one) {
    return one.choice.wheel.torch == wheel.torch && one.choice.wheel.tag == wheel.tag;
  });
}

// Where the indexes lack a wheel of the plan: the best plan of what they have, said in a line. The
// plan stays, and Error{not_found} is returned, where what they have serves nobody.
Result<void> fit_to_indexes(const Context& context, const LockJob& job, const Targets& targets,
                            resolve::Plan& plan, bool& other, host::Interrupts& interrupts) {
  std::optional<IndexLack> lack;  // the first
  resolve::Request request;
  for (resolve::Class& one : plan.classes) {
    CUFIT_TRY(found, index_lack(context, job, one, resolve::uv_platform(plan, one), interrupts));
    if (!found)
      request.beside_index.push_back(one.choice.wheel);
    else if (!lack)
      lack = std::move(found);
  }
  if (!lack) return {};
  request.index = lack->page;
  resolve::Plan next = plan_for(context, job, targets, std::move(request));
  if (!next.failed.empty() || next.classes.empty()) return lack->error;
  std::vector<std::string> taken;
  for (resolve::Class& one : next.classes) {
    CUFIT_TRY(again, index_lack(context, job, one, resolve::uv_platform(next, one), interrupts));
    if (again) return lack->error;
    if (!was_there(plan, one.choice.wheel)) taken.push_back(name_of(one));
  }
  if (taken.empty())  // the same for another Python
    for (const resolve::Class& one : next.classes) taken.push_back(name_of(one));
  context.output.print_error(format("{}; taking the next best that it has: {}",
                                    formats::without_credentials(lack->error.text()),
                                    join(taken, "; ")));
  plan = std::move(next);
  other = true;
  return {};
}

// What came out after the tables were made is judged by its files, once they are there; what has to
// be built is no part of a lock.
void say_newer(const Context& context, const LockJob& job, const resolve::Class& one,
               const formats::Pylock& pylock) {
  for (const resolve::Companion& companion : one.choice.companions) {
    const formats::PylockPackage* locked = formats::find_package(pylock, companion.package);
    if (!companion.newest || locked == nullptr) continue;
    const auto have = formats::parse_python_version(locked->version);
    const auto known = formats::parse_python_version(companion.version);
    if (have && known && formats::compare(*have, *known) > 0)
      context.output.print_error(format(
          "class {}: {} {} is newer than this cufit (tables of {}): `cufit env check` judges "
          "its files",
          one.name, companion.package, locked->version, context.knowledge.date));
  }
  for (const resolve::Companion* apart : built_apart(job, one.choice.companions)) {
    const std::string what = apart->url.empty() ? apart->package + "==" + apart->version
                                                : apart->package + " @ " + apart->url;
    const std::string python = format("{}/.cufit/envs/{}/bin/python", job.folder, one.name);
    const std::string install = "uv pip install --python " + shell_word(python) + " ";
    context.output.print_error(
        format("class {}: no index has a file of {} for it, so it is not in the lock; after `cufit "
               "env create`: `{}`",
               one.name, apart->package,
               apart->url.empty() ? install + "setuptools wheel packaging psutil ninja && " +
                                        install + "--no-build-isolation " + what
                                  : install + shell_word(what)));
  }
}

struct Made {
  resolve::LockFile lock;
  std::vector<std::string> bytes;               // of each class's pylock
  std::vector<uint64_t> unsized;                // of each class, packages of unknown size
  std::vector<std::vector<std::string>> built;  // of each class, packages without a wheel for it
};

Result<Made> resolve_all(const Context& context, const LockJob& job, const Targets& targets,
                         resolve::Plan& plan, bool upgrade, host::Interrupts& interrupts) {
  Made out;
  bool of_index = false;  // not the best that is known, but the best that the index has
  out.lock.created_by = format("cufit {}", CUFIT_VERSION);
  out.lock.requirements = job.inputs.texts;
  out.lock.targets = targets.labels;
  out.lock.asked = job.asked;
  CUFIT_TRY(uv, host::find_uv(context.files, interrupts));
  if (Result<void> fitted = fit_to_indexes(context, job, targets, plan, of_index, interrupts);
      !fitted)
    return fitted.error();
  if (!of_index)
    if (Result<void> chosen =
            let_packages_choose(context, job, uv, request_of(job, {}), plan, upgrade, interrupts);
        !chosen)
      return chosen.error();
  std::set<size_t> asked_again;
  for (size_t i = 0; i < plan.classes.size(); ++i) {
    const resolve::Class& one = plan.classes[i];
    const std::string platform = resolve::uv_platform(plan, one);
    resolve::LockClass row = resolve::lock_class(plan, one, of_index);
    const std::string output =
        format("{}/pylock.{}-cufit-{}.toml", job.folder, one.name, host::process_id());
    if (!upgrade) (void)host::copy_file(job.folder + "/" + row.file, output);
    const ClassToCompile asked = {row.wheel, row.python, platform, one.choice.companions, output};
    Result<CompiledClass> done = compile_class(context.files, job, uv, asked, interrupts);
    if (!done) return std::move(done.error()).in(format("class {}", one.name));
    if (!of_index && asked_again.insert(i).second) {
      CUFIT_TRY(again, meet_torch_extras(context, job, uv, request_of(job, {}), plan, i, asked,
                                         done->pylock, interrupts));
      if (again) {
        --i;
        continue;
      }
    }
    say_newer(context, job, one, done->pylock);
    row.sha256 = sha256(done->bytes);
    resolve::LockedPackages packages = resolve::take_packages(row, done->pylock, platform);
    out.unsized.push_back(packages.unsized);
    out.built.push_back(std::move(packages.built));
    out.lock.classes.push_back(std::move(row));
    out.bytes.push_back(std::move(done->bytes));
  }
  return out;
}

// What differs from what is there; nothing else is touched.
Result<void> write_all(const host::Host& files, const LockJob& job, const host::LockFolder& place,
                       const Made& made, bool& unchanged) {
  const auto same = [&](const std::string& name, const std::string& bytes) {
    const Result<std::string> old = files.read_file(job.folder + "/" + name, size_t{64} << 20);
    return old && *old == bytes;
  };
  std::vector<host::LockedFile> changed;
  for (size_t i = 0; i < made.bytes.size(); ++i)
    if (const std::string& name = made.lock.classes[i].file; !same(name, made.bytes[i]))
      changed.push_back({name, made.bytes[i]});
  const host::LockedFile index{"cufit.lock", resolve::lock_text(made.lock)};
  unchanged = changed.empty() && same(index.name, index.bytes);
  if (unchanged) return {};
  std::vector<std::string> obsolete;
  for (const host::LockedSum& before : job.sums()) {
    const bool kept =
        std::any_of(made.lock.classes.begin(), made.lock.classes.end(),
                    [&](const resolve::LockClass& now) { return now.file == before.name; });
    if (!kept) obsolete.push_back(before.name);
  }
  return place.put(changed, index, obsolete);
}

int too_many(const Context& context, const resolve::Plan& plan) {
  return context.output.exit_code_for(
      fail(Code::usage, format("{} machines, groups of mixed ones counted: one lock is made for {} "
                               "at most; name one machine of each kind",
                               plan.over_limit, resolve::k_most_targets)));
}

int not_resolved(const Output& output, const Error& error, const LockJob& job,
                 host::Interrupts& interrupts) {
  if (error.code == Code::cancelled) {
    output.print_error("interrupted; the lock is as it was");
    return interrupted_exit(interrupts.caught());
  }
  output.print_error(formats::without_credentials(error.text()));
  output.print_error("nothing was written");
  if (contains(error.text(), "does not appear to be a Python project"))
    for (const std::string& file : job.inputs.files) {
      const size_t slash = file.rfind('/');
      const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
      if (host::same_entry(folder, host::working_folder())) continue;
      output.print_error(
          format("a folder such as `-e .` is looked for below the working folder: "
                 "`cd {}`, then the same command with `-r {}`",
                 shell_word(folder), shell_word(file.substr(slash + 1))));
      break;
    }
  // The first wall of a lab without a way to it.
  if (contains(error.text(), "download.pytorch.org"))
    output.print_error(
        job.default_index_only
            ? std::string("PyTorch's own index is not reached: a mirror is set by `pytorch = "
                          "\"URL\"` below `[index]` in cufit.toml")
            : std::string("PyTorch's own index is not reached: `cufit lock --default-index-only` "
                          "does without it, `--index URL` names another; a mirror is set by "
                          "`pytorch = \"URL\"` below `[index]` in cufit.toml"));
  return k_failed;
}

// What the indexes have of torch beyond the tables, where only that can meet what is asked for.
std::unique_ptr<NewerTorch> newer_torch(const Context& context, const LockJob& job,
                                        const resolve::Plan& plan) {
  const bool beyond =
      std::any_of(plan.failed.begin(), plan.failed.end(),
                  [](const resolve::Answer& one) { return !one.beyond_tables.empty(); });
  if (!beyond || job.index.offline) return nullptr;
  std::vector<formats::IndexUrl> indexes = job.given;
  for (const formats::IndexUrl& index : job.configured.indexes)
    if (!index.is_explicit) indexes.push_back(index);
  host::Interrupts interrupts;
  std::vector<HeardPage> pages;
  for (const formats::IndexUrl& index : indexes) {
    Result<host::IndexAnswer> answer =
        host::ask_index(context.files, index.url, "torch", {}, interrupts);
    if (answer) pages.push_back({answer->url, std::move(answer->page)});
    if (!answer && answer.error().code != Code::not_found)
      context.output.print_error(answer.error().text());
  }
  return read_newer_torch(context, pages, job.inputs.requirements, interrupts);
}

int make_lock(const Context& here, const LockRequest& request) {
  const Output& output = here.output;
  std::optional<host::LockFolder> place;
  const auto take = [&]() -> Result<void> {
    CUFIT_TRY(taken, host::LockFolder::take(request.out, host::LockFolder::Hold::alone));
    place.emplace(std::move(taken));
    return {};
  };
  if (host::is_folder(request.out))  // before the old lock is read
    if (Result<void> done = take(); !done) return output.exit_code_for(done.error());
  Result<LockJob> job = read_lock_job(here, request, false);
  if (!job) return output.exit_code_for(job.error());
  if (place) place->recover(job->sums());
  for (const std::string& note : job->notes) output.print_error(note);
  Result<Targets> targets = read_all_targets(here, *job);
  if (!targets) return output.exit_code_for(targets.error());
  resolve::Plan plan = plan_for(here, *job, *targets, {});
  const std::unique_ptr<NewerTorch> newer = newer_torch(here, *job, plan);
  const Context context{here.files, here.machine, newer ? newer->knowledge() : here.knowledge,
                        here.now, here.output};
  if (newer) plan = plan_for(context, *job, *targets, {});
  if (plan.over_limit > 0) return too_many(context, plan);
  if (!plan.failed.empty() || plan.classes.empty()) {
    report::LockFailureView view{plan.failed, context.knowledge};
    for (const resolve::Class& one : plan.classes)
      for (const size_t target : one.targets) view.others.push_back(plan.targets[target].label);
    return output.print(
        request.json ? lock_failure_json(view) : lock_failure_text(view, output.style()),
        k_findings);
  }
  host::NewFolder folder;
  if (Result<void> done = folder.make(job->folder); !done)
    return output.exit_code_for(done.error());
  if (!place)
    if (Result<void> done = take(); !done) return output.exit_code_for(done.error());
  host::Interrupts interrupts;
  const Result<Made> made = resolve_all(context, *job, *targets, plan, request.upgrade, interrupts);
  if (!made) return not_resolved(output, made.error(), *job, interrupts);
  bool unchanged = false;
  if (Result<void> done = write_all(context.files, *job, *place, *made, unchanged); !done)
    return not_resolved(output, done.error(), *job, interrupts);
  folder.keep();
  std::vector<resolve::Fit> fits;
  for (const resolve::Class& one : plan.classes) fits.push_back(one.choice.verdict.fit);
  const report::LockView view{made->lock,    job->folder, unchanged,        std::move(fits),
                              made->unsized, made->built, context.knowledge};
  return output.print(
      request.json ? lock_report_json(view) : lock_report_text(view, output.style()), k_ok);
}

}  // namespace

std::span<const Option> lock_options() { return k_lock_options; }

int run_lock(const Context& context, const LockRequest& request) {
  return request.check ? check_lock(context, request) : make_lock(context, request);
}

}  // namespace cufit::commands
