// SPDX-License-Identifier: Apache-2.0
#include "fit/exact_size_rule.h"

#include <algorithm>
#include <numeric>

#include "base/format.h"

namespace cufit::fit {
namespace {

using Wide = __int128;

constexpr Wide k_max_size = Wide{1} << 56;  // 64 PiB: beyond any machine
constexpr Wide k_max_coefficient = INT64_MAX;

bool fits(Wide value) { return value <= k_max_coefficient && value >= -k_max_coefficient; }

Wide floor_div(Wide a, Wide b) {  // b > 0
  const Wide quotient = a / b;
  return quotient - (a % b != 0 && a < 0 ? 1 : 0);
}
Wide ceil_div(Wide a, Wide b) { return -floor_div(-a, b); }

// The line through two traced points, at `batch`: numerator over `run`, which is positive.
struct ExactSizeRuleLine {
  Wide b0, s0, rise, run;
  Wide above(Wide batch) const { return s0 * run + rise * (batch - b0); }
};
ExactSizeRuleLine line_through(Wide b0, Wide s0, Wide b1, Wide s1) {
  return {b0, s0, s1 - s0, b1 - b0};
}

// quadratic * b^2 + slope * b through the first and the last point, if whole and never falling.
bool quadratic_through(std::span<const uint64_t> batches, std::span<const uint64_t> sizes,
                       Size& out) {
  const Wide b0 = batches.front(), b1 = batches.back();
  const Wide s0 = sizes.front(), s1 = sizes.back();
  // q = (s1 / b1 - s0 / b0) / (b1 - b0); below 2^56 * 2^24 each
  const Wide numerator = s1 * b0 - s0 * b1;
  const Wide denominator = b0 * b1 * (b1 - b0);
  if (numerator <= 0 || numerator % denominator != 0) return false;
  const Wide q = numerator / denominator;
  if (!fits(q) || s0 < q * b0 * b0 || (s0 - q * b0 * b0) % b0 != 0) return false;
  const Wide slope = (s0 - q * b0 * b0) / b0;
  // Two points always have such a curve; two numbers are proved by one number only.
  if (batches.size() == 2 && slope != 0) return false;
  for (size_t i = 0; i < batches.size(); ++i)
    if (q * batches[i] * batches[i] + slope * batches[i] != static_cast<Wide>(sizes[i]))
      return false;
  if (!fits(slope)) return false;
  out.quadratic = static_cast<int64_t>(q);
  out.slope = static_cast<int64_t>(slope);
  out.rule = SizeRule::quadratic;
  return true;
}

struct Bounds {
  Wide point, upper;
};

// A line's values, rounded up to multiples of `g` where traced, lie less than g above the line: so
// it runs through a band of height g below each traced point.
Bounds rounded_at(std::span<const uint64_t> batches, std::span<const uint64_t> sizes, Wide g,
                  Wide batch) {
  Bounds out{0, -1};
  for (size_t i = 0; i < batches.size(); ++i)
    for (size_t j = i + 1; j < batches.size(); ++j) {
      const Wide b0 = batches[i], b1 = batches[j], s0 = sizes[i], s1 = sizes[j];
      ExactSizeRuleLine most = line_through(b0, s0, b1, s1);
      if (batch > b1) most = line_through(b0, s0 - g, b1, s1);
      if (batch < b0) most = line_through(b0, s0, b1, s1 - g);
      const Wide upper = floor_div(ceil_div(most.above(batch), most.run) + g - 1, g) * g;
      if (out.upper < 0 || upper < out.upper) out.upper = upper;
    }
  const ExactSizeRuleLine whole =
      line_through(batches.front(), sizes.front(), batches.back(), sizes.back());
  out.point = floor_div(2 * whole.above(batch) + g * whole.run, 2 * g * whole.run) * g;  // nearest
  out.upper = std::max(out.upper, out.point);
  return out;
}

// Faster than the batch size and by no rule: the line through the last two points above them, the
// line from nothing to the first one below; the bound grows with the square.
Bounds unclear_at(std::span<const uint64_t> batches, std::span<const uint64_t> sizes, Wide batch) {
  const Wide first_batch = batches.front(), first = sizes.front();
  const Wide last_batch = batches.back(), last = sizes.back();
  Wide most = 0;
  for (const uint64_t size : sizes) most = std::max<Wide>(most, size);
  if (batch < first_batch) return {ceil_div(first * batch, first_batch), most};
  if (batch < last_batch) {
    size_t next = 1;
    while (batch > static_cast<Wide>(batches[next])) ++next;
    const ExactSizeRuleLine line =
        line_through(batches[next - 1], sizes[next - 1], batches[next], sizes[next]);
    return {ceil_div(line.above(batch), line.run), most};
  }
  const size_t n = batches.size();
  const ExactSizeRuleLine line = line_through(batches[n - 2], sizes[n - 2], last_batch, last);
  const Wide point = std::max<Wide>(ceil_div(line.above(batch), line.run), 0);
  // 2^56 * 2^48: within 128 bit.
  const Wide square = ceil_div(std::max(last, most) * batch * batch, last_batch * last_batch);
  return {point, std::max(point, square)};
}

}  // namespace

const char* to_string(SizeRule rule) {
  switch (rule) {
    case SizeRule::constant:
      return "constant";
    case SizeRule::affine:
      return "affine";
    case SizeRule::quadratic:
      return "quadratic";
    case SizeRule::rounded:
      return "rounded";
    case SizeRule::unclear:
      return "unclear";
    case SizeRule::traced:
      return "traced";
  }
  return "?";
}

Size rule_for(std::span<const uint64_t> batches, std::span<const uint64_t> sizes) {
  Size out;
  if (batches.size() == 1) {
    out.rule = SizeRule::traced;
    return out;
  }
  out.rule = SizeRule::unclear;
  uint64_t granularity = 0;
  for (const uint64_t size : sizes) {
    if (size > static_cast<uint64_t>(k_max_size)) return out;
    granularity = std::gcd(granularity, size);
  }
  out.granularity = std::max<uint64_t>(granularity, 1);
  if (std::all_of(sizes.begin(), sizes.end(), [&](uint64_t size) { return size == sizes[0]; })) {
    out.rule = SizeRule::constant;
    out.constant = static_cast<int64_t>(sizes[0]);
    return out;
  }
  const ExactSizeRuleLine line =
      line_through(batches.front(), sizes.front(), batches.back(), sizes.back());
  bool on_line = true, near_line = true;
  for (size_t i = 1; i + 1 < batches.size(); ++i) {
    const Wide off = static_cast<Wide>(sizes[i]) * line.run - line.above(batches[i]);
    on_line = on_line && off == 0;
    near_line = near_line && off < Wide{out.granularity} * line.run &&
                off > -Wide{out.granularity} * line.run;
  }
  const bool whole = line.rise % line.run == 0;
  const Wide slope = line.rise / line.run;
  const Wide constant = line.s0 - slope * line.b0;
  // Two points always lie on a line. One that is below nothing at a batch of none grows faster than
  // the batch size, if it is a size at all: it takes a third point to prove it.
  const bool credible = batches.size() > 2 || constant >= 0;
  if (on_line && whole && credible && fits(slope) && fits(constant)) {
    out.rule = SizeRule::affine;
    out.constant = static_cast<int64_t>(constant);
    out.slope = static_cast<int64_t>(slope);
    return out;
  }
  if (quadratic_through(batches, sizes, out)) return out;
  if (near_line && line.above(0) > -Wide{out.granularity} * line.run) out.rule = SizeRule::rounded;
  return out;
}

Result<SizeAt> size_at(const StepProgram& program, const Size& size, uint64_t batch) {
  const std::span traced =
      std::span(program.traced_sizes).subspan(size.traced, program.batches.size());
  for (size_t i = 0; i < traced.size(); ++i)
    if (program.batches[i] == batch) return SizeAt{traced[i], traced[i]};
  if (size.rule == SizeRule::traced)
    return fail(
        Code::unsupported,
        format("batch size {} was not traced, and one trace says nothing of others", batch));
  const Wide b = batch;
  Bounds out{};
  if (batch > uint64_t{1} << 24) {
    out = {k_max_size + 1, 0};
  } else if (size.rule == SizeRule::rounded) {
    out = rounded_at(program.batches, traced, size.granularity, b);
  } else if (size.rule == SizeRule::unclear) {
    for (const uint64_t one : traced)
      if (one > static_cast<uint64_t>(k_max_size)) return SizeAt{one, one};
    out = unclear_at(program.batches, traced, b);
  } else {
    const Wide slopes = (Wide{size.quadratic} * b + size.slope) * b;
    out.point = out.upper = slopes + size.constant;
  }
  if (out.point < 0 || out.point > k_max_size || out.upper > k_max_size)
    return fail(
        Code::unsupported,
        format("at batch size {} a storage or shape would be negative or beyond any machine",
               batch));
  return SizeAt{static_cast<uint64_t>(out.point), static_cast<uint64_t>(out.upper)};
}

Result<std::vector<SizeAt>> sizes_at(const StepProgram& program, uint64_t batch) {
  std::vector<SizeAt> out;
  out.reserve(program.sizes.size());
  for (const Size& size : program.sizes) {
    CUFIT_TRY(at, size_at(program, size, batch));
    out.push_back(at);
  }
  return out;
}

}  // namespace cufit::fit
