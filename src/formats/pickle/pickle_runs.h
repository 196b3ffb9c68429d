// SPDX-License-Identifier: Apache-2.0
// What the machine knows of the rows that were found ahead in the block it is in. Used by
// pickle_machine.h only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/pickle/pickle_row_scan.h"

namespace cufit::formats {

struct PickleRuns {
  struct Shared {
    uint32_t run = 0;  // for which it was resolved last, counted from 1
    bool is_known = false;
    uint32_t number = 0;  // of the sink
    std::array<PickleValue, k_row_keys> values;
  };
  struct List {
    bool is_known = false;
    PickleValue value;
  };
  std::shared_ptr<const PickleRowForm> form;  // that is looked for
  size_t single_rows = 0;                     // since the last run that was taken
  bool off = false;    // the sink or a limit refused: one by one from then on
  uint64_t block = 0;  // by the offset of its end
  uint32_t run = 0;
  std::vector<Shared> shared;  // of the block, by number
  std::vector<List> lists;     // the same
  std::vector<PickleRow> rows;
};

}  // namespace cufit::formats
