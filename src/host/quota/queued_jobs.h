// SPDX-License-Identifier: Apache-2.0
// Who waits for a GPU and who was started on one, by the tickets of the queues (host/quota/wait_tickets.h).
#pragma once

#include <vector>

#include "facts/quota_domains.h"
#include "host/files/host.h"

namespace cufit::host {

// In the queue of CUFIT_QUEUE and in those of this user (root: of all users), each first come first. Nothing is written.
std::vector<facts::QueuedJob> read_queued_jobs(const Host& host);

}  // namespace cufit::host
