// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/rnn_workspace.h"

#include <gtest/gtest.h>

#include <vector>

#include "knowledge/knowledge.h"

namespace cufit::fit {
namespace rnn_workspace_test {

const knowledge::Knowledge& builtin() { return knowledge::Knowledge::builtin(); }

const LibrarySetup k_hopper{{9, 0}};

// unseen-rnn.pkl.gz, the first two steps: 27 rows of length 149, 37 of 136; an H200.
TEST(RnnWorkspace, IsWhatTheRecordingTook) {
  const auto at = [](uint64_t length, uint64_t batch) {
    const std::vector<uint64_t> numbers = {32,     2,     2,       1, 512, length * batch * 256,
                                           length, batch, 14712832};
    return rnn_workspace(numbers, k_hopper, builtin());
  };
  EXPECT_NEAR(static_cast<double>(at(149, 27).point), 77878752, 100);
  EXPECT_NEAR(static_cast<double>(at(136, 37).point), 89653824, 100);
  EXPECT_GT(at(136, 37).upper, at(136, 37).point);
}

struct Measured {
  uint64_t bits,  // 17: bf16
      mode, layers, directions, input, hidden, length, batch;
  bool drops, packed, backward;
  uint64_t bytes;
};

// What PyTorch 2.11 with cuDNN 9.19 asked its allocator for on an H100.
TEST(RnnWorkspace, IsWhatPyTorchAskedFor) {
  const std::vector<Measured> rows = {
      {32, 1, 1, 1, 256, 512, 100, 32, false, false, false, 43057664},
      {32, 1, 1, 1, 256, 512, 100, 32, false, false, true, 43057664},
      {32, 1, 1, 1, 512, 256, 64, 256, false, true, false, 59769088},
      {32, 1, 1, 2, 80, 320, 200, 8, false, false, true, 39448896},
      {16, 1, 1, 2, 80, 320, 200, 8, false, true, false, 23464192},
      {17, 1, 2, 1, 1, 64, 128, 32, false, false, true, 18530944},
      {17, 1, 2, 1, 300, 900, 64, 20, true, false, false, 31561632},
      {17, 1, 2, 1, 300, 900, 64, 20, true, true, false, 26857472},
      {16, 1, 2, 1, 300, 900, 64, 20, true, true, true, 26857472},
      {17, 1, 2, 2, 2048, 256, 30, 48, false, false, true, 78676608},
      {17, 1, 2, 2, 2048, 256, 30, 48, false, true, false, 63537408},
      {32, 1, 3, 2, 128, 256, 50, 16, true, false, false, 72974720},
      {16, 1, 3, 2, 128, 256, 50, 16, true, true, true, 55722240},
      {16, 2, 1, 1, 512, 256, 64, 20, false, false, true, 15972768},
      {16, 2, 1, 1, 512, 256, 64, 20, false, true, false, 12644608},
      {32, 2, 1, 1, 512, 256, 64, 20, false, true, false, 16900352},
      {16, 2, 1, 1, 512, 1024, 64, 64, false, true, true, 55312640},
      {17, 2, 1, 2, 80, 320, 200, 8, false, false, true, 33540416},
      {16, 2, 1, 2, 80, 320, 200, 8, false, true, true, 31195392},
      {16, 2, 2, 1, 1, 64, 128, 32, false, false, false, 27960320},
      {17, 2, 2, 1, 300, 900, 64, 20, true, true, false, 50329472},
      {32, 2, 2, 2, 2048, 256, 30, 48, false, false, true, 143852160},
      {17, 2, 2, 2, 2048, 256, 30, 48, false, true, true, 73171200},
      {32, 2, 3, 2, 128, 256, 50, 16, true, false, true, 79118720},
      {17, 2, 3, 2, 128, 256, 50, 16, true, true, false, 63504640},
      {16, 3, 1, 1, 512, 256, 64, 256, false, false, true, 85723392},
      {17, 3, 1, 1, 512, 256, 64, 256, false, true, true, 35127552},
      {16, 3, 1, 1, 512, 256, 300, 64, true, false, false, 98206464},
      {17, 3, 1, 2, 80, 320, 200, 8, false, false, false, 30929216},
      {16, 3, 1, 2, 80, 320, 200, 8, false, true, true, 28604672},
      {17, 3, 2, 1, 1, 64, 128, 32, false, true, true, 18449024},
      {17, 3, 2, 1, 512, 512, 100, 40, false, false, false, 44614208},
      {32, 3, 2, 1, 512, 512, 100, 40, false, false, false, 72450624},
      {16, 3, 2, 2, 2048, 256, 30, 48, false, false, true, 84968064},
      {16, 3, 2, 2, 2048, 256, 30, 48, false, true, true, 69828864},
      {32, 3, 3, 2, 128, 256, 50, 16, true, false, true, 73466240},
      {16, 3, 3, 2, 128, 256, 50, 16, true, true, false, 60571904},
  };
  for (const Measured& row : rows) {
    const std::vector<uint64_t> numbers = {row.bits == 17 ? 16 : row.bits,
                                           row.mode,
                                           row.layers,
                                           row.directions,
                                           row.hidden,
                                           row.length * row.batch * row.input,
                                           row.length,
                                           row.batch,
                                           0,
                                           row.drops,
                                           row.packed,
                                           row.input,
                                           row.backward,
                                           row.bits != 17};
    const double bytes = static_cast<double>(row.bytes);
    EXPECT_NEAR(static_cast<double>(rnn_workspace(numbers, k_hopper, builtin()).point), bytes, 512)
        << row.mode << " " << row.layers << " " << row.input << " " << row.hidden;
  }
}

// Lengths that differ: the steps of all sequences count.
TEST(RnnWorkspace, OfPackedSequencesCountsTheirSteps) {
  std::vector<uint64_t> numbers = {32, 2, 1, 1, 512, 64 * 20 * 512, 64, 20, 0, 0, 1, 512, 0, 1};
  const uint64_t full = rnn_workspace(numbers, k_hopper, builtin()).point;
  numbers[5] = 1261 * 512;
  EXPECT_LT(rnn_workspace(numbers, k_hopper, builtin()).point, full);
}

TEST(RnnWorkspace, IgnoresNumbersThatAreNoLayer) {
  const std::vector<uint64_t> good = {32, 2, 2, 1, 512, 64 * 20 * 512, 64, 20, 0, 0, 0, 512, 0, 1};
  ASSERT_GT(rnn_workspace(good, k_hopper, builtin()).point, 0u);
  for (size_t size = 0; size < good.size(); ++size)
    if (size != 9) {
      EXPECT_EQ(rnn_workspace(std::span(good).first(size), k_hopper, builtin()).upper, 0u) << size;
    }
  for (const size_t at : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 11u}) {
    std::vector<uint64_t> wrong = good;
    wrong[at] = uint64_t{1} << 60;
    EXPECT_EQ(rnn_workspace(wrong, k_hopper, builtin()).upper, 0u) << at;
  }
  for (const size_t at : {2u, 3u, 6u, 7u, 11u}) {
    std::vector<uint64_t> wrong = good;
    wrong[at] = 0;
    EXPECT_EQ(rnn_workspace(wrong, k_hopper, builtin()).upper, 0u) << at;
  }
}

}  // namespace rnn_workspace_test
}  // namespace cufit::fit
