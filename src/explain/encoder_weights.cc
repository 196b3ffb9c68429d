// SPDX-License-Identifier: Apache-2.0
#include "explain/encoder_weights.h"

#include <cstring>

#include "base/format.h"
#include "explain/encoder_kernels.h"

// The bytes lie in the program as they lie in data/encoder.bin: a literal of as many would take the
// compiler a minute.
__asm__(
    ".section .rodata\n"
    ".balign 64\n"
    "cufit_encoder_begin:\n"
    ".incbin \"" CUFIT_ENCODER_FILE
    "\"\n"
    "cufit_encoder_end:\n"
    ".byte 0\n"
    ".globl cufit_encoder_begin, cufit_encoder_end\n"
    ".hidden cufit_encoder_begin, cufit_encoder_end\n"
    ".previous\n");
extern "C" {
extern const char cufit_encoder_begin[];
extern const char cufit_encoder_end[];
}

namespace cufit::explain {
namespace {

constexpr std::string_view k_magic = "CUFITENC";
constexpr uint32_t k_version = 1, k_align = 64;
// More than any encoder that a paste could wait for.
constexpr uint32_t k_most_layers = 24, k_most_width = 8192, k_most_rows = 1u << 20;

class EncoderWeightsReader {
 public:
  explicit EncoderWeightsReader(std::string_view bytes) : bytes_(bytes) {}

  uint32_t number() {
    uint32_t out = 0;
    if (const char* at = take(sizeof out)) std::memcpy(&out, at, sizeof out);
    return out;
  }

  template <class T>
  std::span<const T> part(size_t count) {
    at_ += (k_align - at_ % k_align) % k_align;
    const char* begin = take(count * sizeof(T));
    return begin ? std::span(reinterpret_cast<const T*>(begin), count) : std::span<const T>();
  }

  PieceTable table(size_t count) {
    PieceTable out;
    out.begins = part<uint32_t>(count + 1);
    const uint32_t bytes = failed_ ? 0 : out.begins.back();
    const auto text = part<char>(bytes);
    out.bytes = {text.data(), text.size()};
    for (size_t i = 0; i < count && !failed_; ++i) failed_ = out.begins[i] > out.begins[i + 1];
    return out;
  }

  Matrix matrix(size_t rows, size_t columns, bool with_bias) {
    Matrix out;
    out.rows = rows;
    out.columns = columns;
    if (with_bias) out.bias = part<float>(rows);
    out.scale = part<float>(rows);
    out.times = part<uint8_t>(rows * columns / EncoderKernels::k_group);
    out.fours = part<uint8_t>(rows * columns / 2);
    return out;
  }

  Norm norm(size_t columns) {
    Norm out;
    out.scale = part<float>(columns);
    out.shift = part<float>(columns);
    return out;
  }

  bool failed() const { return failed_; }
  size_t at() const { return at_; }

 private:
  const char* take(size_t size) {
    if (failed_ || at_ > bytes_.size() || size > bytes_.size() - at_) {
      failed_ = true;
      return nullptr;
    }
    const char* out = bytes_.data() + at_;
    at_ += size;
    return out;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool failed_ = false;
};

Error malformed(size_t at) {
  return Error{
      Code::malformed, format("the text encoder's weights are damaged at byte {}", at), {}};
}

}  // namespace

Result<EncoderWeights> read_encoder_weights(std::string_view bytes) {
  EncoderWeightsReader reader(bytes);
  EncoderWeights out;
  if (bytes.substr(0, k_magic.size()) != k_magic) return malformed(0);
  for (size_t i = 0; i < k_magic.size(); i += sizeof(uint32_t)) reader.number();
  const uint32_t version = reader.number(), layers = reader.number();
  out.hidden = reader.number();
  out.heads = reader.number();
  out.inner = reader.number();
  out.positions = reader.number();
  const uint32_t pieces = reader.number(), causes = reader.number(), unknown = reader.number();
  out.begin = reader.number();
  out.end = reader.number();
  const bool sane =
      version == k_version && layers <= k_most_layers && out.hidden > 0 &&
      out.hidden <= k_most_width && out.hidden % EncoderKernels::k_group == 0 && out.inner > 0 &&
      out.inner <= k_most_width && out.inner % EncoderKernels::k_group == 0 && out.heads > 0 &&
      out.hidden % (out.heads * EncoderKernels::k_wide) == 0 && out.positions >= 2 &&
      out.positions <= k_most_width && pieces <= k_most_rows && causes <= k_most_width &&
      unknown < pieces && out.begin < pieces && out.end < pieces;
  if (!sane || reader.failed()) return malformed(reader.at());
  out.pieces = reader.table(pieces);
  out.pieces.unknown = unknown;
  const PieceTable names = reader.table(causes);
  for (size_t i = 0; i < causes && !reader.failed(); ++i) out.causes.push_back(names[i]);
  out.words = reader.matrix(pieces, out.hidden, false);
  out.places = reader.matrix(out.positions, out.hidden, false);
  out.norm = reader.norm(out.hidden);
  for (uint32_t i = 0; i < layers; ++i) {
    EncoderLayer layer;
    layer.heads = reader.matrix(3 * out.hidden, out.hidden, true);
    layer.joined = reader.matrix(out.hidden, out.hidden, true);
    layer.norm1 = reader.norm(out.hidden);
    layer.wide = reader.matrix(out.inner, out.hidden, true);
    layer.narrow = reader.matrix(out.hidden, out.inner, true);
    layer.norm2 = reader.norm(out.hidden);
    out.layers.push_back(layer);
  }
  out.cause_bias = reader.part<float>(causes);
  out.cause_weights = reader.part<float>(size_t{causes} * out.hidden);
  if (reader.failed()) return malformed(reader.at());
  return out;
}

const EncoderWeights& builtin_encoder() {
  // Tested to be whole; without causes it says nothing.
  static const EncoderWeights weights =
      read_encoder_weights(
          {cufit_encoder_begin, static_cast<size_t>(cufit_encoder_end - cufit_encoder_begin)})
          .value_or(EncoderWeights());
  return weights;
}

}  // namespace cufit::explain
