// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces.h"

#include <array>

#include "base/number.h"

namespace cufit::fit {
namespace {

constexpr uint64_t k_max_workspace = uint64_t{1} << 40;

bool is_matmul(std::string_view op) { return op == "matmul"; }

SizeAt cublas_workspace(const LibrarySetup& setup, const knowledge::Knowledge& knowledge) {
  if (!setup.cublas_workspace_config.empty())
    if (const auto bytes = parse_cublas_workspace_config(setup.cublas_workspace_config))
      return {*bytes, *bytes};  // PyTorch warns of what it cannot read and takes the default
  for (const knowledge::CublasWorkspaceRow& row : knowledge.cublas_workspaces) {
    const auto first = parse_compute_capability(row.cc_first);
    const auto last = parse_compute_capability(row.cc_last);
    if (first && last && *first <= setup.cc && setup.cc <= *last)
      return {static_cast<uint64_t>(row.bytes), static_cast<uint64_t>(row.upper_bytes)};
  }
  return {};
}

}  // namespace

std::optional<uint64_t> parse_cublas_workspace_config(std::string_view text) {
  uint64_t total = 0;
  bool any = false;
  while (!text.empty()) {
    if (text.front() != ':') return std::nullopt;
    text.remove_prefix(1);
    std::array<uint64_t, 2> pair{};
    for (size_t i = 0; i < 2; ++i) {
      const size_t end = text.find(':');
      const std::optional<uint64_t> number = parse_uint(text.substr(0, end));
      if (!number || *number > uint64_t{1} << 30) return std::nullopt;
      pair[i] = *number;
      text.remove_prefix(std::min(end, text.size()));
      if (i == 0) {
        if (text.empty()) return std::nullopt;
        text.remove_prefix(1);
      }
    }
    any = true;
    total += pair[0] * pair[1] * 1024;  // 2^70 at most
    if (pair[1] != 0 && pair[0] > k_max_workspace / pair[1] / 1024) return std::nullopt;
    if (total > k_max_workspace) return std::nullopt;
  }
  return any ? std::optional(total) : std::nullopt;
}

Result<std::vector<Workspace>> workspaces_at(const StepProgram& program, uint64_t batch,
                                             const LibrarySetup& setup,
                                             const knowledge::Knowledge& knowledge) {
  (void)batch;
  std::vector<Workspace> out;
  const SizeAt cublas = cublas_workspace(setup, knowledge);
  std::array<bool, 2> has_handle{};  // the main thread, autograd's
  for (size_t i = 0; i < program.events.size(); ++i) {
    const StepEvent& event = program.events[i];
    if (event.kind != StepEventKind::call) continue;
    const Site& site = program.sites[event.site];
    const size_t thread = site.phase == TracePhase::backward ? 1 : 0;
    if (is_matmul(program.text(site.op)) && !has_handle[thread] && cublas.upper > 0) {
      has_handle[thread] = true;
      out.push_back({cublas.point, cublas.upper, static_cast<uint32_t>(i), true});
    }
  }
  return out;
}

}  // namespace cufit::fit
