// SPDX-License-Identifier: Apache-2.0
// `--links FILE`: what `cufit doctor --deep` measured on the machine that will train.
#pragma once

#include <string>

#include "base/result.h"
#include "fit/link_time.h"
#include "host/files/host.h"

namespace cufit::commands {

// Of a recording, or of doctor's JSON. Error{usage} where no sum over several GPUs was measured there.
Result<fit::MeasuredLinks> measured_links(const host::Host& files, const std::string& path);

}  // namespace cufit::commands
