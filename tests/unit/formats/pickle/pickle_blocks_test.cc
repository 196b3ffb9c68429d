// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cufit::formats {
namespace pickle_blocks_test {

// Counts up; fails or ends after `size` bytes.
class Counting final : public ByteStream {
 public:
  Counting(size_t size, bool fails) : size_(size), fails_(fails) {}
  Result<size_t> read(std::span<std::byte> out) override {
    if (at_ == size_ && fails_) return fail(Code::malformed, "broken");
    size_t size = std::min({out.size(), size_ - at_, size_t{100'000}});
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

TEST(PickleBlocks, HandsOutTheSameBytesAndTheErrorAfterThem) {
  for (bool fails : {false, true}) {
    for (unsigned threads : {0u, 1u, 4u}) {
      for (size_t size : {size_t{0}, size_t{5}, PickleBlocks::k_usual, size_t{3'000'001}}) {
        Counting input(size, fails);
        PickleBlocks blocks(input, threads);
        EXPECT_EQ(blocks.name(), "counting");
        size_t at = 0;
        for (;;) {
          Result<PickleBlock*> got = blocks.next();
          EXPECT_EQ(got ? "" : got.error().what, fails && at == size ? "broken" : "");
          if (!got || *got == nullptr) break;
          for (size_t i = 0; i < (*got)->size; ++i)
            ASSERT_EQ((*got)->begin[i], static_cast<unsigned char>((at + i) * 7 >> 3));
          at += (*got)->size;
        }
        EXPECT_EQ(at, size);
      }
    }
  }
}

TEST(PickleBlocks, MayBeLeftBeforeTheEnd) {
  Counting input(size_t{1} << 30, false);
  PickleBlocks blocks(input, 2);
  ASSERT_TRUE(blocks.next());
}

}  // namespace pickle_blocks_test
}  // namespace cufit::formats
