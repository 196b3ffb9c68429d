// SPDX-License-Identifier: Apache-2.0
// `cufit exporter`: what `cufit top` shows, for Prometheus.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "commands/command.h"

namespace cufit::commands {

struct ExporterRequest {
  std::optional<std::string> listen, textfile, config, interval, max_processes, from;
  bool dcgm_names = false, once = false;
};

std::span<const Option> exporter_options();
// Until it is told to end: 0 for SIGTERM. With --once exit code 1: no GPU could be asked.
int run_exporter(const Context& context, const ExporterRequest& request);

}  // namespace cufit::commands
