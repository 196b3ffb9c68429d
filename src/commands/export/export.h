// SPDX-License-Identifier: Apache-2.0
// `cufit export`: a lock as the files of other tools.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "commands/command.h"

namespace cufit::commands {

struct ExportRequest {
  std::string to;                    // of report::k_export_formats
  std::optional<std::string> lock;   // a folder or the file
  std::vector<std::string> classes;  // empty: all of the lock
  std::string class_list;            // --classes: the same as one word, "cu126,cpu"
  std::string with;                  // "jupyter,ssh"
  std::string output;                // a file or folder; empty: stdout
  std::optional<std::string> base;   // an image by digest
  std::optional<std::string> gpus;   // a number
  std::string check;                 // an image that is there: does it keep the rules?
  std::optional<std::string> image, space, nodes, shared;  // of a cluster's files
  std::vector<std::string> mig;                            // PROFILE=N
  bool force = false;                                      // files that are there are replaced
  bool json = false;
};

std::span<const Option> export_options();
int run_export(const Context& context, const ExportRequest& request);

}  // namespace cufit::commands
