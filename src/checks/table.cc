// SPDX-License-Identifier: Apache-2.0
// All checks. To add one: checks/<name>.cc with its declaration, a row here (alphabetical),
// data/findings/<id>.toml and a test. `true` marks checks that are only about the machine as it is:
// they are skipped with --gpu and --driver.
#include "checks/machine_checks.h"
#include "checks/torch_checks.h"

namespace cufit::checks {

namespace {
const CheckRow k_table_rows[] = {
    {"build_tools", check_build_tools},
    {"changed_files", check_changed_files},
    {"compat", check_compat},
    {"compute", check_compute, true},
    {"container_gpu", check_container_gpu, true},
    {"container_host", check_container_host, true},
    {"container_shm", check_container_shm, true},
    {"cuda_libraries", check_cuda_libraries},
    {"dependencies", check_dependencies},
    {"device_nodes", check_device_nodes, true},
    {"driver_answers", check_driver_answers, true},
    {"driver_floor", check_driver_floor},
    {"driver_window", check_driver_window},
    {"extension_binaries", check_extension_binaries},
    {"extensions", check_extensions},
    {"fabric", check_fabric, true},
    {"gpu_code", check_gpu_code},
    {"gpu_state", check_gpu_state, true},
    {"gpus_together", check_gpus_together, true},
    {"half_removed", check_half_removed},
    {"kernel_module", check_kernel_module, true},
    {"local_modules", check_local_modules},
    {"memory_health", check_memory_health, true},
    {"mixed_gpus", check_mixed_gpus},
    {"no_nvidia_gpu", check_no_nvidia_gpu, true},
    {"nvidia_packages", check_nvidia_packages},
    {"nvlinks", check_nvlinks, true},
    {"pci_resources", check_pci_resources, true},
    {"pcie_link", check_pcie_link, true},
    {"python_base", check_python_base},
    {"python_choice", check_python_choice},
    {"requirements", check_requirements},
    {"system_libraries", check_system_libraries},
    {"torch_build", check_torch_build},
    {"torch_family", check_torch_family},
    {"torch_install", check_torch_install},
    {"torch_variables", check_torch_variables},
    {"visible_devices", check_visible_devices, true},
    {"wsl", check_wsl, true},
    {"xids", check_xids, true},
};
}  // namespace

std::span<const CheckRow> check_table() { return k_table_rows; }

}  // namespace cufit::checks
