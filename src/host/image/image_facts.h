// SPDX-License-Identifier: Apache-2.0
// What an image holds as Facts, by the probes that read a machine. Kernel, devices and processes
// stay not asked: an image has none.
#pragma once

#include "formats/archive/image_manifest.h"
#include "facts/facts.h"
#include "facts/image_tree.h"

namespace cufit::host {

// "x86_64" of "amd64"; other names as they are.
std::string architecture_of(const formats::ImageConfig& config);

facts::Facts read_image_facts(const facts::ImageTree& tree, const formats::ImageConfig& config);

}  // namespace cufit::host
