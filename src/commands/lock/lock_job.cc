// SPDX-License-Identifier: Apache-2.0
#include "commands/lock/lock_job.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "checks/torch_env.h"
#include "commands/lock/lock_conflict.h"
#include "host/files/paths.h"
#include "host/files/atomic_write.h"
#include "host/process/this_process.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_lock_bytes = 64u << 20;

Result<std::optional<resolve::LockFile>> old_lock(const host::Host& files,
                                                  const std::string& folder, bool must_exist) {
  const std::string path = folder + "/cufit.lock";
  Result<std::string> text = files.read_file(path, k_most_lock_bytes);
  if (!text && text.error().code == Code::not_found && !must_exist)
    return std::optional<resolve::LockFile>();
  if (!text) return std::move(text.error()).in("--check");
  CUFIT_TRY(lock, resolve::parse_lock(*text, path));
  return std::optional<resolve::LockFile>(std::move(lock));
}

// "-r x" of LockFile::asked -> "x" where the option is "-r".
std::vector<std::string> recorded(const resolve::LockFile& lock, const std::string& option) {
  std::vector<std::string> out;
  for (const std::string& text : lock.asked) {
    if (option.empty() && !starts_with(text, "-")) out.push_back(text);
    if (!option.empty() && starts_with(text, option + " "))
      out.push_back(text.substr(option.size() + 1));
  }
  return out;
}

std::string seen_from(const std::string& file, const std::string& folder) {
  const std::string out = host::relative_path(file, folder);
  return out.empty() ? file : out;
}

Result<void> read_inputs(const host::Host& machine_files, const LockRequest& request,
                         LockJob& job) {
  std::vector<std::string> files = request.files, extras = request.extras,
                           asked = request.requirements;
  job.default_index_only = request.default_index_only;
  CUFIT_TRY(wheels, read_request(request.requirements, request.python));  // for --python
  job.python = wheels.python;
  if (files.empty() && asked.empty() && job.old) {
    for (const std::string& file : recorded(*job.old, "-r"))
      files.push_back(normal_path(path_in(job.folder, file)));
    if (extras.empty()) extras = recorded(*job.old, "--extra");
    asked = recorded(*job.old, "");
    if (job.python.empty())
      for (const std::string& python : recorded(*job.old, "--python")) job.python = python;
    for (const std::string& text : job.old->asked)
      if (text == "--default-index-only") job.default_index_only = true;
  }
  CUFIT_TRY(inputs, read_lock_inputs(machine_files, files, extras, asked, job.python));
  job.inputs = std::move(inputs);
  for (const std::string& file : files) job.asked.push_back("-r " + seen_from(file, job.folder));
  for (const std::string& extra : extras) job.asked.push_back("--extra " + extra);
  if (!job.python.empty()) job.asked.push_back("--python " + job.python);
  if (job.default_index_only) job.asked.push_back("--default-index-only");
  job.asked.insert(job.asked.end(), asked.begin(), asked.end());
  return {};
}

Result<void> read_indexes(const host::Host& files, const LockRequest& request, LockJob& job) {
  for (const std::string& url : request.indexes) {
    formats::IndexUrl index = formats::parse_index_word(url, "--index");
    if (!starts_with(index.url, "http://") && !starts_with(index.url, "https://"))
      return fail(Code::usage, format("`--index {}`: an http or https address is expected",
                                      formats::without_credentials(url)));
    job.index.indexes.push_back(url);
    job.given.push_back(std::move(index));
  }
  job.index.offline = request.offline;
  job.configured = host::index_settings(files, host::working_folder());
  for (const std::string& problem : job.configured.problems) job.notes.push_back(problem);
  if (job.configured.tool != "pip") return {};
  // uv does not read pip's configuration; who has a mirror there means it for both.
  for (const formats::IndexUrl& index : job.configured.indexes) {
    if (index.is_default)
      job.index.default_index = index.url;
    else
      job.index.indexes.push_back(index.url);
    job.notes.push_back(format("uv has no index configured; using pip's {} ({})",
                               formats::without_credentials(index.url), index.from));
  }
  return {};
}

// cufit.toml of the lock's folder and those above it, else of the working folder.
Result<resolve::Policy> policy_of(const Context& context, const LockRequest& request) {
  const std::string real = host::resolved_path(request.out);
  const std::string here = host::working_folder();
  CUFIT_TRY(policy, read_policy(context, request.policy, real.empty() ? here : real));
  if (!policy.file.empty()) return policy;
  return read_policy(context, request.policy, here);
}

// Removed however the work ends.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() { host::remove_file(path_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// torch last: an installer looks first for what stands first.
std::string requirement_lines(const LockJob& job, const std::string& torch,
                              const std::string& beside) {
  std::string out;
  for (const std::string& text : job.inputs.asked) out += text + "\n";
  if (!beside.empty()) out += beside + "\n";
  return out + torch + "\n";
}

bool asks_for(const LockJob& job, const std::string& package) {
  return std::any_of(job.inputs.requirements.begin(), job.inputs.requirements.end(),
                     [&](const formats::Requirement& one) { return one.name == package; });
}

// What goes with the class's torch, as far as it is asked for.
std::string constraint_lines(const LockJob& job, const ClassToCompile& asked) {
  std::string out;
  if (asked.torch_is_open) return out;
  for (const resolve::Companion& one : asked.companions) {
    const bool unknown = !one.beyond.empty() || !one.judged_by.empty();
    if (one.version.empty() || unknown || !asks_for(job, one.package)) continue;
    // Nobody here knows what came after the newest row: what the package says of torch decides.
    const bool open = one.newest && one.origin.empty();
    out += format("{}{}{}\n", one.package, open ? ">=" : "==", one.version);
  }
  if (const auto release = parse_version(asked.wheel.torch);
      release && !checks::takes_numpy2(*release))
    out += "numpy<2\n";
  return out;
}

// What the installer chose must be what cufit judged: a mirror may hold another variant.
Result<void> check_torch(const formats::Pylock& lock, const resolve::Wheel& wheel) {
  const formats::PylockPackage* torch = formats::find_package(lock, "torch");
  const std::string have = torch == nullptr ? "none" : torch->version;
  const size_t plus = have.find('+');
  const std::string local = plus == std::string::npos ? "" : have.substr(plus + 1);
  const bool plain = wheel.on_default_index || (wheel.is_cpu() && wheel.platform != "linux_x86_64");
  if (have.substr(0, plus) == wheel.torch && (local == wheel.tag || (local.empty() && plain)))
    return {};
  return fail(Code::malformed,
              format("the index gives torch {} where {}+{} is meant; name the index that has it by "
                     "--index",
                     have, wheel.torch, wheel.tag));
}

Error no_solution(const host::Installer& uv, const std::vector<std::string>& conflict,
                  const std::string& said) {
  const std::string demands = "`" + join(conflict, "`, `") + "`";
  return fail(
      Code::malformed,
      conflict.size() == 1
          ? format("{} alone cannot be met; {} says:\n{}", demands, uv.name(), said)
          : format("these cannot be met together: {}; {} says:\n{}", demands, uv.name(), said));
}

}  // namespace

std::vector<host::LockedSum> LockJob::sums() const {
  std::vector<host::LockedSum> out;
  if (old)
    for (const resolve::LockClass& one : old->classes) out.push_back({one.file, one.sha256});
  return out;
}

Result<LockJob> read_lock_job(const Context& context, const LockRequest& request, bool must_exist) {
  LockJob job;
  job.folder = request.out;
  CUFIT_TRY(old, old_lock(context.files, job.folder, must_exist));
  job.old = std::move(old);
  if (Result<void> done = read_inputs(context.files, request, job); !done) return done.error();
  job.targets = request.targets;
  if (job.targets.empty() && job.old) job.targets = job.old->targets;
  if (job.targets.empty()) job.targets = {"HERE"};
  if (Result<void> done = read_indexes(context.files, request, job); !done) return done.error();
  CUFIT_TRY(policy, policy_of(context, request));
  job.policy = std::move(policy);
  CUFIT_TRY(mirror, read_index_setting(context, host::working_folder()));
  job.mirror = std::move(mirror);
  if (!job.mirror.default_index.empty()) job.index.default_index = job.mirror.default_index;
  return job;
}

std::vector<const resolve::Companion*> built_apart(const LockJob& job,
                                                   const std::vector<resolve::Companion>& all) {
  std::vector<const resolve::Companion*> out;
  for (const resolve::Companion& one : all)
    if (!one.version.empty() && !one.origin.empty() && asks_for(job, one.package))
      out.push_back(&one);
  return out;
}

Result<CompiledClass> compile_class(const host::Host& files, const LockJob& job,
                                    const host::Installer& uv, const ClassToCompile& asked,
                                    host::Interrupts& interrupts) {
  const resolve::Wheel& wheel = asked.wheel;
  const Temporary pylock(asked.output);
  const Temporary extra(format("{}/.cufit-{}.in", job.folder, host::process_id()));
  const Temporary limits(format("{}/.cufit-{}-constraints.txt", job.folder, host::process_id()));
  // An own index has files of all variants beside each other: the local part tells them apart.
  const bool mirrored = !wheel.on_default_index && job.given.empty() && job.mirror.has_mirror();
  const bool by_index = !wheel.on_default_index && (!job.given.empty() || mirrored);
  const std::string torch = asked.torch_is_open
                                ? "torch<=" + wheel.torch
                                : "torch==" + wheel.torch + (by_index ? "+" + wheel.tag : "");
  const std::string constraints = constraint_lines(job, asked);
  for (const auto& [path, text] :
       {std::pair(extra.path(), requirement_lines(job, torch, asked.beside)),
        std::pair(limits.path(), constraints)})
    if (Result<void> written = host::write_synced(path, text); !written) return written.error();
  host::CompileRequest request;
  request.inputs = job.inputs.files;
  request.inputs.push_back(extra.path());
  request.extras = job.inputs.extras;
  if (!constraints.empty()) request.constraints = limits.path();
  request.python = asked.python;
  request.platform = asked.platform;
  if (!wheel.on_default_index && !by_index && !asked.torch_is_open)
    request.torch_backend = wheel.tag;
  for (const resolve::Companion* one : built_apart(job, asked.companions))
    request.left_out.push_back(one->package);
  request.index = job.index;
  if (mirrored && !asked.torch_is_open)
    request.index.indexes.push_back(job.mirror.pytorch_index_url(wheel.tag));
  request.output = asked.output;
  if (Result<void> done = host::compile(uv, request, interrupts); !done) {
    if (done.error().code != Code::malformed || asked.torch_is_open || !asked.beside.empty())
      return done.error();
    std::vector<std::string> demands;
    for (const std::string_view line : split_lines(constraints)) demands.emplace_back(line);
    demands.push_back(torch);
    for (const formats::Requirement& one : job.inputs.requirements) demands.push_back(one.text);
    std::vector<std::string> conflict =
        package_conflict(uv, std::move(request), std::move(demands), extra.path(), interrupts);
    // Nobody wrote the limits that come with a torch: say whose they are.
    for (std::string& one : conflict)
      if (contains("\n" + constraints, "\n" + one + "\n")) one = torch + "` -> `" + one;
    return conflict.empty() ? done.error() : no_solution(uv, conflict, done.error().what);
  }
  CompiledClass out;
  CUFIT_TRY(bytes, files.read_file(asked.output, k_most_lock_bytes));
  CUFIT_TRY(parsed, formats::parse_pylock(bytes, asked.output));
  if (!asked.torch_is_open)
    if (Result<void> right = check_torch(parsed, wheel); !right) return right.error();
  out.bytes = std::move(bytes);
  out.pylock = std::move(parsed);
  return out;
}

}  // namespace cufit::commands
