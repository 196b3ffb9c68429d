// SPDX-License-Identifier: Apache-2.0
#include "fit/size_regression.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace cufit::fit {
namespace {

// Sizes that are rounded up lie so near a line.
constexpr double k_near = 0.01, k_near_bytes = 512;
constexpr double k_exact = 1e-9;
constexpr double k_most = 0x1p46;
constexpr size_t k_most_cubic = 4;   // columns
constexpr size_t k_most_terms = 60;  // of which planes are tried

struct Fit {
  double constant = 0, slope = 0, slope2 = 0;
  double error = 0;  // the largest, as a share of k_near_bytes + k_near * size
};

double off(double is, double should) {
  return std::abs(is - should) / (k_near_bytes + k_near * std::abs(should));
}

// The line through the samples with the least and the most.
std::optional<Fit> line(const ShapeColumns& columns, const ShapeColumns::Term& term,
                        std::span<const uint64_t> samples) {
  size_t low = 0, high = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (columns.value(term, i) < columns.value(term, low)) low = i;
    if (columns.value(term, i) > columns.value(term, high)) high = i;
  }
  const double from = columns.value(term, low), to = columns.value(term, high);
  if (to <= from) return std::nullopt;
  Fit out;
  out.slope =
      (static_cast<double>(samples[high]) - static_cast<double>(samples[low])) / (to - from);
  out.constant = static_cast<double>(samples[low]) - out.slope * from;
  for (size_t i = 0; i < samples.size(); ++i)
    out.error = std::max(out.error, off(out.constant + out.slope * columns.value(term, i),
                                        static_cast<double>(samples[i])));
  return out;
}

// The plane of least squares, by differences from the means.
std::optional<Fit> plane(const ShapeColumns& columns, const ShapeColumns::Term& a,
                         const ShapeColumns::Term& b, std::span<const uint64_t> samples) {
  const auto count = static_cast<double>(samples.size());
  double mean_a = 0, mean_b = 0, mean = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    mean_a += columns.value(a, i) / count;
    mean_b += columns.value(b, i) / count;
    mean += static_cast<double>(samples[i]) / count;
  }
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double x = columns.value(a, i) - mean_a, z = columns.value(b, i) - mean_b;
    const double y = static_cast<double>(samples[i]) - mean;
    aa += x * x;
    ab += x * z;
    bb += z * z;
    ay += x * y;
    by += z * y;
  }
  const double whole = aa * bb - ab * ab;
  if (!(whole > 1e-6 * aa * bb)) return std::nullopt;  // the two go together
  Fit out;
  out.slope = (ay * bb - by * ab) / whole;
  out.slope2 = (by * aa - ay * ab) / whole;
  out.constant = mean - out.slope * mean_a - out.slope2 * mean_b;
  for (size_t i = 0; i < samples.size(); ++i)
    out.error = std::max(out.error, off(out.constant + out.slope * columns.value(a, i) +
                                            out.slope2 * columns.value(b, i),
                                        static_cast<double>(samples[i])));
  return out;
}

ShapeRule of(const Fit& fit, const ShapeColumns::Term& term, const ShapeColumns::Term& term2) {
  return {ShapeRule::Kind::line, fit.constant, fit.slope, fit.slope2, term, term2};
}

}  // namespace

ShapeColumns::ShapeColumns(std::span<const Shape> shapes, size_t per_batch, size_t most, bool cubic)
    : shapes_(shapes.begin(), shapes.end()) {
  for (size_t at = 0; !shapes_.empty() && at < shapes_.front().size(); ++at) {
    std::vector<uint64_t> values;
    for (const Shape& shape : shapes_) values.push_back(shape[at]);
    const bool varies =
        std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) != values.end();
    if (!varies) {
      constant_.push_back(at);
      continue;
    }
    const auto equal = std::find(values_.begin(), values_.end(), values);
    if (equal != values_.end()) {
      same_.emplace_back(at, columns_[static_cast<size_t>(equal - values_.begin())]);
      continue;
    }
    if (columns_.size() > most) return;
    columns_.push_back(at);
    values_.push_back(std::move(values));
  }
  for (const size_t column : columns_) terms_.push_back({column, SIZE_MAX, SIZE_MAX});
  for (size_t i = 0; i < columns_.size(); ++i)
    for (size_t j = i; j < columns_.size(); ++j)
      if (columns_[i] / per_batch == columns_[j] / per_batch)
        terms_.push_back({columns_[i], columns_[j], SIZE_MAX});
  if (!cubic || columns_.size() > k_most_cubic) return;
  for (size_t i = 0; i < columns_.size(); ++i)
    for (size_t j = i; j < columns_.size(); ++j)
      for (size_t k = j; k < columns_.size(); ++k)
        if (columns_[i] / per_batch == columns_[k] / per_batch)
          terms_.push_back({columns_[i], columns_[j], columns_[k]});
}

double ShapeColumns::value(const Term& term, const Shape& shape) {
  double out = 1;
  for (const size_t at : {term.first, term.second, term.third})
    if (at != SIZE_MAX) out *= static_cast<double>(shape[at]);
  return out;
}

double ShapeColumns::value(const Term& term, size_t sample) const {
  return value(term, shapes_[sample]);
}

bool ShapeColumns::covers(const Shape& shape) const {
  if (shapes_.empty() || shape.size() != shapes_.front().size()) return false;
  for (const size_t at : constant_)
    if (shape[at] != shapes_.front()[at]) return false;
  for (const auto& [at, column] : same_)
    if (shape[at] != shape[column]) return false;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const uint64_t most = *std::max_element(values_[i].begin(), values_[i].end());
    if (shape[columns_[i]] / k_furthest_shape > most) return false;
  }
  return true;
}

size_t ShapeColumns::nearest(const Shape& shape) const {
  size_t out = 0;
  double least = 0;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    double apart = 0;
    for (const size_t column : columns_) {
      const auto a = static_cast<double>(shapes_[i][column]),
                 b = static_cast<double>(shape[column]);
      apart += std::abs(a - b) / std::max(1.0, b);
    }
    if (i != 0 && apart >= least) continue;
    least = apart;
    out = i;
  }
  return out;
}

uint64_t ShapeRule::at(const Shape& shape) const {
  double out = constant + slope * ShapeColumns::value(term, shape);
  if (slope2 != 0) out += slope2 * ShapeColumns::value(term2, shape);
  return static_cast<uint64_t>(std::clamp(std::round(out), 0.0, k_most));
}

namespace {

bool are_equal(std::span<const uint64_t> samples) {
  return std::adjacent_find(samples.begin(), samples.end(), std::not_equal_to<>()) == samples.end();
}

constexpr ShapeRule k_constant{ShapeRule::Kind::constant, 0, 0, 0, {}, {}};

}  // namespace

ShapeRule exact_shape_rule(const ShapeColumns& columns, std::span<const uint64_t> samples) {
  if (are_equal(samples)) return k_constant;
  for (const ShapeColumns::Term& term : columns.terms()) {
    const std::optional<Fit> fit = line(columns, term, samples);
    if (fit && fit->error < k_exact) return of(*fit, term, {});
  }
  return {};
}

ShapeRule shape_rule(const ShapeColumns& columns, std::span<const uint64_t> samples) {
  if (are_equal(samples)) return k_constant;
  const auto& terms = columns.terms();
  ShapeRule best;
  double least = 1;  // beyond which a number follows nothing
  for (const ShapeColumns::Term& term : terms) {
    const std::optional<Fit> fit = line(columns, term, samples);
    if (!fit || fit->error >= least) continue;
    best = of(*fit, term, {});
    least = fit->error;
    if (least < k_exact) return best;
  }
  // A plane goes through any three.
  if (samples.size() < 6 || terms.size() > k_most_terms) return best;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t j = i + 1; j < terms.size(); ++j) {
      const std::optional<Fit> fit = plane(columns, terms[i], terms[j], samples);
      if (!fit || fit->error >= least / 4) continue;  // the simpler one where it is as good
      best = of(*fit, terms[i], terms[j]);
      least = fit->error;
    }
  return best;
}

}  // namespace cufit::fit
