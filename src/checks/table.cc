// SPDX-License-Identifier: Apache-2.0
// All checks. To add one: checks/<name>.cc with its declaration, a row here (alphabetical),
// data/findings/<id>.toml and a test. `true` marks checks that are only about the machine as it is:
// they are skipped with --gpu and --driver.
#include "checks/torch_checks.h"

namespace cufit::checks {

namespace {
const CheckRow k_rows[] = {
    {"compat", check_compat},
    {"compute", check_compute, true},
    {"driver_answers", check_driver_answers, true},
    {"driver_floor", check_driver_floor},
    {"driver_window", check_driver_window},
    {"extensions", check_extensions},
    {"gpu_code", check_gpu_code},
    {"mixed_gpus", check_mixed_gpus},
    {"torch_build", check_torch_build},
};
}  // namespace

std::span<const CheckRow> check_table() { return k_rows; }

}  // namespace cufit::checks
