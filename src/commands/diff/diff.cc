// SPDX-License-Identifier: Apache-2.0
#include "commands/diff/diff.h"

#include <filesystem>

#include "base/format.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "commands/settings.h"
#include "formats/python/pylock.h"
#include "host/probe.h"
#include "host/files/recording.h"
#include "report/diff.h"
#include "report/diff_lock.h"

namespace cufit::commands {
namespace {

constexpr size_t k_most_pylock_bytes = size_t{64} << 20;

constexpr Option k_diff_options[] = {
    {"A", "", "", false, "", true},
    {"B", "", "", false, "", true},
    {"--json", "", "", false, ""},
    {"-v,--verbose", "", "", false, ""},
};

// What a word on the command line stands for.
struct Operand {
  std::string name;
  std::string kind;  // "here", "environment", "recording", "lock", "pylock"
  std::string path;  // absolute, of an environment; the file, of a lock
};

bool is_lock_text(const host::Host& machine, const std::string& path) {
  const Result<std::string> head = machine.read_head(path, 4096);
  return head && contains(*head, "cufit.lock/");
}

// pylock.toml, pylock.NAME.toml: the names that PEP 751 allows.
bool is_pylock_name(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return starts_with(name, "pylock.") && ends_with(name, ".toml");
}

Result<Operand> operand_of(const host::Host& machine, const std::string& name) {
  if (name == "here") return Operand{name, "here", ""};
  const Result<host::FileStatus> status = machine.status(name);
  if (!status) return status.error();
  if (!status->is_directory && is_pylock_name(name)) return Operand{name, "pylock", name};
  if (!status->is_directory)
    return is_lock_text(machine, name) ? Operand{name, "lock", name}
                                       : Operand{name, "recording", ""};
  const std::string lock = (std::filesystem::path(name) / "cufit.lock").string();
  if (machine.exists(lock)) return Operand{name, "lock", lock};
  std::error_code error;
  std::string path = std::filesystem::absolute(name, error).lexically_normal().string();
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return Operand{name, "environment", error ? name : path};
}

// This machine is asked once, however many of the operands lie on it.
class Reader {
 public:
  Result<facts::Facts> read(const Operand& operand) {
    if (operand.kind == "recording") return host::load_facts(machine_, operand.name);
    host::ProbeOptions options;
    if (!operand.path.empty()) options.env_dirs.push_back(operand.path);
    if (!live_) {
      live_ = host::collect(machine_, options);
    } else {
      live_->envs.clear();
      host::read_python_envs(machine_, options, *live_);
    }
    if (!operand.path.empty() && live_->envs.empty())
      return fail(
          Code::usage,
          format("`{}`: neither a recording, nor a Python environment or a folder of packages",
                 operand.name));
    return *live_;
  }
  const host::Host& machine() const { return machine_; }

 private:
  host::RealHost machine_;
  std::optional<facts::Facts> live_;
};

std::string kind_of(const Operand& operand, const facts::Facts& facts) {
  if (operand.kind != "recording") return operand.kind;
  return facts.origin == "recording" || facts.origin == "live" ? "recording" : "text";
}

Result<resolve::LockFile> read_lock(const host::Host& machine, const Operand& operand) {
  CUFIT_TRY(text, machine.read_file(operand.path));
  return resolve::parse_lock(text, operand.path);
}

Result<formats::Pylock> read_lock_side(const host::Host& machine, const std::string& path) {
  CUFIT_TRY(text, machine.read_file(path, k_most_pylock_bytes));
  return formats::parse_pylock(text, path);
}

// Of each class what its pylock file beside the lock installs; empty where that cannot be read.
resolve::ClassPackages class_packages(const host::Host& machine, const resolve::LockFile& lock) {
  resolve::ClassPackages out;
  const std::filesystem::path folder = std::filesystem::path(lock.path).parent_path();
  for (const resolve::LockClass& one : lock.classes) {
    const std::string path = (folder / one.file).string();
    const Result<std::string> bytes = machine.read_file(path, k_most_pylock_bytes);
    if (bytes && sha256(*bytes) != one.sha256)
      print_error(
          format("`{}` is not what was locked (its SHA-256 differs from cufit.lock): `cufit "
                 "lock --check -o {}` says more",
                 path, shell_word(folder.string())));
    const Result<formats::Pylock> pylock =
        bytes ? formats::parse_pylock(*bytes, path) : Result<formats::Pylock>(bytes.error());
    out.push_back(pylock ? resolve::packages_of(*pylock) : std::vector<resolve::PackageVersion>());
  }
  return out;
}

int print_lock_difference(const report::LockDiffView& view, const Arguments& arguments) {
  const int code = view.difference.differs ? k_findings : k_ok;
  if (arguments.has("json")) return print(report::lock_diff_json(view), code);
  return print(report::lock_diff_text(view, style_for(arguments)), code);
}

int diff_locks(const host::Host& machine, const Operand& a, const Operand& b,
               const Arguments& arguments) {
  const Result<resolve::LockFile> left = read_lock(machine, a);
  if (!left) return exit_code_for(left.error());
  const Result<resolve::LockFile> right = read_lock(machine, b);
  if (!right) return exit_code_for(right.error());
  const resolve::ClassPackages of_left = class_packages(machine, *left),
                               of_right = class_packages(machine, *right);
  const resolve::LockDifference difference =
      resolve::compare_locks(*left, *right, of_left, of_right);
  return print_lock_difference({*left, *right, difference, knowledge::Knowledge::builtin()},
                               arguments);
}

int diff_pylocks(const host::Host& machine, const Operand& a, const Operand& b,
                 const Arguments& arguments) {
  resolve::LockFile locks[2];
  resolve::ClassPackages packages[2];
  const Operand* const operands[2] = {&a, &b};
  for (size_t i = 0; i < 2; ++i) {
    const Result<formats::Pylock> pylock = read_lock_side(machine, operands[i]->path);
    if (!pylock) return exit_code_for(pylock.error());
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
  return print_lock_difference(
      {locks[0], locks[1], difference, knowledge::Knowledge::builtin(), true}, arguments);
}

}  // namespace

std::span<const Option> diff_options() { return k_diff_options; }

int run_diff(const Arguments& arguments) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  Reader reader;
  if (!arguments.has("B") || arguments.get("A").empty() || arguments.get("B").empty()) {
    print_error("`cufit diff` needs two recordings, environments or locks (`here`: this machine)");
    return k_usage;
  }
  const Result<Operand> a = operand_of(reader.machine(), arguments.get("A"));
  if (!a) return exit_code_for(a.error());
  const Result<Operand> b = operand_of(reader.machine(), arguments.get("B"));
  if (!b) return exit_code_for(b.error());
  if (a->kind == "lock" && b->kind == "lock")
    return diff_locks(reader.machine(), *a, *b, arguments);
  if (a->kind == "pylock" && b->kind == "pylock")
    return diff_pylocks(reader.machine(), *a, *b, arguments);
  for (const Operand* one : {&*a, &*b}) {
    if (one->kind != "lock" && one->kind != "pylock") continue;
    const Operand& other = one == &*a ? *b : *a;
    return exit_code_for(
        fail(Code::usage, format("`{}` is a {} and `{}` is none: it is compared with its like only",
                                 one->name, one->kind, other.name)));
  }
  Result<facts::Facts> facts_a = reader.read(*a);
  if (!facts_a) return exit_code_for(facts_a.error());
  Result<facts::Facts> facts_b = reader.read(*b);
  if (!facts_b) return exit_code_for(facts_b.error());
  const std::string kind_a = kind_of(*a, *facts_a), kind_b = kind_of(*b, *facts_b);
  const resolve::MachineSide side_a = resolve::machine_side(std::move(*facts_a), knowledge);
  const resolve::MachineSide side_b = resolve::machine_side(std::move(*facts_b), knowledge);
  const resolve::MachineDifference difference = resolve::compare_machines(side_a, side_b);
  const report::DiffSide left{a->name, kind_a, side_a}, right{b->name, kind_b, side_b};
  const report::DiffView view{left, right, difference, knowledge};
  const int code = difference.differs ? k_findings : k_ok;
  if (arguments.has("json")) return print(report::diff_json(view), code);
  return print(report::diff_text(view, style_for(arguments)), code);
}

}  // namespace cufit::commands
