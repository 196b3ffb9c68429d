// SPDX-License-Identifier: Apache-2.0
// `cufit exporter --config`: TLS and users, with the files that they name.
#pragma once

#include <string>
#include <vector>

#include "commands/context.h"
#include "formats/system/web_config.h"

namespace cufit::commands {

struct WebSettings {
  formats::WebConfig config;         // files absolute
  std::vector<std::string> exposed;  // keys that other users may read
};

// Error{usage}: the page would be open; {no_permission}: a file that every user may write.
Result<WebSettings> read_web_settings(const Context& context, const std::string& path);

// Changes with each of its files.
std::string web_stamp(const std::string& path, const formats::WebConfig& config);

}  // namespace cufit::commands
