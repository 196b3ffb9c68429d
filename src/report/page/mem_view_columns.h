// SPDX-License-Identifier: Apache-2.0
// The numbers of the page of `cufit mem view` as columns: what src/report/page/{rows,levels,stacks}
// read. Overview: enough for the first picture. Detail: every allocation and segment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "memory/analysis/view.h"
#include "memory/snapshot/snapshot.h"
#include "report/page/page_columns.h"

namespace cufit::report {

struct MemViewColumns {
  ColumnChunk overview, detail, stacks;
  std::vector<uint32_t> stack_groups;  // numbers in the page's own count of stacks
  std::vector<std::string> streams;    // by number in segment_stream
  uint32_t initial_segments = 0;
};

MemViewColumns mem_view_columns(const analysis::View& view, const memory::Snapshot& snapshot);

}  // namespace cufit::report
