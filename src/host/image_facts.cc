// SPDX-License-Identifier: Apache-2.0
#include "host/image_facts.h"

#include "host/image_host.h"
#include "host/probe.h"

namespace cufit::host {

std::string architecture_of(const formats::ImageConfig& config) {
  if (config.architecture == "amd64") return "x86_64";
  if (config.architecture == "arm64") return "aarch64";
  return config.architecture;
}

Facts read_image_facts(const ImageTree& tree, const formats::ImageConfig& config) {
  const ImageHost host(tree, config.variables, architecture_of(config));
  Facts facts;
  facts.cufit_version = CUFIT_VERSION;
  facts.origin = "image";
  Facts all;
  read_system(host, all);
  facts.system.distribution = all.system.distribution;
  facts.system.distribution_id = all.system.distribution_id;
  facts.system.libc = all.system.libc;
  facts.system.glibc = all.system.glibc;
  facts.system.glibcxx = all.system.glibcxx;
  facts.system.architecture =
      known(architecture_of(config), SourceKind::file, "architecture of the image's configuration");
  if (config.architecture.empty())
    facts.system.architecture =
        missing<std::string>(WhyNot::not_present, SourceKind::file, "the image's configuration");
  read_variables(host, facts);
  read_driver_libraries(host, facts);
  read_toolkits(host, facts);
  read_python_envs(host, {}, facts);
  return facts;
}

}  // namespace cufit::host
