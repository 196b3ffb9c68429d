// SPDX-License-Identifier: Apache-2.0
#include "host/files/secret_file.h"

#include <sys/stat.h>

#include <climits>
#include <cstdlib>

#include "base/format.h"
#include "base/shell_word.h"

namespace cufit::host {
namespace {

constexpr uint32_t k_unknown_owner = 65534;  // an owner outside of this user namespace

// The kubelet keeps a volume's files in a folder "..2026_11_29_10_00_00.123" and exchanges that as a whole.
bool in_kubernetes_volume(const std::string& path) {
  for (size_t at = path.find("/.."); at != path.npos; at = path.find("/..", at + 1))
    if (at + 3 < path.size() && path[at + 3] != '/') return true;
  return false;
}

}  // namespace

SecretExposure secret_exposure(const SecretPlace& place) {
  const bool is_root = place.owner == 0;
  if ((place.mode & 0002) != 0) return SecretExposure::everybody;
  if ((place.mode & 0077) == 0) return SecretExposure::none;
  if (is_root && (place.mode & 0037) == 0) return SecretExposure::none;
  if ((place.mode & 0222) == 0 && (is_root || place.owner == k_unknown_owner))
    return SecretExposure::none;
  if (is_root && (place.mode & 0022) == 0 && in_kubernetes_volume(place.path))
    return SecretExposure::none;
  return SecretExposure::others;
}

SecretExposure secret_exposure(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return SecretExposure::none;
  char* const real = ::realpath(path.c_str(), nullptr);
  const SecretPlace place{status.st_mode, status.st_uid, real == nullptr ? path : real};
  std::free(real);
  return secret_exposure(place);
}

Result<SecretExposure> check_secret(const std::string& path) {
  const SecretExposure out = secret_exposure(path);
  if (out == SecretExposure::everybody)
    return fail(
        Code::no_permission,
        format("`{}`: every user may write it, so what it holds cannot be trusted; write it "
               "anew after `chmod 600 {}`",
               path, shell_word(path)));
  return out;
}

}  // namespace cufit::host
