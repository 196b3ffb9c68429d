// SPDX-License-Identifier: Apache-2.0
#include "commands/self/variant_properties.h"

#include "base/format.h"
#include "base/json.h"
#include "checks/check.h"
#include "facts/nvidia_properties.h"
#include "host/probe.h"

namespace cufit::commands {

int run_variant_properties(const Context& context, const SelfRequest& request) {
  host::ProbeOptions options;
  const facts::Facts facts = host::collect(context.machine, options);
  const checks::Input input = checks::make_input(facts, context.knowledge);
  std::optional<ComputeCapability> highest;
  for (const checks::GpuView& gpu : input.gpus)
    if (gpu.cc && (!highest || *highest < *gpu.cc)) highest = gpu.cc;
  const std::vector<formats::VariantFeature> all =
      facts::nvidia_properties(input.driver_cuda, highest);
  if (!request.json) {
    std::string out;
    for (const formats::VariantFeature& feature : all)
      for (const std::string& value : feature.values)
        out += formats::property_text(feature, value) + "\n";
    if (all.empty()) out = context.message("self.no_variant_properties") + "\n";
    return context.output.print(out, k_ok);
  }
  Json features = Json::array();
  for (const formats::VariantFeature& feature : all)
    features.push_back({{"name", feature.name}, {"values", feature.values}});
  const Json out = {{"schema", "cufit.variant_properties/1"},
                    {"cufit", CUFIT_VERSION},
                    {"namespace", "nvidia"},
                    {"features", std::move(features)}};
  return context.output.print(out.dump(2) + "\n", k_ok);
}

}  // namespace cufit::commands
