// SPDX-License-Identifier: Apache-2.0
// A file on a server as bytes that are fetched where they are read, by ranges: the directory of a
// wheel of 800 MB and one of its members cost what they are long. Never more than a bound in all.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/result.h"
#include "host/process/child_process.h"

namespace cufit::host {

struct HttpSourceOptions {
  uint64_t most_bytes = 256u << 20;  // of all answers together
  double stall_seconds = 20;
};

// Error{unsupported}: the server knows no ranges; {not_found}; others as of http_get. `interrupts`
// must live as long. Reading beyond the bound, and a file that changes meanwhile, are errors, too.
Result<std::unique_ptr<ByteSource>> open_http_source(const std::string& url, Interrupts& interrupts,
                                                     const HttpSourceOptions& options = {});

}  // namespace cufit::host
