// SPDX-License-Identifier: Apache-2.0
// How much a user may still write. Many filesystems keep a part for root, others keep nothing, so
// that the answer of the filesystem at hand may not tell the two apart: here it is a made one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "host/install/environments.h"
#include "support/fake_root.h"

namespace free_space_test {

constexpr std::string_view k_reserving = "/with-a-reserve-for-root";

bool reserves(std::string_view path) {
  return path.size() >= k_reserving.size() &&
         path.substr(path.size() - k_reserving.size()) == k_reserving;
}

}  // namespace free_space_test

// Goes before the one of the C library for the whole test program; others than k_reserving are
// asked as they are.
extern "C" int statvfs(const char* path, struct statvfs* out) noexcept {
  const int file = ::open(path, O_PATH | O_CLOEXEC);
  if (file < 0) return -1;
  const int result = ::fstatvfs(file, out);
  const int error = errno;
  ::close(file);
  errno = error;
  if (result == 0 && free_space_test::reserves(path)) {
    out->f_frsize = 1024;
    out->f_bsize = 65536;
    out->f_blocks = 1000;
    out->f_bfree = 150;
    out->f_bavail = 100;
  }
  return result;
}

namespace cufit::host {
namespace {

TEST(SpaceAt, IsWhatThisUserMayWrite) {
  test::FakeRoot root;
  root.folder(free_space_test::k_reserving);
  const std::optional<Space> space = space_at(root.at(free_space_test::k_reserving));
  ASSERT_TRUE(space);
  EXPECT_EQ(space->free_bytes, 100u * 1024);
}

}  // namespace
}  // namespace cufit::host
