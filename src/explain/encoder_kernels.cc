// SPDX-License-Identifier: Apache-2.0
// Compiled with CUFIT_KERNELS=plain and, with the compiler's flags of these, =avx2 and =avx512.
// Nothing that another file may share is used here (no inline function of a library): the linker
// keeps one of each, and the machine may not have them. Sums of floats are kept in parts of eight,
// so their order is the same in all.
#include "explain/encoder_kernels.h"

namespace cufit::explain::CUFIT_KERNELS {
namespace {

// Eight floats; a machine whose registers are narrower takes two for them.
constexpr size_t k_parts = 8;
typedef float Eight
    __attribute__((vector_size(k_parts * sizeof(float)), aligned(sizeof(float)), may_alias));

const Eight& eight(const float* values) { return *reinterpret_cast<const Eight*>(values); }

void unpack(const uint8_t* times, const uint8_t* fours, size_t groups, int16_t* out) {
  constexpr size_t k_half = EncoderKernels::k_group / 2;
  for (size_t group = 0; group < groups; ++group) {
    const auto factor = static_cast<int16_t>(times[group]);
    const uint8_t* four = fours + group * k_half;
    int16_t* to = out + group * EncoderKernels::k_group;
    for (size_t i = 0; i < k_half; ++i) {
      const auto both = static_cast<int16_t>(four[i]);
      to[i] = static_cast<int16_t>(static_cast<int16_t>((both & 15) - 8) * factor);
    }
    for (size_t i = 0; i < k_half; ++i) {
      const auto both = static_cast<int16_t>(four[i]);
      to[k_half + i] = static_cast<int16_t>(static_cast<int16_t>((both >> 4) - 8) * factor);
    }
  }
}

// The compiler makes pmaddwd or vpdpwssd of it.
void tile(const int16_t* weights, const int16_t* a, const int16_t* b, size_t columns,
          int32_t* out) {
  const int16_t *w0 = weights, *w1 = w0 + columns, *w2 = w1 + columns, *w3 = w2 + columns;
  int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
  const size_t whole = columns & ~(EncoderKernels::k_group - 1);
  for (size_t i = 0; i < whole; ++i) {
    a0 += a[i] * w0[i];
    a1 += a[i] * w1[i];
    a2 += a[i] * w2[i];
    a3 += a[i] * w3[i];
    b0 += b[i] * w0[i];
    b1 += b[i] * w1[i];
    b2 += b[i] * w2[i];
    b3 += b[i] * w3[i];
  }
  const int32_t sums[2 * EncoderKernels::k_tile] = {a0, a1, a2, a3, b0, b1, b2, b3};
  for (size_t i = 0; i < 2 * EncoderKernels::k_tile; ++i) out[i] = sums[i];
}

float magnitude(float value) { return value < 0 ? -value : value; }

float largest(const float* values, size_t size) {
  float most[k_parts] = {}, out = 0;
  size_t i = 0;
  for (; i + k_parts <= size; i += k_parts) {
    for (size_t k = 0; k < k_parts; ++k) {
      const float value = magnitude(values[i + k]);
      most[k] = value > most[k] ? value : most[k];
    }
  }
  for (; i < size; ++i) out = magnitude(values[i]) > out ? magnitude(values[i]) : out;
  for (float value : most) out = value > out ? value : out;
  return out;
}

void to_whole(const float* values, size_t size, float times, int16_t* out) {
  for (size_t i = 0; i < size; ++i) {
    const float value = values[i] * times;
    out[i] = static_cast<int16_t>(static_cast<int32_t>(value + (value < 0 ? -0.5f : 0.5f)));
  }
}

// e^x for x <= 0, to 2e-7 of the result: 2^n times a polynomial for 2^f, 0 <= f < 1. 0 below -87.
float exponent(float x) {
  const float at = (x < -87.0f ? -87.0f : x) * 1.44269504f;
  const auto whole = static_cast<int32_t>(at) - 1;  // at is not positive: 0 <= f <= 1
  const float f = at - static_cast<float>(whole);
  // 2^f = e^(f ln 2), Taylor to the seventh power.
  const float y = f * 0.69314718f;
  const float power =
      1.0f + y * (1.0f + y * (0.5f + y * (0.166666667f +
                                          y * (0.0416666667f +
                                               y * (0.00833333333f +
                                                    y * (0.00138888889f + y * 0.000198412698f))))));
  const int32_t bits = (whole + 127) << 23;
  float two = 0;
  __builtin_memcpy(&two, &bits, sizeof two);
  return two * power;
}

// x/2 (1 + erf(x / sqrt 2)), erf by Abramowitz and Stegun 7.1.26 (to 1.5e-7).
void gelu(float* values, size_t size) {
  for (size_t i = 0; i < size; ++i) {
    const float x = values[i], z = magnitude(x) * 0.70710678f;
    const float t = 1.0f / (1.0f + 0.3275911f * z);
    const float tail =
        t *
        (0.254829592f +
         t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f)))) *
        exponent(-z * z);
    values[i] = 0.5f * x * (x < 0 ? tail : 2.0f - tail);
  }
}

// Sizes are multiples of eight from here on.
float sum_of(const float* values, size_t size) {
  Eight sums = {};
  for (size_t i = 0; i < size; i += k_parts) sums += eight(values + i);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

inline float dot(const float* a, const float* b, size_t size) {
  Eight sums = {};
  for (size_t i = 0; i < size; i += k_parts) sums += eight(a + i) * eight(b + i);
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

void normalize(float* values, size_t size, const float* scale, const float* shift) {
  const float mean = sum_of(values, size) / static_cast<float>(size);
  for (size_t i = 0; i < size; ++i) values[i] -= mean;
  const float spread = dot(values, values, size) / static_cast<float>(size);
  // A spread as small as the epsilon that it was learned with (1e-12) does not happen.
  const float by = 1.0f / __builtin_sqrtf(spread + 1e-12f);
  for (size_t i = 0; i < size; ++i) values[i] = values[i] * by * scale[i] + shift[i];
}

// sums[4 * 8] = the sum over `count` of times[i] * values[i * stride]: four registers, for an
// addition waits for the one before.
void add_up(const float* times, const float* values, size_t count, size_t stride, float* sums) {
  Eight a = {}, b = {}, c = {}, d = {};
  for (size_t i = 0; i < count; ++i) {
    const float* value = values + i * stride;
    a += times[i] * eight(value);
    b += times[i] * eight(value + k_parts);
    c += times[i] * eight(value + 2 * k_parts);
    d += times[i] * eight(value + 3 * k_parts);
  }
  for (size_t k = 0; k < k_parts; ++k) {
    sums[k] = a[k];
    sums[k_parts + k] = b[k];
    sums[2 * k_parts + k] = c[k];
    sums[3 * k_parts + k] = d[k];
  }
}

void attend(const float* query, const float* keys, const float* values, size_t rows, size_t stride,
            size_t size, float times, float* shares, float* out) {
  constexpr size_t k_wide = EncoderKernels::k_wide;
  const size_t padded = (rows + k_wide - 1) / k_wide * k_wide;
  for (size_t begin = 0; begin < padded; begin += k_wide)
    add_up(query, keys + begin, size, padded, shares + begin);
  float most = -1e30f;
  for (size_t row = 0; row < rows; ++row) most = shares[row] > most ? shares[row] : most;
  for (size_t row = 0; row < rows; ++row) shares[row] = exponent(times * (shares[row] - most));
  float sum = 0;
  for (size_t row = 0; row < rows; ++row) sum += shares[row];
  const float by = 1.0f / sum;
  for (size_t begin = 0; begin < size; begin += k_wide) {
    add_up(shares, values + begin, rows, stride, out + begin);
    for (size_t k = 0; k < k_wide; ++k) out[begin + k] *= by;
  }
}

void add(float* sum, const float* values, size_t size) {
  for (size_t i = 0; i < size; ++i) sum[i] += values[i];
}

}  // namespace

const EncoderKernels k_kernels = {unpack, tile, largest, to_whole, gelu, normalize, attend, add};

}  // namespace cufit::explain::CUFIT_KERNELS
