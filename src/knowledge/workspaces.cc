// SPDX-License-Identifier: Apache-2.0
// Look-ups about what libraries ask for through PyTorch's allocator.
#include <algorithm>

#include "knowledge/knowledge.h"

namespace cufit::knowledge {

const CublasWorkspaceRow* Knowledge::find_cublas_workspace(ComputeCapability cc) const {
  for (const CublasWorkspaceRow& row : cublas_workspaces) {
    const std::optional<ComputeCapability> first = parse_compute_capability(row.cc_first);
    const std::optional<ComputeCapability> last = parse_compute_capability(row.cc_last);
    if (first && last && *first <= cc && cc <= *last) return &row;
  }
  return nullptr;
}

std::vector<uint64_t> Knowledge::cublas_workspace_sizes() const {
  std::vector<uint64_t> sizes;
  const auto add = [&](int64_t bytes) {
    const auto size = static_cast<uint64_t>(bytes);
    if (bytes > 0 && std::find(sizes.begin(), sizes.end(), size) == sizes.end())
      sizes.push_back(size);
  };
  for (const CublasWorkspaceRow& row : cublas_workspaces) add(row.bytes);
  for (const CublasltWorkspaceRow& row : cublaslt_workspaces) add(row.bytes);
  return sizes;
}

}  // namespace cufit::knowledge
