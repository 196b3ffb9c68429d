// SPDX-License-Identifier: Apache-2.0
// How a number of a step follows the sizes of the step's batch, from steps over different batches.
// Used by later_batches.cc.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cufit::fit {

// Of a step: the sizes of its batches' tensors, one batch after the other.
using Shape = std::vector<uint64_t>;

// No size is followed further than so many times the largest of the given steps.
constexpr uint64_t k_furthest_shape = 4;

// Sizes that differ between the given steps, each once.
class ShapeColumns {
 public:
  // All of one length, of which each batch has `per_batch`. Looks no further than one more than
  // `most` of them. `cubic`: products of three are terms, too, where few differ.
  ShapeColumns(std::span<const Shape> shapes, size_t per_batch, size_t most, bool cubic = false);

  size_t count() const { return columns_.size(); }
  size_t samples() const { return count() == 0 ? 0 : values_.front().size(); }
  // Whether all that is equal in the given steps, or to another of their sizes, is so here, and
  // nothing is much larger.
  bool covers(const Shape& shape) const;
  // Of the given steps the one whose sizes are nearest.
  size_t nearest(const Shape& shape) const;

  // A size, or the product of two or three of one batch.
  struct Term {
    size_t first = 0, second = SIZE_MAX, third = SIZE_MAX;  // of a Shape
  };
  const std::vector<Term>& terms() const { return terms_; }
  static double value(const Term& term, const Shape& shape);
  double value(const Term& term, size_t sample) const;

 private:
  std::vector<Shape> shapes_;
  std::vector<size_t> columns_;   // of a Shape
  std::vector<size_t> constant_;  // of a Shape
  std::vector<std::pair<size_t, size_t>>
      same_;                                   // of a Shape: a size, and the column that it equals
  std::vector<std::vector<uint64_t>> values_;  // by column, by sample
  std::vector<Term> terms_;
};

// line: constant + slope * term + slope2 * term2; constant: as in every given step; nearest: as in
// the one whose sizes are nearest.
struct ShapeRule {
  enum class Kind : uint8_t { constant, line, nearest };
  Kind kind = Kind::nearest;
  double constant = 0, slope = 0, slope2 = 0;
  ShapeColumns::Term term, term2;

  // Of a line.
  uint64_t at(const Shape& shape) const;
};

// One number per given step: bytes, which may be rounded up (1 %).
ShapeRule shape_rule(const ShapeColumns& columns, std::span<const uint64_t> samples);
// The same of numbers that a line gives as they are, or nothing does.
ShapeRule exact_shape_rule(const ShapeColumns& columns, std::span<const uint64_t> samples);

}  // namespace cufit::fit
