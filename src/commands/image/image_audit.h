// SPDX-License-Identifier: Apache-2.0
// `cufit image audit`: what is inside a saved container image and where it runs, without running or
// unpacking it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct ImageAuditRequest {
  std::string image;                 // an archive, or a folder in OCI layout
  std::vector<std::string> targets;  // --for, as of read_target()
  bool check = false;                // also the rules of an image that serves
  bool json = false;
  bool verbose = false;
};

std::span<const Option> image_audit_options();
int run_image_audit(const Context& context, const ImageAuditRequest& request);

}  // namespace cufit::commands
