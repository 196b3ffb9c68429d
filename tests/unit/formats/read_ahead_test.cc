// SPDX-License-Identifier: Apache-2.0
#include "formats/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cufit::formats {
namespace {

// Counts up; fails or ends after `size` bytes.
class Counting final : public ByteStream {
 public:
  Counting(size_t size, bool fails) : size_(size), fails_(fails) {}
  Result<size_t> read(std::span<std::byte> out) override {
    if (at_ == size_ && fails_) return fail(Code::malformed, "broken");
    size_t size = std::min(out.size(), size_ - at_);
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>((at_ + i) * 7 >> 3);
    at_ += size;
    return size;
  }
  const std::string& name() const override { return name_; }

 private:
  size_t size_, at_ = 0;
  bool fails_;
  std::string name_ = "counting";
};

TEST(ReadAhead, HandsOutTheSameBytesAndTheErrorAfterThem) {
  for (bool fails : {false, true}) {
    for (size_t size : {size_t{0}, size_t{5}, size_t{256} << 10, size_t{3'000'001}}) {
      Counting input(size, fails);
      ReadAhead ahead(input);
      EXPECT_EQ(ahead.name(), "counting");
      std::vector<std::byte> piece(100'000);
      size_t at = 0;
      for (;;) {
        Result<size_t> got = ahead.read(piece);
        EXPECT_EQ(got ? "" : got.error().what, fails && at == size ? "broken" : "");
        if (!got || *got == 0) break;
        for (size_t i = 0; i < *got; ++i) {
          ASSERT_EQ(piece[i], static_cast<std::byte>((at + i) * 7 >> 3));
        }
        at += *got;
      }
      EXPECT_EQ(at, size);
    }
  }
}

TEST(ReadAhead, MayBeLeftBeforeTheEnd) {
  Counting input(size_t{1} << 30, false);
  ReadAhead ahead(input);
  std::byte one[1];
  ASSERT_TRUE(ahead.read(one));
}

}  // namespace
}  // namespace cufit::formats
