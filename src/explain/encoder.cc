// SPDX-License-Identifier: Apache-2.0
#include "explain/encoder.h"

#include <algorithm>
#include <cmath>

#include "base/parallel.h"
#include "explain/encoder_kernels.h"
#include "explain/encoder_product.h"

namespace cufit::explain {
namespace {

constexpr size_t k_threads = 4;          // a matrix is not worth more
constexpr double k_most_unknown = 0.25;  // of the pieces

class Reading {
 public:
  Reading(const EncoderWeights& weights, const std::vector<uint32_t>& pieces)
      : weights_(weights), rows_(pieces.size()), state_(rows_ * weights.hidden) {
    for (size_t row = 0; row < rows_; ++row) {
      add_row(weights.words, pieces[row], row);
      add_row(weights.places, row, row);
    }
    normalize(weights.norm);
  }

  void pass(const EncoderLayer& layer) {
    attend(product(layer.heads, state_));
    add(product(layer.joined, mixed_));
    normalize(layer.norm1);
    std::vector<float> wide = product(layer.wide, state_);
    kernels_.gelu(wide.data(), wide.size());
    add(product(layer.narrow, wide));
    normalize(layer.norm2);
  }

  // The mean of the pieces, which a cause's weights judge.
  std::vector<double> odds() const {
    std::vector<double> mean(weights_.hidden), out;
    for (size_t i = 0; i < state_.size(); ++i) mean[i % weights_.hidden] += state_[i];
    for (size_t cause = 0; cause < weights_.causes.size(); ++cause) {
      double sum = 0;
      for (size_t i = 0; i < weights_.hidden; ++i)
        sum += mean[i] * static_cast<double>(weights_.cause_weights[cause * weights_.hidden + i]);
      out.push_back(weights_.cause_bias[cause] + sum / static_cast<double>(rows_));
    }
    return out;
  }

 private:
  std::vector<float> product(const Matrix& matrix, const std::vector<float>& in) const {
    std::vector<float> out(rows_ * matrix.rows);
    multiply(matrix, in.data(), rows_, out.data(), k_threads);
    return out;
  }

  void add_row(const Matrix& table, size_t from, size_t row) {
    std::vector<int16_t> whole(weights_.hidden);
    const size_t groups = weights_.hidden / EncoderKernels::k_group;
    kernels_.unpack(table.times.data() + from * groups,
                    table.fours.data() + from * weights_.hidden / 2, groups, whole.data());
    for (size_t i = 0; i < weights_.hidden; ++i)
      state_[row * weights_.hidden + i] += static_cast<float>(whole[i]) * table.scale[from];
  }

  void add(const std::vector<float>& change) {
    kernels_.add(state_.data(), change.data(), state_.size());
  }

  void normalize(const Norm& norm) {
    for (size_t row = 0; row < rows_; ++row)
      kernels_.normalize(state_.data() + row * weights_.hidden, weights_.hidden, norm.scale.data(),
                         norm.shift.data());
  }

  // `asked`: [row][query, key, value][head][width of a head].
  void attend(const std::vector<float>& asked) {
    const size_t width = weights_.hidden, size = width / weights_.heads, stride = 3 * width;
    const float by = 1.0f / std::sqrt(static_cast<float>(size));
    mixed_.assign(rows_ * width, 0);
    in_parallel(weights_.heads, k_threads, [&](size_t head) {
      const float* begin = asked.data() + head * size;
      constexpr size_t k_wide = EncoderKernels::k_wide;
      const size_t padded = (rows_ + k_wide - 1) / k_wide * k_wide;
      std::vector<float> share(padded), keys(size * padded);
      for (size_t row = 0; row < rows_; ++row) {
        for (size_t i = 0; i < size; ++i) keys[i * padded + row] = begin[row * stride + width + i];
      }
      for (size_t row = 0; row < rows_; ++row) {
        kernels_.attend(begin + row * stride, keys.data(), begin + 2 * width, rows_, stride, size,
                        by, share.data(), mixed_.data() + row * width + head * size);
      }
    });
  }

  const EncoderWeights& weights_;
  const EncoderKernels& kernels_ = encoder_kernels();
  const size_t rows_;
  std::vector<float> state_, mixed_;  // [row][hidden]
};

}  // namespace

std::vector<CauseReading> read_report(const EncoderWeights& weights, std::string_view text) {
  if (weights.causes.empty()) return {};
  std::vector<uint32_t> pieces = word_pieces(text, weights.pieces, weights.positions - 2);
  const auto unknown = std::count(pieces.begin(), pieces.end(), weights.pieces.unknown);
  if (static_cast<double>(unknown) >= k_most_unknown * static_cast<double>(pieces.size()))
    return {};
  pieces.insert(pieces.begin(), weights.begin);
  pieces.push_back(weights.end);
  Reading reading(weights, pieces);
  for (const EncoderLayer& layer : weights.layers) reading.pass(layer);
  const std::vector<double> odds = reading.odds();
  const double most = *std::max_element(odds.begin(), odds.end());
  double sum = 0;
  std::vector<CauseReading> out;
  for (size_t i = 0; i < odds.size(); ++i) {
    out.push_back({weights.causes[i], std::exp(odds[i] - most)});
    sum += out.back().probability;
  }
  for (CauseReading& one : out) one.probability /= sum;
  return out;
}

}  // namespace cufit::explain
