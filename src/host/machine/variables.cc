// SPDX-License-Identifier: Apache-2.0
#include "facts/variables.h"

#include "base/format.h"
#include "formats/prose/printable.h"
#include "host/probe.h"

namespace cufit::host {

constexpr size_t k_max_value_bytes = 16u << 10;

void read_variables(const Host& host, facts::Facts& facts) {
  for (const auto& [name, value] : host.variables()) {
    if (!facts::keeps_variable(name)) continue;
    facts.variables.push_back(
        {formats::printable(name), formats::printable(value, k_max_value_bytes)});
  }
}

}  // namespace cufit::host
