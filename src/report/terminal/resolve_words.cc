// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "base/shell_word.h"
#include "checks/install/torch_command.h"
#include "checks/torch_env.h"
#include "formats/python/index_config.h"
#include "formats/python/wheel_name.h"
#include "report/resolve.h"
#include "report/error_translation.h"
#include "report/message.h"
#include "report/terminal/width.h"

namespace cufit::report {

std::string reason_text(const resolve::Reason& reason, std::string_view lang,
                        const knowledge::Knowledge& knowledge) {
  const std::string key = "resolve.reason." + reason.id;
  const std::string_view text = knowledge.message(key, lang);
  if (text.empty()) return reason.id;
  std::map<std::string, std::string> args = reason.args;
  if (const auto why = args.find("why"); why != args.end()) {
    const std::string_view word = knowledge.message("resolve.companion." + why->second, lang);
    if (!word.empty()) why->second = std::string(word);
  }
  return format_message(text, args, lang);
}

std::string measured_text(const resolve::MeasuredFaster& one, std::string_view lang,
                          const knowledge::Knowledge& knowledge) {
  const std::string how =
      one.precision.empty() ? one.workload : one.workload + ", " + one.precision;
  return label(knowledge, lang, "resolve.measured",
               {{"than", one.than},
                {"how", printable(how)},
                {"percent", format("{:.1f}", (one.ratio - 1) * 100)},
                {"low", format("{:.1f}", (one.low - 1) * 100)},
                {"high", format("{:.1f}", (one.high - 1) * 100)},
                {"file", printable(one.file)}});
}

std::vector<std::string> demand_texts(const std::vector<std::string>& demands,
                                      std::string_view lang,
                                      const knowledge::Knowledge& knowledge) {
  std::vector<std::string> out;
  for (const std::string& demand : demands)
    out.push_back(reworded(demand, "resolve.demand.", lang, knowledge));
  return out;
}

namespace {

bool asked_for(const resolve::Request& request, const std::string& package) {
  return std::any_of(request.requirements.begin(), request.requirements.end(),
                     [&](const formats::Requirement& one) { return one.name == package; });
}

// Packages that nobody judged here may ask for an older torch: an exact one would silently bring
// their releases of years ago.
bool torch_is_open(const resolve::Request& request) {
  const bool exact = std::any_of(
      request.requirements.begin(), request.requirements.end(),
      [](const formats::Requirement& one) {
        return one.name == "torch" && std::any_of(one.clauses.begin(), one.clauses.end(),
                                                  [](const formats::VersionClause& clause) {
                                                    return clause.op == "==" || clause.op == "===";
                                                  });
      });
  return !exact &&
         std::any_of(request.requirements.begin(), request.requirements.end(),
                     [](const formats::Requirement& one) { return !resolve::is_judged(one); });
}

// Has the index that was asked this wheel under its variant's name? Then a bare version would take
// the variant whose name sorts last.
bool index_has_local(const resolve::Request& request, const resolve::Wheel& wheel) {
  if (!request.index) return false;
  for (const formats::IndexFile& file : request.index->files) {
    const auto name = formats::parse_wheel_name(file.filename);
    if (name && name->name == "torch" && name->version == wheel.torch + "+" + wheel.tag)
      return true;
  }
  return false;
}

// Compiled for NumPy 1, and nobody asks for a NumPy: an installer would take the newest.
bool wants_numpy1(const resolve::Choice& choice, const resolve::Request& request) {
  const std::optional<Version> torch = parse_version(choice.wheel.torch);
  return torch && !checks::takes_numpy2(*torch) && !asked_for(request, "numpy");
}

std::string shown(const std::string& url) { return shell_word(formats::without_credentials(url)); }

std::string pinned(const resolve::Companion& one) { return one.package + "==" + one.version; }

}  // namespace

const resolve::Companion* built_here(const resolve::Choice& choice,
                                     const resolve::Request& request) {
  for (const resolve::Companion& one : choice.companions) {
    const bool no_file = one.origin == "source" || (one.origin == "release" && one.url.empty());
    if (no_file && !one.version.empty() && asked_for(request, one.package)) return &one;
  }
  return nullptr;
}

namespace {

// What `choice` and `request` install, for an installer that takes one index beside the default one.
// nullopt: not to be said that way.
std::optional<checks::InstallRequest> one_request(const resolve::Choice& choice,
                                                  const resolve::Request& request,
                                                  const checks::Input& input) {
  const resolve::Wheel& wheel = choice.wheel;
  const bool open = torch_is_open(request), from_default = wheel.on_default_index;
  if (!request.mirror.default_index.empty() || (open && !from_default)) return std::nullopt;
  const std::string local = from_default ? "" : "+" + wheel.tag;
  checks::InstallRequest out;
  out.requirements.push_back(open ? "torch<=" + wheel.torch : "torch==" + wheel.torch + local);
  for (const resolve::Companion& one : choice.companions) {
    const bool asked = asked_for(request, one.package);
    if (one.version.empty() || (!asked && (open || one.package != "torchvision"))) continue;
    const bool of_torch = one.package == "torchvision" || one.package == "torchaudio";
    // Both indexes have files of that name, and pip takes either.
    if (one.package == "xformers" && !from_default) return std::nullopt;
    if (open && of_torch)
      out.requirements.push_back(one.package);
    else if (!one.beyond.empty())
      out.requirements.push_back(one.beyond);
    else if (!one.url.empty())
      out.requirements.push_back(one.package + " @ " + one.url);
    else
      out.requirements.push_back(pinned(one) + (of_torch ? local : ""));
    out.beside_default = out.beside_default || (!of_torch && one.package != "triton");
  }
  for (const formats::Requirement& one : request.requirements)
    if (one.name != "torch" && !resolve::is_judged(one)) out.requirements.push_back(one.text);
  if (wants_numpy1(choice, request)) out.requirements.emplace_back("numpy<2");
  if (from_default) return out;
  out.index = request.mirror.has_mirror()
                  ? formats::without_credentials(request.mirror.pytorch_index_url(wheel.tag))
                  : checks::pytorch_index(input, wheel.tag);
  out.index_name = "pytorch-" + wheel.tag;
  return out;
}

// Empty: there is no environment to install into, or its owner cannot be told so.
std::string owners_line(const resolve::Choice& choice, const resolve::Target& target,
                        const resolve::Request& request, const knowledge::Knowledge& knowledge,
                        const facts::Facts& machine) {
  const facts::PythonEnv* env = checks::main_env(machine);
  if (env == nullptr || choice.python.empty() || choice.python != target.preferred_python)
    return {};
  // An index that was asked is named with its address.
  if (built_here(choice, request) != nullptr || !request.asked_indexes.empty()) return {};
  const checks::Input input = checks::make_input(machine, knowledge);
  const checks::Owner owner = checks::owner_of(*env, true);
  if (owner.installer == checks::Installer::conda || owner.installer == checks::Installer::pixi) {
    for (const formats::Requirement& one : request.requirements)
      if (one.name != "torch") return {};
    return checks::install_command(input, *env, choice.wheel.torch, choice.wheel.tag);
  }
  const auto asked = one_request(choice, request, input);
  return asked ? checks::install_command(input, *env, owner, *asked) : std::string();
}

}  // namespace

std::string install_line(const resolve::Choice& choice, const resolve::Target& target,
                         const resolve::Request& request, const knowledge::Knowledge& knowledge,
                         const facts::Facts* machine) {
  if (machine != nullptr)
    if (std::string line = owners_line(choice, target, request, knowledge, *machine); !line.empty())
      return line;
  const resolve::Wheel& wheel = choice.wheel;
  const resolve::Companion* built = built_here(choice, request);
  const bool open = torch_is_open(request);
  std::string line;
  if (!choice.python.empty() && choice.python != target.preferred_python)
    line = "uv venv --python " + choice.python + " && ";
  // An index that was asked has the wheel; it may have files of all variants beside each other.
  const bool asked_index = !request.asked_indexes.empty();
  const bool mirrored = !wheel.on_default_index && (asked_index || request.mirror.has_mirror());
  // uv lets the variable go before any index that a command names, but for --torch-backend.
  if (request.mirror.uv_backend && (mirrored || wheel.on_default_index))
    line += "env -u UV_TORCH_BACKEND ";
  line += "uv pip install ";
  const std::string local =
      mirrored || (asked_index && index_has_local(request, wheel)) ? "+" + wheel.tag : "";
  if (!request.mirror.default_index.empty())
    line += "--default-index " + shown(request.mirror.default_index) + " ";
  for (const std::string& index : request.asked_indexes) line += "--index " + shown(index) + " ";
  if (mirrored && !asked_index)
    line += "--index " + shown(request.mirror.pytorch_index_url(wheel.tag)) + " ";
  else if (!wheel.on_default_index && !asked_index)
    line += "--torch-backend " + wheel.tag + " ";
  line += open ? shell_word("torch<=" + wheel.torch) : "torch==" + wheel.torch + local;
  for (const resolve::Companion& companion : choice.companions) {
    const bool asked = asked_for(request, companion.package);
    if (companion.version.empty() || &companion == built) continue;
    const bool of_torch = companion.package == "torchvision" || companion.package == "torchaudio" ||
                          companion.package == "triton";
    if (open && of_torch) {
      if (asked) line += " " + companion.package;
    } else if (!companion.beyond.empty()) {
      line += " " + shell_word(companion.beyond);
    } else if (asked || companion.package == "torchvision") {
      const bool has_local = of_torch && companion.package != "triton";
      line += " " + (companion.url.empty() ? pinned(companion) + (has_local ? local : "")
                                           : shell_word(companion.package + " @ " + companion.url));
    }
  }
  for (const formats::Requirement& one : request.requirements)
    if (one.name != "torch" && !resolve::is_judged(one)) line += " " + shell_word(one.text);
  if (wants_numpy1(choice, request)) line += " 'numpy<2'";
  // Its build imports torch: a second step, in the environment that has it.
  if (built != nullptr)
    line +=
        " && uv pip install setuptools wheel packaging psutil ninja && "
        "uv pip install --no-build-isolation " +
        pinned(*built);
  return line;
}

}  // namespace cufit::report
