// SPDX-License-Identifier: Apache-2.0
#include "host/serve/password_check.h"

#include <dlfcn.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "base/sha256.h"

namespace cufit::host {
namespace {

constexpr size_t k_most_known = 64, k_most_waiting = 4, k_most_header = 4096;
constexpr size_t k_cost_at = 4;  // of "$2b$10$..."

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view k_letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const size_t value = k_letters.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<uint32_t>(value)) & 0xffffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  return out;
}

}  // namespace

Result<PasswordCheck> PasswordCheck::open(std::vector<std::pair<std::string, std::string>> users) {
  PasswordCheck out;
  void* library = nullptr;
  for (const char* name : {"libcrypt.so.1", "libcrypt.so.2"})
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(Code::unsupported,
                "passwords need libcrypt (libcrypt.so.1 or libcrypt.so.2; Debian: libcrypt1)");
  out.crypt_ = reinterpret_cast<Crypt>(dlsym(library, "crypt"));
  for (const auto& [name, hash] : users) {
    // Whether its kind is known here, at the least cost: its own may take seconds.
    std::string cheap = hash;
    cheap.replace(k_cost_at, 2, "04");
    const char* made = out.crypt_ == nullptr ? nullptr : out.crypt_("", cheap.c_str());
    if (made == nullptr || std::strlen(made) != hash.size())
      return fail(Code::unsupported,
                  format("libcrypt of this machine cannot check the bcrypt hash of `{}`", name));
  }
  out.users_ = std::move(users);
  out.salt_.resize(32);
  if (getrandom(out.salt_.data(), out.salt_.size(), 0) != static_cast<ssize_t>(out.salt_.size()))
    return fail(Code::io, "the system has no random numbers");
  return out;
}

PasswordCheck::PasswordCheck(PasswordCheck&& other) noexcept
    : crypt_(other.crypt_), users_(std::move(other.users_)), salt_(std::move(other.salt_)) {}

bool PasswordCheck::is_right(const std::string& password, const std::string& hash) const {
  const char* made = crypt_(password.c_str(), hash.c_str());
  if (made == nullptr || std::strlen(made) != hash.size()) return false;
  unsigned char differs = 0;
  for (size_t i = 0; i < hash.size(); ++i)
    differs = static_cast<unsigned char>(differs | (made[i] ^ hash[i]));
  return differs == 0;
}

bool PasswordCheck::allows(std::string_view authorization) {
  if (authorization.size() > k_most_header || lower(authorization.substr(0, 6)) != "basic ")
    return false;
  const std::optional<std::string> both = from_base64(trim(authorization.substr(6)));
  const size_t colon = both ? both->find(':') : std::string::npos;
  if (colon == std::string::npos || contains(*both, std::string_view("\0", 1))) return false;
  const std::string name = both->substr(0, colon), password = both->substr(colon + 1);
  const std::string key = sha256(salt_ + *both);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) return true;
    // Whoever guesses must not hold up who knows: one hash at a time, and few wait for it.
    if (waiting_ >= k_most_waiting) return false;
    ++waiting_;
  }
  const bool right = hash_is_right(name, password);
  const std::lock_guard<std::mutex> lock(mutex_);
  --waiting_;
  if (!right) return false;
  if (known_.size() >= k_most_known) known_.erase(known_.begin());
  known_.push_back(key);
  return true;
}

bool PasswordCheck::hash_is_right(const std::string& name, const std::string& password) {
  const std::lock_guard<std::mutex> lock(hash_mutex_);
  const auto user = std::find_if(users_.begin(), users_.end(),
                                 [&](const auto& one) { return one.first == name; });
  if (users_.empty()) return false;
  // An unknown name takes as long as the first one does, whatever cost its hash has.
  const bool right =
      is_right(password, user == users_.end() ? users_.front().second : user->second);
  return right && user != users_.end();
}

}  // namespace cufit::host
