// SPDX-License-Identifier: Apache-2.0
#include "host/files/file_stamp.h"

#include <sys/stat.h>

#include "base/format.h"

namespace cufit::host {

std::string file_stamp(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return format("{}:{}:{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

}  // namespace cufit::host
