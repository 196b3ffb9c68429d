// SPDX-License-Identifier: Apache-2.0
// Names and passwords of a web-config file, checked by the system's libcrypt. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::host {

class PasswordCheck {
 public:
  // Users and bcrypt hashes. Error{unsupported}: libcrypt is not here, or knows no bcrypt.
  static Result<PasswordCheck> open(std::vector<std::pair<std::string, std::string>> users);
  PasswordCheck(PasswordCheck&& other) noexcept;

  // Of an Authorization header: "Basic YW5uOnNlY3JldA==". A hash takes some 50 ms on purpose; what was right once is known
  // again by its SHA-256, so that a scrape each 15 s costs nothing.
  bool allows(std::string_view authorization);

 private:
  using Crypt = char* (*)(const char*, const char*);
  PasswordCheck() = default;
  bool is_right(const std::string& password, const std::string& hash) const;

  Crypt crypt_ = nullptr;
  std::vector<std::pair<std::string, std::string>> users_;
  bool hash_is_right(const std::string& name, const std::string& password);

  std::mutex hash_mutex_;           // crypt() is for one thread
  std::mutex mutex_;                // of what is below
  size_t waiting_ = 0;              // for a hash
  std::string salt_;                // of this process
  std::vector<std::string> known_;  // SHA-256 of salt, name and password; the newest last
};

}  // namespace cufit::host
