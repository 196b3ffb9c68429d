// SPDX-License-Identifier: Apache-2.0
// What is sure in times that scatter. Nothing here supposes how they are distributed, and nothing is drawn by lot: the same
// blocks give the same answer.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace cufit::resolve {

struct Interval {
  double middle = 0, low = 0, high = 0;
};

double median_of(std::vector<double> values);  // 0 of none

// The median and two of the values between which the true median lies with 95 % or more: the k-th smallest and the k-th
// largest, k by the binomial distribution (the inversion of the sign test). Of several intervals that are read side by side
// `together` is their number: then all of them hold at once with 95 % (Bonferroni). nullopt where none of the values are that
// sure: below six of one interval.
constexpr size_t k_least_values = 6;
std::optional<Interval> median_interval(std::vector<double> values, size_t together = 1);

// How much faster `b` is than `a`: rates of the same rounds, an even number of them. Two neighbouring rounds (A B, B A) give
// one ratio, their geometric mean, in which a drift of the card cancels out. nullopt below rounds_for() these.
constexpr size_t k_least_rounds = 2 * k_least_values;
std::optional<Interval> ratio_interval(const std::vector<double>& a, const std::vector<double>& b,
                                       size_t together = 1);

size_t comparisons_of(size_t sides);  // each two of them, once
// The fewest rounds with which all comparisons of so many sides have an interval.
size_t rounds_for(size_t sides);

enum class Difference { none, slower, faster };
// None where 1 lies in the interval, the ends included.
Difference difference_of(const Interval& ratio);

// Times of warm-up blocks no longer move: the median of the last three lies among the three before, or within 1 % of their
// median. Below six it is not known: false.
bool is_steady(const std::vector<double>& seconds);

}  // namespace cufit::resolve
