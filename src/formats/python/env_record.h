// SPDX-License-Identifier: Apache-2.0
// .cufit/envs/<class>.json beside an environment that cufit made: from which lock, when, by what.
// An environment without one is not cufit's and is never removed or replaced.
//
//   { "schema": "cufit.env/1", "class": "cu126", "pylock": "pylock.cu126.toml",
//     "pylock_sha256": "...", "created": "2026-11-21T23:05:00Z", "installer": "uv 0.13.9",
//     "python": "3.11", "torch": "2.7.1+cu126", "packages": 24, "bytes": 1, "shared_bytes": 1 }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::formats {

struct EnvRecord {
  std::string name;           // of the class
  std::string pylock;         // file name
  std::string pylock_sha256;  // of that file when the environment was made
  std::string created;        // UTC
  std::string installer;      // "uv 0.13.9"
  std::string python, torch;
  uint64_t packages = 0;
  uint64_t bytes = 0;         // of all files
  uint64_t shared_bytes = 0;  // of these, files that had another hard link (the installer's cache)
};

// Error{malformed} or Error{unsupported} (another schema) names the file.
Result<EnvRecord> parse_env_record(std::string_view json, const std::string& file);
std::string env_record_text(const EnvRecord& record);

}  // namespace cufit::formats
