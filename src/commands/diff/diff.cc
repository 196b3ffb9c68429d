// SPDX-License-Identifier: Apache-2.0
#include "commands/diff/diff.h"

#include <optional>

#include "base/format.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "formats/python/pylock.h"
#include "host/files/paths.h"
#include "host/files/recording.h"
#include "host/install/lock_folder.h"
#include "host/probe.h"
#include "report/diff.h"
#include "report/diff_lock.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_pylock_bytes = size_t{64} << 20;

constexpr Option k_diff_options[] = {
    option<&DiffRequest::a>("A").needed(),
    option<&DiffRequest::b>("B").needed(),
    option<&DiffRequest::json>("--json"),
    option<&DiffRequest::verbose>("-v,--verbose"),
};

// What a word on the command line stands for.
struct Operand {
  std::string name;
  enum class Kind { here, environment, recording, lock, pylock } kind;
  std::string path;  // absolute, of an environment; the file, of a lock
};

using Kind = Operand::Kind;

bool is_lock_text(const host::Host& files, const std::string& path) {
  const Result<std::string> head = files.read_head(path, 4096);
  return head && contains(*head, "cufit.lock/");
}

// pylock.toml, pylock.NAME.toml: the names that PEP 751 allows.
bool is_pylock_name(std::string_view path) {
  const std::string_view name = file_name(path);
  return starts_with(name, "pylock.") && ends_with(name, ".toml");
}

Result<Operand> operand_of(const host::Host& files, const std::string& name) {
  if (name == "here") return Operand{name, Kind::here, ""};
  const Result<host::FileStatus> status = files.status(name);
  if (!status) return status.error();
  if (!status->is_directory && is_pylock_name(name)) return Operand{name, Kind::pylock, name};
  if (!status->is_directory)
    return is_lock_text(files, name) ? Operand{name, Kind::lock, name}
                                     : Operand{name, Kind::recording, ""};
  const std::string lock = path_in(name, "cufit.lock");
  if (files.exists(lock)) return Operand{name, Kind::lock, lock};
  return Operand{name, Kind::environment, host::absolute_folders({name}).front()};
}

// This machine is asked once, however many of the operands lie on it.
class Reader {
 public:
  explicit Reader(const Context& context) : context_(context) {}

  Result<facts::Facts> read(const Operand& operand) {
    if (operand.kind == Kind::recording) return host::load_facts(context_.files, operand.name);
    host::ProbeOptions options;
    if (!operand.path.empty()) options.env_dirs.push_back(operand.path);
    if (!live_) {
      live_ = host::collect(context_.machine, options);
    } else {
      live_->envs.clear();
      host::read_python_envs(context_.machine, options, *live_);
    }
    if (!operand.path.empty() && live_->envs.empty())
      return fail(
          Code::usage,
          format("`{}`: neither a recording, nor a Python environment or a folder of packages",
                 operand.name));
    return *live_;
  }

 private:
  const Context& context_;
  std::optional<facts::Facts> live_;
};

// As the report says it.
std::string side_kind(const Operand& operand, const facts::Facts& facts) {
  if (operand.kind == Kind::here) return "here";
  if (operand.kind == Kind::environment) return "environment";
  return facts.origin == "recording" || facts.origin == "live" ? "recording" : "text";
}

Result<resolve::LockFile> read_lock(const host::Host& files, const Operand& operand) {
  CUFIT_TRY(text, files.read_file(operand.path));
  return resolve::parse_lock(text, operand.path);
}

Result<formats::Pylock> read_lock_side(const host::Host& files, const std::string& path) {
  CUFIT_TRY(text, files.read_file(path, k_most_pylock_bytes));
  return formats::parse_pylock(text, path);
}

// Of each class what its pylock file beside the lock installs; empty where that cannot be read.
resolve::ClassPackages class_packages(const Context& context, const resolve::LockFile& lock) {
  resolve::ClassPackages out;
  const std::string folder = parent_folder(lock.path);
  for (const resolve::LockClass& one : lock.classes) {
    const std::string path = path_in(folder, one.file);
    const Result<std::string> bytes =
        host::read_locked(context.files, folder, {one.file, one.sha256}, k_most_pylock_bytes);
    if (bytes && sha256(*bytes) != one.sha256)
      context.output.print_error(
          format("`{}` is not what was locked (its SHA-256 differs from cufit.lock): `cufit "
                 "lock --check -o {}` says more",
                 path, shell_word(folder)));
    const Result<formats::Pylock> pylock =
        bytes ? formats::parse_pylock(*bytes, path) : Result<formats::Pylock>(bytes.error());
    out.push_back(pylock ? resolve::packages_of(*pylock) : std::vector<resolve::PackageVersion>());
  }
  return out;
}

int print_lock_difference(const Output& output, const report::LockDiffView& view,
                          const DiffRequest& request) {
  return output.print(request.json ? report::lock_diff_json(view)
                                   : report::lock_diff_text(view, output.style(request.verbose)),
                      view.difference.differs ? k_findings : k_ok);
}

int diff_locks(const Context& context, const Operand& a, const Operand& b,
               const DiffRequest& request) {
  const Output& output = context.output;
  const Result<resolve::LockFile> left = read_lock(context.files, a);
  if (!left) return output.exit_code_for(left.error());
  const Result<resolve::LockFile> right = read_lock(context.files, b);
  if (!right) return output.exit_code_for(right.error());
  const resolve::ClassPackages of_left = class_packages(context, *left),
                               of_right = class_packages(context, *right);
  const resolve::LockDifference difference =
      resolve::compare_locks(*left, *right, of_left, of_right);
  return print_lock_difference(output, {*left, *right, difference, context.knowledge}, request);
}

int diff_pylocks(const Context& context, const Operand& a, const Operand& b,
                 const DiffRequest& request) {
  resolve::LockFile locks[2];
  resolve::ClassPackages packages[2];
  const Operand* const operands[2] = {&a, &b};
  for (size_t i = 0; i < 2; ++i) {
    const Result<formats::Pylock> pylock = read_lock_side(context.files, operands[i]->path);
    if (!pylock) return context.output.exit_code_for(pylock.error());
    locks[i].path = operands[i]->path;
    resolve::LockClass one;
    one.name = "pylock";
    one.python = pylock->requires_python;
    packages[i].push_back(resolve::packages_of(*pylock));
    one.packages = packages[i].back().size();
    locks[i].classes.push_back(std::move(one));
  }
  const resolve::LockDifference difference =
      resolve::compare_locks(locks[0], locks[1], packages[0], packages[1]);
  return print_lock_difference(context.output,
                               {locks[0], locks[1], difference, context.knowledge, true}, request);
}

int diff_machines(const Context& context, const Operand& a, const Operand& b,
                  const DiffRequest& request) {
  const Output& output = context.output;
  Reader reader(context);
  Result<facts::Facts> facts_a = reader.read(a);
  if (!facts_a) return output.exit_code_for(facts_a.error());
  Result<facts::Facts> facts_b = reader.read(b);
  if (!facts_b) return output.exit_code_for(facts_b.error());
  const std::string kind_a = side_kind(a, *facts_a), kind_b = side_kind(b, *facts_b);
  const resolve::MachineSide side_a = resolve::machine_side(std::move(*facts_a), context.knowledge);
  const resolve::MachineSide side_b = resolve::machine_side(std::move(*facts_b), context.knowledge);
  const resolve::MachineDifference difference = resolve::compare_machines(side_a, side_b);
  const report::DiffSide left{a.name, kind_a, side_a}, right{b.name, kind_b, side_b};
  const report::DiffView view{left, right, difference, context.knowledge};
  return output.print(request.json ? report::diff_json(view)
                                   : report::diff_text(view, output.style(request.verbose)),
                      difference.differs ? k_findings : k_ok);
}

bool is_of_lock(const Operand& one) { return one.kind == Kind::lock || one.kind == Kind::pylock; }

// A lock is compared with a lock, a pylock with a pylock.
Error unlike(const Operand& lock, const Operand& other) {
  return fail(Code::usage,
              format("`{}` is a {} and `{}` is none: it is compared with its like only", lock.name,
                     lock.kind == Kind::lock ? "lock" : "pylock", other.name));
}

}  // namespace

std::span<const Option> diff_options() { return k_diff_options; }

int run_diff(const Context& context, const DiffRequest& request) {
  const Output& output = context.output;
  if (request.a.empty() || request.b.empty()) {
    output.print_error(
        "`cufit diff` needs two recordings, environments or locks (`here`: this machine)");
    return k_usage;
  }
  const Result<Operand> a = operand_of(context.files, request.a);
  if (!a) return output.exit_code_for(a.error());
  const Result<Operand> b = operand_of(context.files, request.b);
  if (!b) return output.exit_code_for(b.error());
  if (a->kind == Kind::lock && b->kind == Kind::lock) return diff_locks(context, *a, *b, request);
  if (a->kind == Kind::pylock && b->kind == Kind::pylock)
    return diff_pylocks(context, *a, *b, request);
  if (is_of_lock(*a)) return output.exit_code_for(unlike(*a, *b));
  if (is_of_lock(*b)) return output.exit_code_for(unlike(*b, *a));
  return diff_machines(context, *a, *b, request);
}

}  // namespace cufit::commands
