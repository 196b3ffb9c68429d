// SPDX-License-Identifier: Apache-2.0
// Which environment variables become facts. Used by the probe of the machine and by the reader of
// pasted texts.
#pragma once

#include <string>

namespace cufit::facts {

// It matters to the driver, CUDA, torch or the loader, and its name does not look like a secret's.
bool keeps_variable(const std::string& name);

}  // namespace cufit::facts
