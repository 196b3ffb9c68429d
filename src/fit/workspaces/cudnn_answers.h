// SPDX-License-Identifier: Apache-2.0
// What cuDNN itself said while a program was traced: the workspace of each convolution on a GPU
// that is not there (python/cufit_tracer/cuda/cudnn.py). Used by conv_workspace.h. All sizes in
// bytes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/version.h"
#include "formats/model/trace_events.h"

namespace cufit::fit {

enum class ConvPass : uint8_t { forward, data_gradient, weight_gradient };

// Of the engine that its heuristics put first.
struct CudnnAnswer {
  uint64_t bytes = 0;
  uint64_t upper = 0;    // greater where the batch size stands between two that were asked
  uint64_t most = 0;     // over all engines; 0: not asked
  uint32_t tile = 0;     // TILE_SIZE + 1; 0: no such knob
  uint32_t cluster = 0;  // thread blocks of one, and how many of them lie side by side
  uint32_t cluster_across = 0;
  uint32_t engine = 0;
  bool divides = false;
};

class CudnnAnswers {
 public:
  void add(const formats::TraceEvents& trace);
  bool empty() const { return rows_.empty(); }
  // `numbers`: of the call, the second of them the batch size. nullopt: not asked.
  std::optional<CudnnAnswer> at(ComputeCapability cc, ConvPass pass,
                                std::span<const uint64_t> numbers) const;
  // Whether it was asked and named no engine: beside a GPU it names none, either, and PyTorch falls
  // back to one that takes little (40 of 41 measured on an H200).
  bool refused(ComputeCapability cc, ConvPass pass, std::span<const uint64_t> numbers) const;

 private:
  using Key = std::vector<uint64_t>;  // compute capability, pass, numbers with the batch size 0
  const std::vector<formats::TraceWorkspace>* rows_of(ComputeCapability cc, ConvPass pass,
                                                      std::span<const uint64_t> numbers) const;
  std::map<Key, std::vector<formats::TraceWorkspace>> rows_;  // by batch size
};

}  // namespace cufit::fit
