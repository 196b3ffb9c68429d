// SPDX-License-Identifier: Apache-2.0
// One file that holds everything a report was made of, so that a colleague can look at it on
// another machine.
//
// A recording is the JSON of facts_json.h after redact(). `load_facts` also takes doctor's JSON
// (its `facts` member) and any torch.utils.collect_env dump, whose facts become `claimed`.
#pragma once

#include <string>

#include "base/result.h"
#include "host/facts.h"
#include "host/host.h"

namespace cufit::host {

// Takes out user names, home directories, host names, UUIDs, serials and network addresses, keeping
// equal things equal (the second UUID stays the second). `host` tells which names to look for.
Facts redact(const Host& host, Facts facts);

// Writes to `path` through a temporary file beside it: an interrupted write leaves the old file as
// it was.
Result<void> save_recording(const std::string& path, const Facts& facts);

Result<Facts> load_facts(const Host& host, const std::string& path);

}  // namespace cufit::host
