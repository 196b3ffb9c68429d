// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/conv_choice.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace cufit::fit {
namespace {

constexpr uint64_t k_vector = 8, k_wide_vector = 16;
constexpr uint64_t k_most_parts = 4096;    // beyond those of the table
constexpr double k_most_per_mille = 1e15;  // fits a whole number, and is beyond every question

std::string_view name_of(ConvPass pass) {
  if (pass == ConvPass::forward) return "forward";
  return pass == ConvPass::data_gradient ? "data_gradient" : "weight_gradient";
}

// 0 for a name that is none.
uint64_t feature_of(std::string_view name, const ConvShape& shape, const CudnnAnswer& answer) {
  const uint64_t bytes = shape.bits / 8, row = shape.in_pixels * bytes;
  if (name == "bytes") return bytes;
  if (name == "batch") return shape.batch;
  if (name == "channels") return shape.channels;
  if (name == "outputs") return shape.outputs;
  if (name == "narrower") return std::min(shape.channels, shape.outputs);
  if (name == "wider") return std::max(shape.channels, shape.outputs);
  if (name == "pixels") return shape.in_pixels;
  // Whether what lies side by side can be read in vectors.
  if (name == "row8") return row % k_vector == 0 ? 1 : 0;
  if (name == "row16") return row % k_wide_vector == 0 ? 1 : 0;
  if (name == "channels16") return shape.channels * bytes % k_wide_vector == 0 ? 1 : 0;
  if (name == "outputs16") return shape.outputs * bytes % k_wide_vector == 0 ? 1 : 0;
  // Of a product per sample in fp32 against the input and the output.
  if (name == "sums_per_mille") {
    const double sums = 4.0 * static_cast<double>(shape.batch) *
                        static_cast<double>(shape.channels) * static_cast<double>(shape.outputs);
    const double io = static_cast<double>(std::max<uint64_t>(bytes_of_input_and_output(shape), 1));
    return static_cast<uint64_t>(std::min(1000 * sums / io, k_most_per_mille));
  }
  if (name == "positions") return shape.batch * shape.in_pixels;
  if (name == "weights") return shape.channels * shape.outputs;
  if (name == "groups") return shape.groups;
  if (name == "tile") return answer.tile;
  if (name == "cluster") return answer.cluster;
  if (name == "engine") return answer.engine;
  return 0;
}

ConvChoice choice_of(std::string_view takes) {
  if (takes == "cublas") return ConvChoice::cublas;
  if (takes == "samples") return ConvChoice::samples;
  if (takes == "winograd") return ConvChoice::winograd;
  return takes == "perhaps" ? ConvChoice::perhaps_winograd : ConvChoice::own;
}

// Asks the questions of the rows of this name; empty where they lead nowhere.
std::string_view ask(std::string_view name, const ConvShape& shape, const CudnnAnswer& answer,
                     const knowledge::Knowledge& knowledge) {
  const auto& rows = knowledge.conv_choices;
  const auto first =
      std::find_if(rows.begin(), rows.end(),
                   [name](const knowledge::ConvChoiceRow& row) { return row.pass == name; });
  size_t at = static_cast<size_t>(first - rows.begin());
  // A question leads to later rows only.
  while (at < rows.size() && rows[at].takes.empty()) {
    const auto most = static_cast<uint64_t>(rows[at].most);
    const auto other = static_cast<size_t>(rows[at].other);
    const size_t next = feature_of(rows[at].feature, shape, answer) <= most ? at + 1 : other;
    if (next <= at) return {};
    at = next;
  }
  return at < rows.size() ? rows[at].takes : std::string_view{};
}

}  // namespace

ConvChoice pointwise_choice(const ConvShape& shape, ConvPass pass, const CudnnAnswer& answer,
                            const knowledge::Knowledge& knowledge) {
  return choice_of(ask(name_of(pass), shape, answer, knowledge));
}

ConvChoice winograd_choice(const ConvShape& shape, const CudnnAnswer& answer,
                           const knowledge::Knowledge& knowledge) {
  return choice_of(ask("winograd", shape, answer, knowledge));
}

uint64_t parts_of_sums(const ConvShape& shape, const knowledge::Knowledge& knowledge) {
  const std::string_view takes =
      ask(shape.bits == 32 ? "parts_32" : "parts_16", shape, {}, knowledge);
  uint64_t out = 0;
  std::from_chars(takes.data(), takes.data() + takes.size(), out);
  return std::min(out, k_most_parts);
}

}  // namespace cufit::fit
