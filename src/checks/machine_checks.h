// SPDX-License-Identifier: Apache-2.0
// The checks of the machine below torch (kernel driver, GPU health, containers, WSL) and of what
// surrounds torch in an environment, one question each. table.cc lists them; torch_checks.h has
// those of driver, device code and extensions.
#pragma once

#include <vector>

#include "checks/check.h"

namespace cufit::checks {

std::vector<Finding> check_container_gpu(const Input& input);       // container_gpu.cc
std::vector<Finding> check_container_host(const Input& input);      // container_host.cc
std::vector<Finding> check_container_shm(const Input& input);       // container_host.cc
std::vector<Finding> check_cuda_libraries(const Input& input);      // cuda_libraries.cc
std::vector<Finding> check_dependencies(const Input& input);        // dependencies.cc
std::vector<Finding> check_device_nodes(const Input& input);        // device_nodes.cc
std::vector<Finding> check_extension_binaries(const Input& input);  // dependencies.cc
std::vector<Finding> check_fabric(const Input& input);              // fabric.cc
std::vector<Finding> check_gpu_state(const Input& input);           // gpu_state.cc
std::vector<Finding> check_gpus_together(const Input& input);       // gpus_together.cc
std::vector<Finding> check_half_removed(const Input& input);        // torch_install.cc
std::vector<Finding> check_kernel_module(const Input& input);       // kernel_module.cc
std::vector<Finding> check_local_modules(const Input& input);       // python_base.cc
std::vector<Finding> check_memory_health(const Input& input);       // gpu_health.cc
std::vector<Finding> check_no_nvidia_gpu(const Input& input);       // kernel_module.cc
std::vector<Finding> check_nvidia_packages(const Input& input);     // nvidia_packages.cc
std::vector<Finding> check_pci_resources(const Input& input);       // kernel_module.cc
std::vector<Finding> check_pcie_link(const Input& input);           // gpu_state.cc
std::vector<Finding> check_python_choice(const Input& input);       // torch_install.cc
std::vector<Finding> check_python_base(const Input& input);         // python_base.cc
std::vector<Finding> check_requirements(const Input& input);        // requirements.cc
std::vector<Finding> check_nvlinks(const Input& input);             // gpu_health.cc
std::vector<Finding> check_changed_files(const Input& input);       // torch_install.cc
std::vector<Finding> check_system_libraries(const Input& input);    // system_libraries.cc
std::vector<Finding> check_torch_family(const Input& input);        // torch_family.cc
std::vector<Finding> check_torch_install(const Input& input);       // torch_install.cc
std::vector<Finding> check_torch_variables(const Input& input);     // torch_variables.cc
std::vector<Finding> check_visible_devices(const Input& input);     // visible_devices.cc
std::vector<Finding> check_wsl(const Input& input);                 // wsl.cc
std::vector<Finding> check_xids(const Input& input);                // gpu_health.cc

}  // namespace cufit::checks
