// SPDX-License-Identifier: Apache-2.0
// The files of quota domains of this user: one folder, mode 0700, in $XDG_RUNTIME_DIR/cufit, else /dev/shm/cufit-UID, else
// /tmp/cufit-UID. A domain is used while a process has it in its variables or holds a lock in it; one that nobody uses is
// removed by the next start.
#pragma once

#include <string>

#include "base/result.h"
#include "formats/system/quota_domain.h"
#include "host/files/host.h"

namespace cufit::host {

// Made where it is missing. Error{no_permission}: it is another user's, or others may write to it. Error{io}.
Result<std::string> quota_folder(const Host& variables);

struct DomainFile {
  std::string path;
  bool joined = false;  // it was in use: `domain` is what it says
  formats::QuotaDomain domain;
};
// `share` empty: a file of this launch alone. Error{io}: no room (nothing is left), Error{malformed}: in use and damaged,
// Error{no_permission}: another user's.
Result<DomainFile> open_domain_file(const std::string& folder, const std::string& share,
                                    const formats::QuotaDomain& wanted);

// Domains and recordings that nobody uses; never one younger than a minute, and the newest recordings stay.
void remove_unused_domains(const std::string& folder);

// FOLDER/rings/<pid>-<start>, for the recordings of a launch.
Result<std::string> make_ring_folder(const std::string& folder);

}  // namespace cufit::host
