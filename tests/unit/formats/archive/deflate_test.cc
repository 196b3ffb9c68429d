// SPDX-License-Identifier: Apache-2.0
// What deflate writes, zlib expands to the same bytes.
#include <gtest/gtest.h>

#include <random>

#include <zlib.h>

#include "formats/archive/deflate.h"

namespace cufit::formats {
namespace deflate_test {

std::string expand(const std::string& bytes, size_t size) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, -MAX_WBITS), Z_OK);
  std::string out(size + 1, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u);
  out.resize(out.size() - stream.avail_out);
  inflateEnd(&stream);
  return out;
}

TEST(Deflate, ComesBackUnchanged) {
  std::mt19937 random(7);
  for (const size_t size : {0u, 1u, 65535u, 65536u, 3'000'000u}) {
    std::string noise(size, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    const std::string zeros(size, '\0');
    for (const int level : {1, 3, 9}) {
      EXPECT_EQ(expand(deflate(noise, level), size), noise);
      EXPECT_EQ(expand(deflate(zeros, level), size), zeros);
    }
    EXPECT_LE(deflate(zeros, 3).size(), size / 100 + 32);
  }
}

}  // namespace deflate_test
}  // namespace cufit::formats
