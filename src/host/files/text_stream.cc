// SPDX-License-Identifier: Apache-2.0
#include "host/files/text_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "base/format.h"
#include "base/reading.h"

namespace cufit::host {
namespace {

constexpr size_t k_piece_bytes = 1 << 20;

Error read_error(int number, const std::string& path) {
  const Code code = number == ENOENT || number == ENOTDIR ? Code::not_found
                    : number == EACCES || number == EPERM ? Code::no_permission
                                                          : Code::io;
  const std::string name = path == "-" ? "standard input" : "`" + path + "`";
  return fail(code, name + ": " + std::generic_category().message(number));
}

}  // namespace

Result<void> read_stream(const std::string& path, const TakePiece& take) {
  const bool standard = path == "-";
  note_reading(path);
  const int number = standard ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (number < 0) return read_error(errno, path);
  struct stat status {};
  const bool sized = ::fstat(number, &status) == 0 && S_ISREG(status.st_mode);
  const uint64_t total = sized ? static_cast<uint64_t>(status.st_size) : 0;
  std::vector<char> piece(k_piece_bytes);
  uint64_t done = 0;
  int error = 0;
  for (;;) {
    const ssize_t got = ::read(number, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    done += static_cast<uint64_t>(got);
    take({piece.data(), static_cast<size_t>(got)}, done, total);
  }
  if (!standard) ::close(number);
  if (error != 0) return read_error(error, path);
  return {};
}

}  // namespace cufit::host
