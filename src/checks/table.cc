// SPDX-License-Identifier: Apache-2.0
// All checks. To add one: checks/<name>.cc, a line in rows.h, a row here (alphabetical), data/findings/<id>.toml and
// a test. `true` marks checks that are only about the machine as it is: they are skipped with --gpu and --driver.
#include "checks/rows.h"

namespace cufit::checks {

namespace {
const CheckRow k_rows[] = {
    {"torch_build", torch_build},
};
}  // namespace

std::span<const CheckRow> check_table() { return k_rows; }

}  // namespace cufit::checks
