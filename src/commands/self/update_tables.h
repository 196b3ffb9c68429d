// SPDX-License-Identifier: Apache-2.0
// `cufit self update-tables`: newer tables without a newer cufit, and what every start makes of them.
#pragma once

#include <memory>
#include <string>

#include "commands/self/self.h"
#include "host/files/host.h"
#include "knowledge/updated_tables.h"

namespace cufit::commands {

// The tables of this user, else the built-in ones.
struct TablesInUse {
  std::unique_ptr<knowledge::UpdatedTables> updated;  // null: built-in
  std::string note;  // why a file that is there is not used; of one that is only older, too
  bool older = false;
};
TablesInUse tables_in_use(const host::Host& machine);

int run_update_tables(const Context& context, const SelfRequest& request);

}  // namespace cufit::commands
