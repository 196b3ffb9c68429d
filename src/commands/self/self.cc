// SPDX-License-Identifier: Apache-2.0
#include "commands/self/self.h"

#include "base/format.h"
#include "checks/check.h"
#include "commands/args.h"
#include "commands/self/docs.h"
#include "commands/settings.h"
#include "host/driver/library_opens.h"
#include "host/install/http.h"
#include "host/probe.h"
#include "report/explain.h"
#include "report/report.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

constexpr Option k_self_options[] = {
    {"TOPIC", "", "", false, ""},
    {"SHELL", "", "", false, ""},
};

std::string message(std::string_view key, const std::string& lang,
                    std::map<std::string, std::string> args = {}) {
  return report::format_message(knowledge::Knowledge::builtin().message(key, lang), args);
}

// Libraries that are looked for at run time, with what is missing without them.
std::string runtime_parts(const std::string& lang) {
  std::string out;
  for (const char* name : {"libnvidia-ml.so.1", "libcuda.so.1"}) {
    out += message(host::library_opens(name) ? "self.library_found" : "self.library_missing", lang,
                   {{"lib", name}}) +
           "\n";
  }
  const std::string http = host::http_library();
  out +=
      message(http.empty() ? "self.http_missing" : "self.http_found", lang, {{"lib", http}}) + "\n";
  return out;
}

std::string about(const std::string& lang) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  std::string out = format("cufit {} ({} {})\n", CUFIT_VERSION,
#if defined(__clang__)
                           "clang", __clang_version__
#else
                           "g++", __VERSION__
#endif
  );
  out +=
      message("self.tables", lang,
              {{"gpus", std::to_string(knowledge.gpus.size())},
               {"torch", knowledge.torch_releases.empty()
                             ? ""
                             : std::string(knowledge.torch_releases.back().version)},
               {"toolkit",
                knowledge.toolkits.empty() ? "" : std::string(knowledge.toolkits.back().version)},
               {"findings", std::to_string(knowledge.findings.size())},
               {"checks", std::to_string(checks::check_table().size())}}) +
      "\n";
  return out + runtime_parts(lang) + message("self.topics", lang) + "\n";
}

// "1 x NVIDIA H200, driver 580.159.04, torch 2.11.0+cu130": from files only, no driver call, a few
// milliseconds.
std::string this_machine(const std::string& lang) {
  host::RealHost machine;
  host::ProbeOptions options;
  options.driver_calls = false;
  const facts::Facts facts = host::collect(machine, options);
  const checks::Input input = checks::make_input(facts, knowledge::Knowledge::builtin());
  std::vector<std::string> parts;
  if (facts.system.distribution) parts.push_back(*facts.system.distribution);
  if (input.gpus.empty()) parts.push_back(message("overview.no_gpu", lang));
  for (const checks::GpuView& gpu : input.gpus) parts.push_back(gpu.name);
  parts.push_back(input.driver
                      ? message("overview.driver", lang,
                                {{"driver", facts.kernel.version.value_or(input.driver->text())}})
                      : message("overview.no_driver", lang));
  std::string torch = message("overview.no_torch", lang);
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.torch.version) continue;
    torch = message("overview.torch", lang, {{"torch", *env.torch.version}, {"env", env.path}});
    break;
  }
  parts.push_back(torch);
  return message("overview.machine", lang, {{"list", join(parts, lang == "zh" ? "，" : ", ")}});
}

}  // namespace

std::span<const Option> self_options() { return k_self_options; }

int run_self(const Arguments& arguments) {
  const std::string lang = language(arguments);
  const std::string topic = arguments.get("TOPIC");
  if (topic.empty()) return print(about(lang), k_ok);
  if (topic == "man") return print(man_page(table()), k_ok);
  if (topic == "causes") return print(report::causes_page(knowledge::Knowledge::builtin()), k_ok);
  if (topic == "licenses") return print(message("self.licenses", lang) + "\n", k_ok);
  const std::string shell = arguments.get("SHELL");
  if (topic == "completions" && (shell == "bash" || shell == "zsh" || shell == "fish")) {
    return print(completions(shell, table()), k_ok);
  }
  print_error("usage: cufit self [man | completions bash|zsh|fish | causes | licenses]");
  return k_usage;
}

int run_overview(const Arguments& arguments) {
  const std::string lang = language(arguments);
  std::string out = this_machine(lang) + "\n\n";
  for (const char* line : {"doctor", "explain", "html", "gpu", "record", "inspect", "collect"}) {
    out += "  " + report::pad(message(format("overview.{}.command", line), lang), 38) +
           message(format("overview.{}.what", line), lang) + "\n";
  }
  return print(out + "\n" + message("overview.more", lang) + "\n", k_ok);
}

}  // namespace cufit::commands
