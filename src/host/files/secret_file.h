// SPDX-License-Identifier: Apache-2.0
// Who beside its owner gets at a file that holds a secret: an address of a chat, a key.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace cufit::host {

enum class SecretExposure {
  none,
  others,     // other users may read it, or a group may write it
  everybody,  // every user may write it, and put something else there
};

struct SecretPlace {
  uint32_t mode = 0;   // st_mode
  uint32_t owner = 0;  // st_uid
  std::string path;    // without links
};

// PostgreSQL's rule for keys: of root's files a group may read, of others nobody else. A file that nobody may write is a mounted
// secret (systemd's credentials: 0400, or 0440 with an ACL; /run/secrets of containers: 0444), where root or an owner that this
// user namespace does not know has made it. So is what lies in a volume of Kubernetes, whose files have mode 0644 unless the pod
// says otherwise.
SecretExposure secret_exposure(const SecretPlace& place);

// Of a regular file; another kind of file, or none: `none`, as reading it says why.
SecretExposure secret_exposure(const std::string& path);

// Error{no_permission}, with the command that mends it, where everybody may write it.
Result<SecretExposure> check_secret(const std::string& path);

}  // namespace cufit::host
