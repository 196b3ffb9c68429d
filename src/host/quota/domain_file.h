// SPDX-License-Identifier: Apache-2.0
// The files of quota domains of this user, in quota_folder(): made, joined and removed. A domain is used while its launch lives,
// a process has it in its variables, or somebody holds a lock in it (base/abi/quota_domain.h).
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "formats/system/quota_domain.h"
#include "host/files/host.h"
#include "host/process/spawn.h"

namespace cufit::host {

struct DomainFile {
  std::string path;
  bool joined = false;  // it was in use: `domain` is what it says
  formats::QuotaDomain domain;
  // Held until this process becomes its program, which has the domain in its variables.
  FileHandle launching;
};
// `share` empty: a file of this launch alone. Error{io}: no room (nothing is left), Error{malformed}: in use and damaged,
// Error{no_permission}: another user's.
Result<DomainFile> open_domain_file(const std::string& folder, const std::string& share,
                                    const formats::QuotaDomain& wanted);

// For whoever made or joined it, once nothing more is started; a domain that others use stays.
void leave_domain(DomainFile& domain);

// Of those of the folders that are there and this user's: domains, recordings and folders of MPS that nobody uses. Never a
// shared domain younger than a minute nor the newest recordings; what another pid namespace made stays a week.
void remove_unused_domains(const std::vector<std::string>& folders);

// What an open file of a domain says. Errors name no file: Error{io}, Error{malformed}.
Result<formats::QuotaDomain> read_domain(int file);

// Whether a launch or a program has it: who opened it would join.
bool is_domain_used(const std::string& path);

// "share-NAME.domain" in the folder of quotas; empty: there is no such folder.
std::string share_domain_path(const Host& variables, const std::string& share);

// FOLDER/rings/LAUNCH, for the recordings of a launch.
Result<std::string> make_ring_folder(const std::string& folder);

}  // namespace cufit::host
