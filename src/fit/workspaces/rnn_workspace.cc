// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/rnn_workspace.h"

#include <algorithm>
#include <optional>

namespace cufit::fit {
namespace {

constexpr size_t k_least_numbers = 9, k_rnn_workspace_numbers = 14;
constexpr uint64_t k_rnn_workspace_most = uint64_t{1}
                                          << 40;  // bytes of one tensor, and any of the numbers
constexpr uint64_t k_most_layers = 1024;

constexpr uint64_t k_of_layer = 8u << 20;  // for each layer and direction
constexpr uint64_t k_fixed = 256;
constexpr uint64_t k_gates_at_once = 256;  // steps whose products are made in one
// What another version or another GPU may ask for beside it, as far as is known: the output of each
// layer and direction once more, and this.
constexpr uint64_t k_upper_fixed = 32u << 20;

// As PyTorch chooses its algorithm (aten/src/ATen/native/cudnn/RNN.cpp).
constexpr uint64_t k_static_most_hidden = 1024, k_static_multiple = 128, k_static_most_batch = 128;
constexpr uint64_t k_static_batch_multiple = 8, k_static_wide_batch = 96,
                   k_static_wide_hidden = 896;
constexpr ComputeCapability k_first_with_static{8, 0}, k_without_static{8, 6};
constexpr ComputeCapability k_first_with_small{6, 0};
constexpr int64_t k_lstm = 2, k_gru = 3;

struct Layer {
  uint64_t bytes = 0, layers = 0, directions = 0, hidden = 0, length = 0, batch = 0, input = 0;
  uint64_t rows = 0;  // steps of all sequences
  bool drops = false, packed = false, backward = false, persists = false;
};

bool within(uint64_t a, uint64_t b, uint64_t c) {
  if (a == 0 || b == 0 || c == 0) return true;
  return a <= k_rnn_workspace_most / b && a * b <= k_rnn_workspace_most / c;
}

std::optional<Layer> layer_of(std::span<const uint64_t> numbers) {
  if (numbers.size() != k_least_numbers && numbers.size() != k_rnn_workspace_numbers)
    return std::nullopt;
  for (const uint64_t number : numbers)
    if (number > k_rnn_workspace_most) return std::nullopt;
  Layer out{numbers[0] / 8, numbers[2], numbers[3], numbers[4], numbers[6], numbers[7], 0};
  const bool told = numbers.size() == k_rnn_workspace_numbers;
  if (out.layers == 0 || out.layers > k_most_layers || out.directions == 0 || out.directions > 2 ||
      !within(out.length, out.batch, 1) || out.length == 0 || out.batch == 0)
    return std::nullopt;
  out.input = told ? numbers[11] : numbers[5] / (out.length * out.batch);
  if (out.input == 0) return std::nullopt;
  out.rows = numbers[5] / out.input;
  if (told) {
    out.drops = numbers[9] != 0;
    out.packed = numbers[10] != 0;
    out.backward = numbers[12] != 0;
    out.persists = numbers[13] != 0;
  }
  if (!within(out.rows, out.hidden, out.bytes) || !within(out.hidden, out.hidden, out.bytes) ||
      !within(out.input, out.hidden, out.bytes) || !within(out.batch, out.hidden, out.bytes))
    return std::nullopt;
  return out;
}

// Whether PyTorch takes a kernel that stays on the GPU from step to step.
bool persistent(const Layer& layer, const knowledge::RnnCellRow& cell, const LibrarySetup& setup) {
  if (layer.packed || !layer.persists) return false;
  const int64_t small = layer.backward ? cell.persistent_back : cell.persistent_forward;
  if (setup.cc >= k_first_with_small && layer.hidden <= static_cast<uint64_t>(small)) return true;
  const bool plain = layer.bytes == 2 && layer.layers == 1 && layer.directions == 1 &&
                     layer.hidden <= k_static_most_hidden &&
                     layer.hidden % k_static_multiple == 0 && layer.input % k_static_multiple == 0;
  if (!plain || setup.cc < k_first_with_static || setup.cc == k_without_static) return false;
  if (cell.mode == k_gru || layer.batch % k_static_batch_multiple != 0 ||
      layer.batch > k_static_most_batch)
    return false;
  return cell.mode == k_lstm || layer.batch < k_static_wide_batch ||
         layer.hidden < k_static_wide_hidden;
}

// Steps whose states stay between the layers when several run at once.
uint64_t steps_between(const Layer& layer) {
  uint64_t each = 2;
  if (layer.batch == 1)
    each = 32;
  else if (layer.batch <= 8)
    each = 16;
  else if (layer.batch <= 16 || layer.length >= 128)
    each = 8;
  else if (layer.batch <= 96)
    each = 4;
  return std::min(layer.length, each * layer.layers + std::max<uint64_t>(each, 8));
}

}  // namespace

bool rnn_is_backward(std::span<const uint64_t> numbers) {
  return numbers.size() == k_rnn_workspace_numbers && numbers[12] != 0;
}

SizeAt rnn_workspace(std::span<const uint64_t> numbers, const LibrarySetup& setup,
                     const knowledge::Knowledge& knowledge) {
  const std::optional<Layer> layer = layer_of(numbers);
  if (!layer) return {};
  const auto cell = std::find_if(knowledge.rnn_cells.begin(), knowledge.rnn_cells.end(),
                                 [&](const knowledge::RnnCellRow& row) {
                                   return row.mode == static_cast<int64_t>(numbers[1]);
                                 });
  if (cell == knowledge.rnn_cells.end()) return {};
  const auto of = [](int64_t count) { return static_cast<uint64_t>(count); };
  const uint64_t d = layer->directions, all = layer->layers * d, gates = of(cell->gates);
  const bool one_way = d == 1, one_layer = layer->layers == 1;
  // In bytes: the output of one direction, of the steps whose gates are made at once, the input, a
  // hidden state of every layer and direction.
  const uint64_t output = layer->rows * layer->hidden * layer->bytes;
  const uint64_t at_once = output / layer->length * std::min(layer->length, k_gates_at_once);
  const uint64_t input = layer->rows * layer->input * layer->bytes;
  const uint64_t state = layer->batch * layer->hidden * layer->bytes, states = all * state;
  const uint64_t wider = std::max(output, input);
  const uint64_t weights =
      gates * layer->hidden * layer->bytes * d *
      (layer->input + layer->hidden + (layer->layers - 1) * (d + 1) * layer->hidden);

  uint64_t forward = 0, backward = 0;
  if (persistent(*layer, *cell, setup)) {
    // Of the other cells backward is always more.
    if (cell->mode == k_lstm)
      forward =
          one_way ? (20 + (layer->drops ? 1 : 0)) * output + 4 * states : 28 * output + 5 * states;
    const uint64_t more = cell->mode == k_lstm && one_way ? 1 : 0;
    backward = (one_way ? 1 : 4) * wider +
               (d * (one_layer ? 1 : 2) + of(cell->persistent_outputs)) * output +
               (of(cell->backward_states) + 2 * (d - 1) + more) * states;
  } else {
    if (one_way) {
      forward = gates * at_once + (layer->drops ? output : 0);
      backward = wider + (one_layer ? output : steps_between(*layer) * state);
    } else {
      forward = (4 + 2 * gates) * output;
      backward = 4 * wider + (one_layer ? 2 : 4) * output;
    }
    forward += (of(cell->forward_states) + 2 * (d - 1)) * states;
    backward += (of(cell->backward_states) + 2 * (d - 1)) * states;
  }
  uint64_t fixed = all * k_of_layer + k_fixed;
  if (!layer->packed) {
    // Input and outputs without their padding; backward their gradients, too.
    const uint64_t padded = d * output + input + of(cell->padded_states) * states;
    forward += padded;
    backward += 2 * padded;
    fixed += (8 * layer->batch + 31) / 32 * 32;
  }
  const uint64_t bytes = fixed + weights + std::max(forward, backward);
  return {bytes, bytes + all * output + k_upper_fixed};
}

}  // namespace cufit::fit
