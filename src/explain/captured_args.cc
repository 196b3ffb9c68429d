// SPDX-License-Identifier: Apache-2.0
#include "explain/captured_args.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/format.h"
#include "base/version.h"
#include "checks/wheel_pick.h"
#include "formats/python/requirement.h"

namespace cufit::explain {
namespace {

using Args = std::map<std::string, std::string>;

std::string value(const Args& args, const char* name) {
  const auto found = args.find(name);
  return found == args.end() ? std::string() : found->second;
}

// Two digits, rounded down and one less: what is free changes until the engine asks again, and the
// message rounds both numbers.
void add_share(Args& args) {
  const double free = std::strtod(value(args, "free").c_str(), nullptr);
  const double whole = std::strtod(value(args, "whole").c_str(), nullptr);
  if (!(free > 0) || !(whole >= free)) return;
  const int percent = static_cast<int>(std::floor(free / whole * 100)) - 1;
  if (percent < 1 || percent > 99) return;
  args.emplace("share", format("0.{}{}", percent / 10, percent % 10));
}

// A tenth of the card less than the share that the text's own command has.
void add_lower_share(Args& args) {
  const double own = std::strtod(value(args, "own_share").c_str(), nullptr);
  if (!(own > 0.3) || own > 1) return;
  const int percent = static_cast<int>(std::lround(own * 100)) - 10;
  args.emplace("lower_share", format("0.{}{}", percent / 10, percent % 10));
}

void add_number(Args& args, const char* name, double number) {
  args.emplace(name, format("{}", static_cast<long long>(std::llround(number))));
}

// What a request or a model wants of RAM and of all cards, and twice a limit that was too low.
void add_sizes(Args& args) {
  const double bytes = std::strtod(value(args, "cpu_bytes").c_str(), nullptr);
  constexpr double k_gib = 1024.0 * 1024 * 1024, k_large = 48;
  if (bytes >= k_gib) add_number(args, "cpu_gib", bytes / k_gib);
  if (bytes >= k_large * k_gib) add_number(args, "cpu_gib_large", bytes / k_gib);
  // Adam in mixed precision: 16 bytes a parameter; with everything in RAM DeepSpeed counts 18 and
  // half as much again for buffers (estimate_zero3_model_states_mem_needs).
  const double billions = std::strtod(value(args, "billions").c_str(), nullptr);
  if (billions >= 0.5) {
    const double cards = std::strtod(value(args, "card_gb").c_str(), nullptr) *
                         std::strtod(value(args, "card_count").c_str(), nullptr);
    add_number(args, cards < billions * 16 ? "full_train" : "states_fit", billions * 16);
    add_number(args, "offload_ram", billions * 27);
  }
  for (const auto& [had, more] : {std::pair<const char*, const char*>{"job_gb", "job_gb_more"},
                                  {"pod_gib", "pod_gib_more"}}) {
    const int limit = std::atoi(value(args, had).c_str());
    if (limit > 0) args.emplace(more, std::to_string(2 * limit));
  }
}

// A share that may grow, and never one that is as high as an engine can start with.
void add_higher_share(Args& args) {
  const double own = std::strtod(value(args, "own_share").c_str(), nullptr);
  if (own > 0 && own < 0.945) args.emplace("higher_share", own < 0.895 ? "0.90" : "0.95");
}

// The length that an engine offers, where a request of some use fits into it.
void add_useful_length(Args& args) {
  const long length = std::strtol(value(args, "max_len").c_str(), nullptr, 10);
  if (length >= 2048) args.emplace("useful_len", std::to_string(length));
}

// "collisionStackSize" is gpu_collision_stack_size in a simulation's settings; the size that is
// asked for rounded up to a power of two, as they are written.
void add_physx(Args& args) {
  const std::string buffer = value(args, "px_buffer");
  const double need = std::strtod(value(args, "px_need").c_str(), nullptr);
  if (buffer.empty() || !(need > 0) || need > 2147483648.0) return;
  std::string name = "gpu_";
  for (const char c : buffer) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper) name += '_';
    name += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  int power = 0;
  while (std::ldexp(1.0, power) < need) ++power;
  args.emplace("px_name", name);
  args.emplace("px_size", format("{:.0f}", std::ldexp(1.0, power)));
}

// torch names the first gcc that is too new ("<13.0").
void add_gcc(Args& args) {
  const int below = std::atoi(value(args, "gcc_below").c_str());
  if (below > 1 && below < 100) args.emplace("gcc", std::to_string(below - 1));
}

void add_toolkit(Args& args, const knowledge::Knowledge& knowledge) {
  std::string arch;
  for (char c : value(args, "sm"))
    if (c >= '0' && c <= '9') arch += c;
  for (const knowledge::NvccArch& row : knowledge.nvcc_archs) {
    if (row.arch != arch) continue;
    if (!row.last.empty())
      args.emplace("last_toolkit", row.last);
    else if (!row.first.empty())
      args.emplace("toolkit", row.first);
  }
}

// The release has wheels, and none for the Python that the text names.
void add_python(Args& args, const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  const std::string wanted = value(args, "wanted_torch");
  if (wanted.empty()) return;
  std::string release = wanted.substr(0, wanted.find('+'));
  const knowledge::TorchRelease* row = knowledge.find_torch(release);
  if (!row) row = knowledge.find_torch(release += ".0");
  if (!row) return;
  for (const facts::PythonEnv& env : facts.envs) {
    const auto have = env.python ? parse_version(*env.python) : std::nullopt;
    if (!have) continue;
    const std::string minor = format("{}.{}", have->part(0), have->part(1));
    for (std::string_view one : split(row->python, ' '))
      if (one == minor) return;  // something else is in the way
    args.emplace("have_python", minor);
  }
  args.emplace("python", checks::python_for(knowledge, row->version));
  std::vector<std::string> pythons;
  for (std::string_view one : split(row->python, ' '))
    if (!one.empty() && one.back() != 't') pythons.emplace_back(one);
  args.emplace("pythons", join(pythons, ", "));
}

// "torch==2.6.0+cu128": a release that exists in other variants only. What comes nearest: the first
// release of the variant, where that is newer, else the release itself in its newest variant.
void add_tags(Args& args, const knowledge::Knowledge& knowledge) {
  const std::string wanted = value(args, "wanted_torch");
  const size_t plus = wanted.find('+');
  if (plus == std::string::npos) return;
  const std::string tag = wanted.substr(plus + 1);
  std::string release = wanted.substr(0, plus);
  if (!knowledge.find_torch(release)) release += ".0";
  const auto wheels = knowledge.wheels_of(release);
  std::vector<std::string> tags;
  for (const knowledge::WheelVariant* wheel : wheels) {
    if (wheel->tag == tag) return;
    tags.emplace_back(wheel->tag);
  }
  if (tags.empty()) return;
  std::string near = release, near_tag = tags.back();
  const auto have = parse_version(release);
  for (const knowledge::CudaTag& row : knowledge.cuda_tags) {
    const auto first = parse_version(row.first_torch);
    if (row.tag == tag && first && have && *first > *have) {
      near = row.first_torch;
      near_tag = tag;
    }
  }
  args["never_torch"] = release;
  args["never_tag"] = tag;
  args["tags"] = join(tags, ", ");
  args["near"] = near;
  args["near_tag"] = near_tag;
}

// The newest release of a package that takes this torch; the table has the oldest first.
std::string newest_for(std::string_view package, const std::string& torch,
                       const knowledge::Knowledge& knowledge) {
  std::string newest;
  for (const knowledge::ExtensionRow& row : knowledge.extensions) {
    if (row.package != package) continue;
    const auto clauses = formats::parse_clauses(row.torch);
    if (clauses && formats::satisfies(*clauses, torch)) newest = row.version;
  }
  return newest;
}

// The newest release of xformers that was built against this torch: the one that its message names,
// else the one that the text has.
void add_xformers(Args& args, const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.torch.version || !value(args, "xformers_torch").empty()) continue;
    const std::string& version = *env.torch.version;
    const size_t plus = version.find("+cu");
    if (plus == std::string::npos) continue;
    args["xformers_torch"] = version.substr(0, plus);
    args["xformers_tag"] = version.substr(plus + 1);
  }
  const std::string torch = value(args, "xformers_torch");
  if (torch.empty()) return;
  if (const std::string newest = newest_for("xformers", torch, knowledge); !newest.empty())
    args["xformers"] = newest;
}

// The releases of torchcodec go by the minors of torch: "0.7" for 2.8.
void add_torchcodec(Args& args, const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.torch.version) continue;
    std::string torch = env.torch.version->substr(0, env.torch.version->find('+'));
    if (std::count(torch.begin(), torch.end(), '.') == 1) torch += ".0";
    const auto newest = parse_version(newest_for("torchcodec", torch, knowledge));
    if (!newest) continue;
    args.emplace("torchcodec", format("{}.{}", newest->part(0), newest->part(1)));
    args.emplace("torchcodec_torch", torch);
    return;
  }
}

// The first Triton that the torch of the text does not know: 3.6.0 is its own, so 3.7.
void add_triton(Args& args, const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.torch.version) continue;
    const std::string release = env.torch.version->substr(0, env.torch.version->find('+'));
    const knowledge::TorchRelease* row = knowledge.find_torch(release);
    const auto own = row ? parse_version(row->triton) : std::nullopt;
    if (!own) continue;
    args.emplace("torch_release", release);
    args.emplace("triton_next", format("{}.{}", own->part(0), own->part(1) + 1));
    return;
  }
}

// "not supported on Python 3.14+": 3.13 is the newest that works.
void add_older_python(Args& args) {
  const auto named = parse_version(value(args, "python_new"));
  if (named && named->part(0) == 3 && named->part(1) > 10)
    args.emplace("python_older", format("3.{}", named->part(1) - 1));
}

// Two packages of one branch come from two repositories: nothing of that branch has to go.
void add_branch(Args& args) {
  if (value(args, "new_branch") == value(args, "other_branch")) args.erase("other_branch");
}

// Only another version than the driver's is a finding.
void add_fabric_manager(Args& args) {
  const std::string have = value(args, "fm_have");
  if (have.empty() || have == value(args, "fm_driver")) args.erase("fm_driver");
}

// "10" of Python 3.10, as a wheel's name has it.
void add_wheel_python(Args& args) {
  const std::string minor = value(args, "fa_minor");
  if (!minor.empty()) args.emplace("fa_python", "3" + minor);
}

// Who asks for cuDNN 8 beside a torch whose wheels pin cuDNN 9?
void add_cudnn(Args& args, const facts::Facts& facts, const knowledge::Knowledge& knowledge) {
  if (value(args, "cudnn_wanted") != "8") return;
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.torch.version) continue;
    const std::string release = env.torch.version->substr(0, env.torch.version->find('+'));
    for (const knowledge::WheelVariant* wheel : knowledge.wheels_of(release)) {
      if (starts_with(wheel->cudnn, "9.")) args.emplace("cudnn9_torch", release);
    }
  }
  if (value(args, "cudnn9_torch").empty()) args.erase("asker");
}

}  // namespace

void add_captured_args(Args& args, const facts::Facts& facts,
                       const knowledge::Knowledge& knowledge) {
  add_share(args);
  add_lower_share(args);
  add_sizes(args);
  add_higher_share(args);
  add_useful_length(args);
  add_physx(args);
  add_gcc(args);
  add_toolkit(args, knowledge);
  add_python(args, facts, knowledge);
  add_tags(args, knowledge);
  add_xformers(args, facts, knowledge);
  add_torchcodec(args, facts, knowledge);
  add_cudnn(args, facts, knowledge);
  add_triton(args, facts, knowledge);
  add_older_python(args);
  add_branch(args);
  add_fabric_manager(args);
  add_wheel_python(args);
  const std::string cpython = value(args, "cpython");  // "310"
  if (cpython.size() >= 2) args.emplace("python", cpython.substr(0, 1) + "." + cpython.substr(1));
}

}  // namespace cufit::explain
