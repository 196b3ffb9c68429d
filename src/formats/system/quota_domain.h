// SPDX-License-Identifier: Apache-2.0
// The file of a quota domain (base/abi/quota_domain.h has the bytes): made for a new one, and read from one that processes
// are writing to. Which slots are dead only the machine knows: a reader of a live file asks for their locks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

constexpr uint64_t k_no_quota = UINT64_MAX;

struct QuotaDevice {
  std::string uuid;  // "GPU-00000000-1111-...", "MIG-..."; empty: not known
  std::string pci;   // "0000:65:00.0"; empty: not known
  uint64_t limit_bytes = k_no_quota;
  uint64_t total_bytes = 0;
  uint64_t context_bytes = 0;
  // Read only:
  uint64_t used_bytes = 0;  // of all slots, dead ones included
  uint64_t peak_bytes = 0;
  uint64_t refusals = 0;
  uint64_t driver_refusals = 0;
  uint64_t spilled_bytes = 0;
};

struct QuotaProcess {
  uint64_t lock_offset = 0;  // of the byte that its owner has locked
  uint32_t pid = 0;
  uint64_t start_ticks = 0;
  uint64_t pid_namespace = 0;
  std::string name;
  // By the place of the device in QuotaDomain::devices.
  std::vector<uint64_t> used_bytes;
};

struct QuotaDomain {
  std::string name;
  bool nvml_own_process = false;
  bool charge_managed = false;
  uint64_t default_limit_bytes = k_no_quota;  // for GPUs without a row
  uint64_t default_context_bytes = 0;
  uint64_t created_ns = 0;
  uint32_t slot_count = 256;
  std::vector<QuotaDevice> devices;
  // Read only:
  std::vector<QuotaProcess> processes;
  std::string foreign;               // a library that stands before the driver too
  std::vector<std::string> unknown;  // allocating calls that the guard did not know
};

// The bytes of a new file: write them all (no holes: a full file system must fail here, not in the user's program), mode
// 0600. Errors: more than 16 devices, a uuid or an address that is none, a number of slots outside 1..4096.
Result<std::string> make_quota_domain(const QuotaDomain& domain);

// Bytes that change while they are read give numbers of different moments, never an error.
Result<QuotaDomain> parse_quota_domain(std::string_view bytes);

}  // namespace cufit::formats
