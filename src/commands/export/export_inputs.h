// SPDX-License-Identifier: Apache-2.0
// What `cufit export` reads: the lock with its pylock files, and the options that are about them.
#pragma once

#include "commands/command.h"
#include "commands/export/export.h"
#include "report/export.h"

namespace cufit::commands {

Result<report::ExportView> read_export_view(const Context& context, const ExportRequest& request);

}  // namespace cufit::commands
