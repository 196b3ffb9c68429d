// SPDX-License-Identifier: Apache-2.0
// What Slurm's files say of this node.
#pragma once

#include "formats/system/slurm_conf.h"
#include "host/files/host.h"

namespace cufit::host {

// Of SLURM_CONF, else /etc/slurm/slurm.conf, else the copy of a node without one of its own (/run/slurm/conf), with the files
// that it includes; the first that can be read. The node is SLURMD_NODENAME. Nothing where none can be read.
formats::SlurmNode read_slurm_node(const Host& host);

}  // namespace cufit::host
