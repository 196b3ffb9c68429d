// SPDX-License-Identifier: Apache-2.0
#include "commands/self/self.h"

#include "base/format.h"
#include "checks/check.h"
#include "commands/args.h"
#include "commands/self/docs.h"
#include "commands/self/update_tables.h"
#include "commands/self/variant_properties.h"
#include "host/driver/library_opens.h"
#include "host/install/http.h"
#include "host/probe.h"
#include "report/explain.h"
#include "report/report.h"
#include "report/terminal/width.h"

namespace cufit::commands {
namespace {

constexpr Option k_self_options[] = {
    option<&SelfRequest::topic>("TOPIC"),
    option<&SelfRequest::argument>("ARGUMENT"),
    option<&SelfRequest::sha256>("--sha256", "HEX"),
    option<&SelfRequest::remove>("--remove"),
    option<&SelfRequest::json>("--json"),
};

#ifdef CUFIT_LINKED  // a release (packaging/) has other parts inside than a build for this machine
constexpr const char* k_licenses = "self.licenses_linked";
#else
constexpr const char* k_licenses = "self.licenses";
#endif

// Libraries that are looked for at run time, with what is missing without them.
std::string runtime_parts(const Context& context) {
  std::string out;
  for (const char* name : {"libnvidia-ml.so.1", "libcuda.so.1"}) {
    out +=
        context.message(host::library_opens(name) ? "self.library_found" : "self.library_missing",
                        {{"lib", name}}) +
        "\n";
  }
  const std::string http = host::http_library();
  out += context.message(http.empty() ? "self.http_missing" : "self.http_found", {{"lib", http}}) +
         "\n";
  return out;
}

std::string about(const Context& context) {
  const knowledge::Knowledge& knowledge = context.knowledge;
  std::string out = format("cufit {} ({} {})\n", CUFIT_VERSION,
#if defined(__clang__)
                           "clang", __clang_version__
#else
                           "g++", __VERSION__
#endif
  );
  out += context.message(
             knowledge.updated ? "self.tables_updated" : "self.tables",
             {{"date", std::string(knowledge.date)},
              {"gpus", std::to_string(knowledge.gpus.size())},
              {"torch", knowledge.torch_releases.empty()
                            ? ""
                            : std::string(knowledge.torch_releases.back().version)},
              {"toolkit",
               knowledge.toolkits.empty() ? "" : std::string(knowledge.toolkits.back().version)},
              {"findings", std::to_string(knowledge.findings.size())},
              {"checks", std::to_string(checks::check_table().size())}}) +
         "\n";
  // A file that is only older than what is built in is no news elsewhere.
  if (const TablesInUse own = tables_in_use(context.files); own.older)
    out += context.message("self.tables_older", {{"note", own.note}}) + "\n";
  return out + runtime_parts(context) + context.message("self.topics") + "\n";
}

// "1 x NVIDIA H200, driver 580.159.04, torch 2.11.0+cu130": from files only, no driver call, a few
// milliseconds.
std::string this_machine(const Context& context) {
  host::ProbeOptions options;
  options.driver_calls = false;
  const facts::Facts facts = host::collect(context.machine, options);
  const checks::Input input = checks::make_input(facts, context.knowledge);
  std::vector<std::string> parts;
  if (facts.system.distribution) parts.push_back(*facts.system.distribution);
  if (input.gpus.empty()) parts.push_back(context.message("overview.no_gpu"));
  for (const checks::GpuView& gpu : input.gpus) parts.push_back(gpu.name);
  parts.push_back(
      input.driver
          ? context.message("overview.driver",
                            {{"driver", facts.kernel.version.value_or(input.driver->text())}})
          : context.message("overview.no_driver"));
  std::string torch = context.message("overview.no_torch");
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.torch.version) continue;
    torch = context.message("overview.torch", {{"torch", *env.torch.version}, {"env", env.path}});
    break;
  }
  parts.push_back(torch);
  return context.message("overview.machine",
                         {{"list", join(parts, context.language() == "zh" ? "，" : ", ")}});
}

}  // namespace

std::span<const Option> self_options() { return k_self_options; }

int run_self(const Context& context, const SelfRequest& request) {
  const std::string& topic = request.topic;
  const std::string& shell = request.argument;
  const auto print = [&](const std::string& text) { return context.output.print(text, k_ok); };
  if (topic.empty()) return print(about(context));
  if (topic == "man") return print(man_page(table(), context.knowledge));
  if (topic == "causes") return print(report::causes_page(context.knowledge));
  if (topic == "licenses") return print(context.message(k_licenses) + "\n");
  if (topic == "completions" && (shell == "bash" || shell == "zsh" || shell == "fish"))
    return print(completions(shell, table(), context.knowledge));
  if (topic == "update-tables") return run_update_tables(context, request);
  if (topic == "variant-properties") return run_variant_properties(context, request);
  context.output.print_error(
      "usage: cufit self [man | completions bash|zsh|fish | causes | licenses | update-tables "
      "FILE|URL | variant-properties]");
  return k_usage;
}

int run_overview(const Context& context) {
  std::string out = this_machine(context) + "\n\n";
  for (const char* line : {"doctor", "explain", "html", "gpu", "record", "inspect", "collect"}) {
    out += "  " + report::pad(context.message(format("overview.{}.command", line)), 38) +
           context.message(format("overview.{}.what", line)) + "\n";
  }
  return context.output.print(out + "\n" + context.message("overview.more") + "\n", k_ok);
}

}  // namespace cufit::commands
