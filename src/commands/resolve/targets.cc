// SPDX-License-Identifier: Apache-2.0
#include "commands/resolve/targets.h"

#include "base/format.h"
#include "base/path.h"
#include "base/shell_word.h"
#include "formats/python/index_config.h"
#include "host/install/ownership.h"
#include "host/probe.h"
#include "host/files/paths.h"
#include "host/install/index_client.h"
#include "host/files/recording.h"

namespace cufit::commands {
namespace {

// "./x" and "a/b.json" can only be files: a missing one is said as such, not as an unknown GPU.
bool looks_like_path(const std::string& text) {
  return text.rfind("/", 0) == 0 || text.rfind("./", 0) == 0 || text.rfind("../", 0) == 0 ||
         (text.size() > 5 && text.substr(text.size() - 5) == ".json");
}

}  // namespace

Result<AskedTarget> read_target(const Context& context, const std::string& asked) {
  const knowledge::Knowledge& knowledge = context.knowledge;
  AskedTarget out;
  if (lower(asked) == "here") {
    // Which GPUs and driver: the compute check would make a context on each GPU for nothing.
    host::ProbeOptions options;
    options.driver_depth = host::DriverDepth::state;
    out.facts = host::collect(context.machine, options);
    out.target = resolve::target_of(out.facts, knowledge, "HERE");
    return out;
  }
  if (host::is_file(asked) || looks_like_path(asked)) {
    CUFIT_TRY(facts, host::load_facts(context.files, asked));
    out.facts = std::move(facts);
    out.target = resolve::target_of(out.facts, knowledge, asked);
    return out;
  }
  Result<resolve::Target> target = resolve::described_target(asked, knowledge);
  if (!target) return std::move(target.error()).in("--for");
  out.target = std::move(*target);
  return out;
}

Result<std::vector<AskedTarget>> read_targets(const Context& context,
                                              std::vector<std::string> asked) {
  if (asked.empty()) asked = {"HERE"};
  std::vector<AskedTarget> targets;
  for (const std::string& one : asked) {
    CUFIT_TRY(target, read_target(context, one));
    targets.push_back(std::move(target));
  }
  return targets;
}

Result<resolve::Policy> read_policy(const Context& context, const std::optional<std::string>& file,
                                    const std::string& folder) {
  const std::string named = file.value_or("");
  const std::string path = named.empty() ? host::find_upwards(folder, "cufit.toml") : named;
  if (path.empty()) return resolve::Policy();
  if (named.empty() && !host::path_exists(path))
    return fail(Code::not_found,
                format("`{}` is a link that leads nowhere: a policy was meant, and none can be "
                       "obeyed; mend the link or remove it",
                       path));
  CUFIT_TRY(text, context.files.read_file(path, size_t{1} << 20));
  CUFIT_TRY(policy, resolve::parse_policy(text, path));
  for (const std::string& entry : resolve::unknown_gpus(policy, context.knowledge))
    context.output.print_error(
        format("`{}`: the policy's `{}` is no GPU of cufit's table: only a GPU whose name holds "
               "these very words is meant by it",
               path, entry));
  return policy;
}

namespace {

Result<formats::IndexSetting> own_index_setting(const Context& context, const std::string& folder) {
  const std::string path = host::find_upwards(folder, "cufit.toml");
  if (path.empty() || !host::path_exists(path)) return formats::IndexSetting();
  CUFIT_TRY(text, context.files.read_file(path, size_t{1} << 20));
  CUFIT_TRY(setting, formats::parse_index_setting(text, path));
  // Whoever may put a file into a folder above would choose where packages come from.
  if (setting.from.empty()) return setting;
  if (const auto foreign = host::foreign_file(context.files, path))
    return fail(
        Code::usage,
        format("`{}` belongs to {}: what that user chose would be installed; if you trust that "
               "user: export CUFIT_SAFE_DIRECTORY={}",
               foreign->path, foreign->owner,
               shell_word(host::with_safe_directory(context.files, parent_folder(path)))));
  return setting;
}

}  // namespace

Result<formats::IndexSetting> read_index_setting(const Context& context,
                                                 const std::string& folder) {
  CUFIT_TRY(setting, own_index_setting(context, folder));
  setting.uv_backend = !context.files.variable("UV_TORCH_BACKEND").value_or("").empty();
  const host::IndexSettings configured = host::index_settings(context.files, folder);
  for (const formats::IndexUrl& index : configured.indexes) {
    // A file that another user could put into a folder above does not choose for this one.
    if (starts_with(index.from, "/") && host::foreign_file(context.files, index.from)) continue;
    const std::string mirror = formats::pytorch_mirror(index.url);
    if (setting.pytorch.empty() && !mirror.empty()) {
      setting.pytorch = mirror;
      setting.from = index.from;
    }
    // uv does not read pip's configuration; who has a mirror there means it for both.
    if (setting.default_index.empty() && index.is_default && configured.tool == "pip") {
      setting.default_index = index.url;
      setting.default_from = index.from;
    }
  }
  return setting;
}

void add_mirror(const Context& context, facts::Facts& facts) {
  const Result<formats::IndexSetting> setting = read_index_setting(context, host::working_folder());
  if (!setting) {
    facts.problems.push_back(setting.error().text());
    return;
  }
  if (setting->has_mirror())
    facts.system.pytorch_index =
        known(formats::without_credentials(setting->pytorch), SourceKind::file, setting->from);
  if (!setting->default_index.empty())
    facts.system.default_index = known(formats::without_credentials(setting->default_index),
                                       SourceKind::file, setting->default_from);
}

Result<resolve::Request> read_request(const std::vector<std::string>& requirements,
                                      const std::optional<std::string>& python) {
  resolve::Request request;
  for (const std::string& text : requirements) {
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
  if (python.value_or("").empty()) return request;
  request.python = resolve::minor_python(*python);
  if (request.python.empty())
    return fail(Code::usage, format("`--python {}`: a version as 3.12 is expected", *python));
  return request;
}

}  // namespace cufit::commands
