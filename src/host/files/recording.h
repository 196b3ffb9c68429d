// SPDX-License-Identifier: Apache-2.0
// One file that holds everything a report was made of, so that a colleague can look at it on
// another machine.
//
// A recording is the JSON of facts_json.h after redact(). `load_facts` also takes doctor's JSON
// (its `facts` member) and any torch.utils.collect_env dump, whose facts become `claimed`.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "facts/facts.h"
#include "facts/redact.h"
#include "host/files/host.h"

namespace cufit::host {

// The user's and the machine's names, for facts::redact: from USER, LOGNAME, SUDO_USER, HOME,
// HOSTNAME and the kernel's host name.
std::vector<facts::PrivateName> private_names(const Host& host);

// Writes to `path` through a temporary file beside it: an interrupted write leaves the old file as
// it was.
Result<void> save_recording(const std::string& path, const facts::Facts& facts);

Result<facts::Facts> load_facts(const Host& host, const std::string& path);

}  // namespace cufit::host
