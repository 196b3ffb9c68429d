// SPDX-License-Identifier: Apache-2.0
// Numbers and names of results in a text, by the tables of data/: Xid numbers, results of the CUDA
// driver, NVML, cuDNN, cuBLAS and NCCL, exit codes. What they mean is shown beside the line; where
// a table names the usual cause, that is a weak hint when nothing better speaks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/prose/text_lines.h"
#include "knowledge/knowledge.h"

namespace cufit::explain {

struct CodeHit {
  uint64_t line = 0;
  size_t column = 0;
  std::string fact;          // "CUDNN_STATUS_ALLOC_FAILED: cuDNN could not allocate memory"
  std::string_view finding;  // id or empty
};

// In the order of the text, at most one per line and 64 in all.
std::vector<CodeHit> find_codes(std::span<const formats::TextLine> lines,
                                const knowledge::Knowledge& knowledge);

}  // namespace cufit::explain
