// SPDX-License-Identifier: Apache-2.0
// Standard input or a pipe as a file: what has to be read in any order (`gzip -dc run.pickle.gz |
// cufit mem explain -`) is copied to a file without a name first, which goes with the process.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "host/files/host.h"

namespace cufit::host {

// "-" and named pipes are copied, to $TMPDIR or /tmp; any other path is host.open(path). Errors
// name the input and, where it cannot be kept, the folder.
Result<std::unique_ptr<ByteSource>> open_input(const Host& host, const std::string& path);

}  // namespace cufit::host
