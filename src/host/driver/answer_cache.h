// SPDX-License-Identifier: Apache-2.0
// What the driver said about the devices that a process sees, kept on the disk so that the next
// launch need not start the driver again (some 100 to 300 ms). One file per key below
// $XDG_CACHE_HOME/cufit/gpus (else ~/.cache/cufit/gpus), mode 0600.
//
// An entry holds the whole text of its key (host/driver/gpu_access.h: boot, driver, devices,
// variables) and the moment it was made on the clock that runs from the boot on. It is used only
// while the key is the same to the byte, it is younger than its life, it belongs to this user
// alone, and its checksum is right; anything else counts as no entry. Writing goes beside and is
// renamed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

constexpr uint64_t k_answer_life_seconds = 24 * 3600;
constexpr uint64_t k_no_device_life_seconds = 600;

// Kept: devices, or that there are none; never a failure.
// cuda: library, init_result, driver_version, device_count, devices' identity; nvml:
// driver_version, cuda_version. `seconds` is the clock now (boot_seconds()).
class AnswerCache {
 public:
  // Variables of `host` say where; no folder = nothing is kept and nothing found.
  explicit AnswerCache(const Host& host);
  const std::string& folder() const { return folder_; }

  bool load(const std::string& key, uint64_t seconds, facts::Facts& facts) const;
  Result<void> save(const std::string& key, uint64_t seconds, const facts::Facts& facts) const;
  std::string file_of(const std::string& key) const;

 private:
  std::string folder_;
};

uint64_t boot_seconds();  // CLOCK_BOOTTIME

// A body with the line that holds its checksum.
std::string sealed(std::string body);
// The text of an entry and back; false where anything about it is wrong.
std::string entry_text(const std::string& key, uint64_t seconds, const facts::Facts& facts);
bool read_entry(const std::string& text, const std::string& key, uint64_t seconds,
                facts::Facts& facts);

}  // namespace cufit::host
