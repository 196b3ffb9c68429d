// SPDX-License-Identifier: Apache-2.0
// /etc/docker/daemon.json: which runtimes Docker knows. Used by the container-engine probe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::formats {

struct DaemonConfig {
  bool has_nvidia_runtime =
      false;  // a runtime called "nvidia", or one whose path is nvidia-container-runtime
  std::string default_runtime;  // empty = not said (runc)
  bool cdi_enabled = false;     // features.cdi
  std::string data_root;        // where containers and images are; empty = /var/lib/docker
};

// Error{malformed} with the byte when the text is no JSON object; Docker itself does not start with
// such a file.
Result<DaemonConfig> parse_daemon_json(std::string_view text, const std::string& name);

}  // namespace cufit::formats
