// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/compressed_input.h"

#include <gtest/gtest.h>

#include <zlib.h>
#include <zstd.h>

namespace cufit::formats {
namespace compressed_input_test {

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), 0);
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 3));
  return out;
}

std::string varied(size_t size) {
  std::string out;
  uint32_t state = 1;
  while (out.size() < size) {
    state = state * 1664525 + 1013904223;
    out += static_cast<char>('a' + (state >> 28));
  }
  return out;
}

// All of it in reads of `piece` bytes, or the error.
std::string read(const std::string& file, size_t piece, const ExpandLimits& limits = {}) {
  auto input = CompressedInput::open(std::make_shared<MemorySource>("f", file), limits);
  if (!input) return input.error().what;
  std::string out;
  std::vector<std::byte> buffer(piece);
  for (;;) {
    Result<size_t> got = input->read(buffer);
    if (!got) return got.error().what;
    if (*got == 0) return out;
    out.append(reinterpret_cast<const char*>(buffer.data()), *got);
  }
}

TEST(CompressedInput, ExpandsGzipAndZstdAndPassesTheRestThrough) {
  for (size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{700'000}}) {
    std::string bytes = varied(size);
    for (const std::string& file : {bytes, gzip(bytes), zstd(bytes)}) {
      for (size_t piece : {size_t{17}, size_t{4096}, size_t{1} << 18}) {
        EXPECT_EQ(read(file, piece), bytes) << size << " " << piece;
      }
    }
  }
}

TEST(CompressedInput, ReadsSeveralMembersAndPadding) {
  std::string a = varied(5000), b = varied(300);
  EXPECT_EQ(read(gzip(a) + gzip(b), 64), a + b);
  EXPECT_EQ(read(zstd(a) + zstd(b), 64), a + b);
  EXPECT_EQ(read(gzip(a) + std::string(512, 0), 64), a);
  EXPECT_NE(read(gzip(a) + "rubbish", 64).find("damaged gzip data"), std::string::npos);
}

TEST(CompressedInput, SaysWhereDataIsCutOffOrDamaged) {
  std::string bytes = varied(300'000);
  for (const std::string& file : {gzip(bytes), zstd(bytes)}) {
    for (size_t size : {size_t{5}, file.size() / 2, file.size() - 1}) {
      std::string got = read(file.substr(0, size), 4096);
      EXPECT_NE(got.find("at byte " + std::to_string(size)), std::string::npos) << got;
    }
  }
  std::string broken = gzip(bytes);
  broken[broken.size() - 6] ^= 1;  // its checksum
  EXPECT_NE(read(broken, 4096).find("damaged gzip data"), std::string::npos);
  broken = zstd(bytes);
  broken[broken.size() / 2] ^= 0x55;
  EXPECT_NE(read(broken, 4096), bytes);
}

TEST(CompressedInput, StopsBombs) {
  std::string zeros(96u << 20, 0);
  for (const std::string& file : {gzip(zeros), zstd(zeros)}) {
    EXPECT_NE(read(file, 1 << 20).find("expands to more than"), std::string::npos);
    ExpandLimits limits;
    limits.ratio = 1u << 30;
    EXPECT_EQ(read(file, 1 << 20, limits).size(), zeros.size());
    limits.total_bytes = zeros.size();
    EXPECT_EQ(read(file, 1 << 20, limits).size(), zeros.size());
    limits.total_bytes = zeros.size() - 1;
    EXPECT_NE(read(file, 1 << 20, limits).find("expands to more than"), std::string::npos);
    limits.total_bytes = 1u << 20;
    EXPECT_NE(read(file, 1 << 16, limits).find("expands to more than"), std::string::npos);
  }
}

}  // namespace compressed_input_test
}  // namespace cufit::formats
