// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/cudnn_answers.h"

#include <algorithm>
#include <set>
#include <utility>

namespace cufit::fit {
namespace {

using formats::TraceWorkspace;

constexpr size_t k_batch = 1;  // of the numbers of a call

constexpr double k_cudnn_answers_most_bytes = 1ull << 56;

uint64_t scaled(uint64_t bytes, uint64_t from, uint64_t to) {
  const double out = static_cast<double>(bytes) * static_cast<double>(to) /
                     static_cast<double>(std::max<uint64_t>(from, 1));
  return static_cast<uint64_t>(std::min(out, k_cudnn_answers_most_bytes));
}

CudnnAnswer answer_of(const TraceWorkspace& row) {
  CudnnAnswer out{row.bytes, row.bytes, row.most, row.tile};
  out.cluster_across = row.cluster % 32;
  out.cluster = std::max(row.cluster / 32, 1u) * out.cluster_across;
  out.engine = row.engine;
  out.divides = row.divides;
  return out;
}

CudnnAnswer between(const TraceWorkspace& below, const TraceWorkspace& above, uint64_t batch) {
  const double share =
      static_cast<double>(batch - below.batch) / static_cast<double>(above.batch - below.batch);
  CudnnAnswer out = answer_of(share < 0.5 ? below : above);
  out.bytes = static_cast<uint64_t>(static_cast<double>(below.bytes) * (1 - share) +
                                    static_cast<double>(above.bytes) * share);
  out.upper = std::max(scaled(below.bytes, below.batch, batch), above.bytes);
  out.most = std::max(scaled(below.most, below.batch, batch), above.most);
  return out;
}

}  // namespace

void CudnnAnswers::add(const formats::TraceEvents& trace) {
  std::set<Key> told;
  for (const formats::TraceConvolution& said : trace.convolutions) {
    Key key{said.capability, said.pass};
    const auto numbers = std::span(trace.numbers).subspan(said.first, said.count);
    key.insert(key.end(), numbers.begin(), numbers.end());
    std::vector<TraceWorkspace>& rows = rows_[key];
    const auto from = trace.workspaces.begin() + said.first_workspace;
    rows.insert(rows.end(), from, from + said.workspace_count);
    told.insert(std::move(key));
  }
  // Of a batch size the answer that came first stays.
  for (const Key& key : told) {
    std::vector<TraceWorkspace>& rows = rows_[key];
    std::stable_sort(
        rows.begin(), rows.end(),
        [](const TraceWorkspace& a, const TraceWorkspace& b) { return a.batch < b.batch; });
    rows.erase(std::unique(rows.begin(), rows.end(),
                           [](const TraceWorkspace& a, const TraceWorkspace& b) {
                             return a.batch == b.batch;
                           }),
               rows.end());
  }
}

const std::vector<TraceWorkspace>* CudnnAnswers::rows_of(ComputeCapability cc, ConvPass pass,
                                                         std::span<const uint64_t> numbers) const {
  if (rows_.empty() || numbers.size() <= k_batch) return nullptr;
  Key key{static_cast<uint64_t>(cc.major) * 10 + static_cast<uint64_t>(cc.minor),
          static_cast<uint64_t>(pass)};
  key.insert(key.end(), numbers.begin(), numbers.end());
  key[2 + k_batch] = 0;
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

bool CudnnAnswers::refused(ComputeCapability cc, ConvPass pass,
                           std::span<const uint64_t> numbers) const {
  const std::vector<TraceWorkspace>* rows = rows_of(cc, pass, numbers);
  return rows != nullptr && rows->empty();
}

std::optional<CudnnAnswer> CudnnAnswers::at(ComputeCapability cc, ConvPass pass,
                                            std::span<const uint64_t> numbers) const {
  const std::vector<TraceWorkspace>* of_shape = rows_of(cc, pass, numbers);
  if (of_shape == nullptr || of_shape->empty()) return std::nullopt;
  const std::vector<TraceWorkspace>& rows = *of_shape;
  const uint64_t batch = numbers[k_batch];
  const auto above = std::lower_bound(
      rows.begin(), rows.end(), batch,
      [](const TraceWorkspace& row, uint64_t wanted) { return row.batch < wanted; });
  if (above == rows.end()) {
    CudnnAnswer out = answer_of(rows.back());
    out.bytes = scaled(out.bytes, rows.back().batch, batch);
    out.upper = out.bytes;
    out.most = scaled(out.most, rows.back().batch, batch);
    return out;
  }
  if (above->batch == batch || above == rows.begin()) return answer_of(*above);
  return between(*(above - 1), *above, batch);
}

}  // namespace cufit::fit
