// SPDX-License-Identifier: Apache-2.0
// Where the files of `cufit export` go.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "commands/export/export.h"
#include "report/export.h"

namespace cufit::commands {

// One file to -o itself, unless that is a folder; several into the folder. Error: several files and
// no folder.
Result<std::vector<std::string>> chosen_places(const ExportRequest& request,
                                               const std::vector<report::ExportFile>& files);
// All of them or none: one that exists is replaced with `force` alone.
Result<void> write_files(const std::vector<report::ExportFile>& files,
                         const std::vector<std::string>& paths, bool force);

}  // namespace cufit::commands
