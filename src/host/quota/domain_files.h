// SPDX-License-Identifier: Apache-2.0
// The files of quota domains on this machine and which of their processes live. A file is only read: nothing is locked,
// swept or written.
#pragma once

#include <string>
#include <vector>

#include "facts/quota_domains.h"
#include "host/files/host.h"

namespace cufit::host {

// Where domains of this user may lie; root: of all users. Folders that are there alone.
std::vector<std::string> domain_folders(const Host& host);

// Every domain in those folders. What is another user's, or no domain, is said and skipped.
facts::QuotaDomains read_quota_domains(const Host& host);

// One file. Errors: not there, another user's (but for root), not the file of a domain.
Result<facts::LiveDomain> read_quota_domain(const Host& host, const std::string& path);

}  // namespace cufit::host
