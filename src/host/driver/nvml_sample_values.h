// SPDX-License-Identifier: Apache-2.0
// What the parts of NvmlSample have in common.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "formats/prose/printable.h"
#include "host/driver/nvml_sample.h"

namespace cufit::host {

constexpr uint32_t k_most_degrees = 200;  // some drivers tell UINT32_MAX of a card that they lost

inline std::optional<double> part_of_percent(std::optional<uint32_t> percent) {
  if (!percent) return std::nullopt;
  return std::min(*percent, 100u) / 100.0;
}

template <class T>
std::optional<T> NvmlSample::taken(Fact<T> fact, const char* what) {
  if (fact) return std::move(fact.value);
  note_missing(asked_ + what, formats::printable(fact.note, 200));
  return std::nullopt;
}

}  // namespace cufit::host
