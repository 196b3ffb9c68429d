// SPDX-License-Identifier: Apache-2.0
#include "commands/resolve/targets.h"

#include <filesystem>

#include "base/format.h"
#include "commands/settings.h"
#include "host/probe.h"
#include "host/files/recording.h"

namespace cufit::commands {
namespace {

namespace fs = std::filesystem;
using knowledge::Knowledge;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// "./x" and "a/b.json" can only be files: a missing one is said as such, not as an unknown GPU.
bool looks_like_path(const std::string& text) {
  return text.rfind("/", 0) == 0 || text.rfind("./", 0) == 0 || text.rfind("../", 0) == 0 ||
         (text.size() > 5 && text.substr(text.size() - 5) == ".json");
}

}  // namespace

Result<AskedTarget> read_target(const std::string& asked) {
  const Knowledge& knowledge = Knowledge::builtin();
  AskedTarget out;
  if (lower(asked) == "here") {
    // Which GPUs and driver: the compute check would make a context on each GPU for nothing.
    host::ProbeOptions options;
    options.driver_depth = host::DriverDepth::state;
    out.facts = host::collect(host::RealHost(), options);
    out.target = resolve::target_of(out.facts, knowledge, "HERE");
    return out;
  }
  if (is_file(asked) || looks_like_path(asked)) {
    CUFIT_TRY(facts, host::load_facts(host::RealHost(), asked));
    out.facts = std::move(facts);
    out.target = resolve::target_of(out.facts, knowledge, asked);
    return out;
  }
  Result<resolve::Target> target = resolve::described_target(asked, knowledge);
  if (!target) return std::move(target.error()).in("--for");
  out.target = std::move(*target);
  return out;
}

Result<std::vector<AskedTarget>> read_targets(const Arguments& arguments) {
  std::vector<std::string> asked = arguments.all("for");
  if (asked.empty()) asked = {"HERE"};
  std::vector<AskedTarget> targets;
  for (const std::string& one : asked) {
    CUFIT_TRY(target, read_target(one));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<resolve::Policy> read_policy(const Arguments& arguments, const std::string& folder) {
  const std::string named = arguments.get("policy");
  const std::string path = named.empty() ? find_upwards(folder, "cufit.toml") : named;
  if (path.empty()) return resolve::Policy();
  std::error_code ignored;
  if (named.empty() && !fs::exists(path, ignored))
    return fail(Code::not_found,
                format("`{}` is a link that leads nowhere: a policy was meant, and none can be "
                       "obeyed; mend the link or remove it",
                       path));
  CUFIT_TRY(text, host::RealHost().read_file(path, size_t{1} << 20));
  CUFIT_TRY(policy, resolve::parse_policy(text, path));
  for (const std::string& entry : resolve::unknown_gpus(policy, Knowledge::builtin()))
    print_error(
        format("`{}`: the policy's `{}` is no GPU of cufit's table: only a GPU whose name holds "
               "these very words is meant by it",
               path, entry));
  return policy;
}

Result<resolve::Request> read_request(const Arguments& arguments) {
  resolve::Request request;
  for (const std::string& text : arguments.all("REQUIREMENT")) {
    Result<formats::Requirement> requirement = formats::parse_requirement(text);
    if (!requirement) {
      return fail(Code::usage, requirement.error().what);
    }
    if (requirement->name == "torch" && !requirement->url.empty())
      return fail(Code::usage, format("`{}`: what a file at a URL runs on is not known; `cufit "
                                      "inspect` reads a downloaded wheel",
                                      text));
    request.requirements.push_back(std::move(*requirement));
  }
  const std::string python = arguments.get("python");
  if (python.empty()) return request;
  request.python = resolve::minor_python(python);
  if (request.python.empty())
    return fail(Code::usage, format("`--python {}`: a version as 3.12 is expected", python));
  return request;
}

std::string find_upwards(const std::string& folder, const std::string& name) {
  fs::path at = fs::path(folder).lexically_normal();
  for (;;) {
    const fs::path candidate = at / name;
    // A link that leads nowhere, or a folder, was meant to be read: what reads it says so.
    std::error_code failed;
    if (fs::exists(fs::symlink_status(candidate, failed))) return candidate.string();
    const fs::path parent = at.parent_path();
    if (parent == at || parent.empty()) return {};
    at = parent;
  }
}

std::string working_folder() {
  std::error_code failed;
  const fs::path folder = fs::current_path(failed);
  return failed ? "." : folder.string();
}

}  // namespace cufit::commands
