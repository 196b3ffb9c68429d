// SPDX-License-Identifier: Apache-2.0
// The parts of the kernel-driver probe, one file each. Only kernel_driver.cc and
// visible_gpus.cc call them.
#pragma once

#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

// kernel_driver.cc: version, flavour.
void read_module_version(const Host& host, facts::KernelDriver& kernel);
// kernel_install.cc: module_on_disk, package_version.
void read_installed_driver(const Host& host, const facts::Facts& facts,
                           facts::KernelDriver& kernel);
// kernel_nodes.cc: nodes. Needs facts.pci and kernel.version.
void read_device_nodes(const Host& host, const facts::Facts& facts, facts::KernelDriver& kernel);

}  // namespace cufit::host
