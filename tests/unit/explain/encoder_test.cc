// SPDX-License-Identifier: Apache-2.0
#include "explain/encoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "explain/encoder_kernels.h"
#include "explain/encoder_product.h"
#include "explain/reading.h"
#include "knowledge/knowledge.h"
#include "support/places.h"

namespace cufit::explain {
namespace encoder_test {

std::string split(std::string_view text, size_t most = 100) {
  const PieceTable& table = builtin_encoder().pieces;
  std::string out;
  for (uint32_t piece : word_pieces(text, table, most)) out += std::string(table[piece]) + " ";
  return out;
}

TEST(WordPieces, TakesATextApart) {
  EXPECT_EQ(split("CUDA out of memory."), "cu ##da out of memory . ");
  EXPECT_EQ(split("loss.item()"), "loss . item ( ) ");
  EXPECT_EQ(split("see https://pytorch.org/docs now"), "see now ");
  EXPECT_EQ(split("a\tb\n\nc"), "a b c ");
  EXPECT_EQ(split(""), "");
  EXPECT_EQ(split("one two three", 2), "one two ");
}

TEST(WordPieces, NamesWhatItDoesNotKnow) {
  EXPECT_EQ(split("caf\xC3\xA9 now"), "[UNK] now ");
  EXPECT_EQ(split(std::string(41, 'a') + " now"), "[UNK] now ");
  EXPECT_EQ(split("a\xFF\xC3 \xE6\x98 b"), "a b ");  // no UTF-8: as a space
}

// Texts with the indices and probabilities that the model in PyTorch gives: tools/learn_encoder.py
// writes them beside the weights.
TEST(Encoder, SaysWhatTheModelSaid) {
  std::ifstream file(cufit::test::source_dir() + "/tests/unit/explain/encoder_golden.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  const EncoderWeights& weights = builtin_encoder();
  size_t compared = 0;
  for (const nlohmann::json& one : golden) {
    const auto text = one["evidence"].get<std::string>();
    EXPECT_EQ(word_pieces(text, weights.pieces, weights.positions - 2),
              one["pieces"].get<std::vector<uint32_t>>())
        << text;
    const std::vector<CauseReading> readings = read_report(weights, text);
    ASSERT_EQ(readings.size(), weights.causes.size()) << text;
    for (size_t i = 0; i < readings.size(); ++i) {
      // Rounded activations move a probability by half a percent at most.
      EXPECT_NEAR(readings[i].probability, one["probabilities"][i].get<double>(), 0.01)
          << text << " " << readings[i].cause;
      ++compared;
    }
  }
  EXPECT_GT(compared, 500u);
}

TEST(Encoder, KnowsEveryCauseByItsId) {
  std::set<std::string_view> known;
  for (const auto& finding : knowledge::Knowledge::builtin().findings) known.insert(finding.id);
  EXPECT_EQ(builtin_encoder().causes.size(), 40u);
  for (std::string_view cause : builtin_encoder().causes) EXPECT_TRUE(known.count(cause)) << cause;
}

TEST(Encoder, SaysNothingOfAScriptThatItDoesNotRead) {
  EXPECT_TRUE(read_report(builtin_encoder(), "显存不够了怎么办，训练到一半就报错").empty());
  EXPECT_TRUE(read_report(builtin_encoder(), "").empty());
  EXPECT_TRUE(read_report(builtin_encoder(), " \n ").empty());
}

TEST(Encoder, ReadsNoMoreThanItsPositions) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "memory grows ";
  double sum = 0;
  for (const CauseReading& one : read_report(builtin_encoder(), text)) sum += one.probability;
  EXPECT_NEAR(sum, 1.0, 1e-9);
}

#if defined(__x86_64__)
TEST(EncoderKernels, AreTheSameForEachMachine) {
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this machine has no AVX2";
  std::mt19937 random(7);
  std::uniform_real_distribution<float> any(-3.0f, 3.0f);
  constexpr size_t k_size = 384, k_rows = 5;
  std::vector<float> values(3 * k_rows * k_size);
  for (float& value : values) value = any(random);
  const auto all = [&](const EncoderKernels& kernels) {
    std::vector<float> out = values, shares(32), mixed(k_size);
    kernels.gelu(out.data(), k_size);
    kernels.normalize(out.data() + k_size, k_size, values.data(), values.data() + k_size);
    kernels.add(out.data() + 2 * k_size, values.data(), k_size);
    for (size_t at = 0; at < k_size; at += 32) {
      kernels.attend(values.data() + at, values.data() + k_size + at,
                     values.data() + 2 * k_size + at, k_rows, 2 * k_size, 32, 0.17f, shares.data(),
                     mixed.data() + at);
    }
    out.insert(out.end(), mixed.begin(), mixed.end());
    out.push_back(kernels.largest(values.data(), k_size));
    std::vector<int16_t> whole(2 * k_size), weights(4 * k_size);
    kernels.to_whole(values.data(), 2 * k_size, 1300.0f, whole.data());
    std::vector<uint8_t> times(4 * k_size / 32, 127), fours(2 * k_size);
    random.seed(9);
    for (uint8_t& four : fours) four = static_cast<uint8_t>(random() & 255);
    kernels.unpack(times.data(), fours.data(), times.size(), weights.data());
    int32_t sums[8];
    kernels.tile(weights.data(), whole.data(), whole.data() + k_size, k_size, sums);
    for (int32_t sum : sums) out.push_back(static_cast<float>(sum));
    return out;
  };
  EXPECT_EQ(all(plain::k_kernels), all(avx2::k_kernels));
  if (&encoder_kernels() == &avx512::k_kernels) {
    EXPECT_EQ(all(plain::k_kernels), all(avx512::k_kernels));
  }
}
#endif

TEST(EncoderKernels, ReckonGeluAndSums) {
  const EncoderKernels& kernels = encoder_kernels();
  std::vector<float> values;
  for (int i = -800; i < 800; ++i) values.push_back(static_cast<float>(i) / 64.0f);
  std::vector<float> made = values;
  kernels.gelu(made.data(), made.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    EXPECT_NEAR(made[i], 0.5 * x * (1.0 + std::erf(x / std::sqrt(2.0))), 2e-6) << x;
  }
  // Two rows of numbers with four of weights, the largest that there are: no sum overflows.
  const std::vector<int16_t> numbers(2 * 1536, 1376), weights(4 * 1536, 127 * 8);
  int32_t sums[8];
  kernels.tile(weights.data(), numbers.data(), numbers.data() + 1536, 1536, sums);
  for (int32_t sum : sums) EXPECT_EQ(sum, 1376 * 127 * 8 * 1536);
}

std::string own_bytes() {
  std::ifstream file(cufit::test::source_dir() + "/data/encoder.bin", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(EncoderWeights, AreRefusedWhereTheyAreCutOrDamaged) {
  const std::string bytes = own_bytes();
  ASSERT_TRUE(read_encoder_weights(bytes).has_value());
  for (size_t size : {size_t{0}, size_t{7}, size_t{20}, size_t{52}, size_t{64}, bytes.size() / 1000,
                      bytes.size() / 10, bytes.size() / 2, bytes.size() - 1})
    EXPECT_FALSE(read_encoder_weights(std::string_view(bytes).substr(0, size)).has_value()) << size;
  for (size_t at : {0, 8, 16, 20, 24, 28, 32, 36, 40, 44, 48, 67}) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(0xFF);
    damaged[at + 3] = static_cast<char>(0xFF);
    EXPECT_FALSE(read_encoder_weights(damaged).has_value()) << at;
  }
}

Votes votes_of(double memory) {
  Votes out;
  out.causes = {{"tensors_kept", memory * 0.6, true, memory, 0.6},
                {"graph_retained", memory * 0.4, true, memory, 0.4},
                {"driver_too_old", 1 - memory, false, 1 - memory, 1.0}};
  return out;
}

constexpr std::string_view k_text =
    "total_loss += loss at the end of each step, memory grows by the same amount every iteration";

TEST(Reading, WeighsCausesOfMemoryAmongThemselves) {
  const Votes out = with_reading(votes_of(0.9), formats::plain_text_lines(k_text));
  ASSERT_EQ(out.causes.size(), 3u);
  EXPECT_EQ(out.causes[0].cause, "graph_retained");
  double sum = 0;
  for (const WordVote& vote : out.causes) sum += vote.probability;
  EXPECT_NEAR(sum, 1.0, 1e-9);
}

TEST(Reading, LeavesLongTextsAndOtherMattersAlone) {
  const Votes other = with_reading(votes_of(0.05), formats::plain_text_lines(k_text));
  EXPECT_EQ(other.causes[0].cause, "tensors_kept");
  std::string pages;
  for (int i = 0; i < 100; ++i) pages += std::string(k_text) + "\n";
  const Votes page = with_reading(votes_of(0.9), formats::plain_text_lines(pages));
  EXPECT_EQ(page.causes[0].cause, "tensors_kept");
}

}  // namespace encoder_test
}  // namespace cufit::explain
