// SPDX-License-Identifier: Apache-2.0
// Look-ups about drivers, CUDA versions, PTX and error codes.
#include "knowledge/knowledge.h"

namespace cufit::knowledge {
namespace {

bool same_minor(const Version& a, const Version& b) {
  return a.part(0) == b.part(0) && a.part(1) == b.part(1);
}

}  // namespace

const BranchRow* Knowledge::find_branch(uint32_t branch) const {
  const BranchRow* best = nullptr;
  for (const BranchRow& row : branches) {
    if (row.branch <= branch && (!best || row.branch > best->branch)) best = &row;
  }
  return best;
}

uint32_t Knowledge::supported_branch(uint32_t floor) const {
  for (const SupportedBranch& row : supported_branches)
    if (row.branch >= floor) return row.branch;
  return floor;
}

std::optional<Version> Knowledge::family_floor(uint32_t cuda_major) const {
  for (const FamilyFloor& row : floors) {
    if (row.cuda_major == cuda_major) return parse_version(row.linux_min);
  }
  return std::nullopt;
}

std::optional<Version> Knowledge::full_driver(const Version& cuda) const {
  const bool asks_patch = cuda.parts.size() > 2;
  for (const ToolkitRow& row : toolkits) {  // rows of one minor are in order of release
    const std::optional<Version> version = parse_version(row.version);
    if (!version || row.linux_driver.empty()) continue;
    if (asks_patch ? *version == cuda : same_minor(*version, cuda))
      return parse_version(row.linux_driver);
  }
  return std::nullopt;
}

std::optional<Version> Knowledge::driver_cuda(const Version& driver) const {
  const BranchRow* row = find_branch(driver.part(0));
  return row ? parse_version(row->cuda) : std::nullopt;
}

const DriverWindow* Knowledge::find_window(ComputeCapability cc) const {
  for (const DriverWindow& row : windows) {
    if (parse_compute_capability(row.cc) == cc) return &row;
  }
  return nullptr;
}

std::optional<Version> Knowledge::cuda_for_ptx(const Version& isa) const {
  for (const PtxIsaRow& row : ptx_isas) {
    const std::optional<Version> version = parse_version(row.isa);
    if (version && *version == isa) return parse_version(row.cuda);
  }
  return std::nullopt;
}

const CodeRow* Knowledge::find_cuda_code(int code) const {
  for (const CodeRow& row : cuda_codes) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

const CodeRow* Knowledge::find_nvml_code(int code) const {
  for (const CodeRow& row : nvml_codes) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

const XidRow* Knowledge::find_xid(uint32_t number) const {
  for (const XidRow& row : xids) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

const LibraryCodeRow* Knowledge::find_library_code(std::string_view name) const {
  for (const LibraryCodeRow& row : library_codes) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const ExitCodeRow* Knowledge::find_exit_code(int64_t code) const {
  for (const ExitCodeRow& row : exit_codes) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

std::string_view Knowledge::quota_since(std::string_view id) const {
  for (const QuotaSinceRow& row : quota_since_rows)
    if (row.id == id) return row.version;
  return {};
}

uint64_t Knowledge::quota_size_bytes(std::string_view id) const {
  for (const QuotaSizeRow& row : quota_sizes)
    if (row.id == id) return static_cast<uint64_t>(row.mib) << 20;
  return 0;
}

const MigCardRow* Knowledge::find_mig_card(std::string_view gpu) const {
  for (const MigCardRow& row : mig_cards) {
    if (row.gpu == gpu) return &row;
  }
  return nullptr;
}

const GpuMemoryRow* Knowledge::find_gpu_memory(std::string_view gpu) const {
  for (const GpuMemoryRow& row : gpu_memory) {
    if (row.gpu == gpu) return &row;
  }
  return nullptr;
}

const GpuContextRow* Knowledge::find_gpu_context(std::string_view cc) const {
  for (const GpuContextRow& row : gpu_context) {
    if (row.cc == cc) return &row;
  }
  // Of a compute capability without a row, or one that nobody tells: the row with the most. A prediction, a plan and the guard
  // all ask here, so that a limit which one hands out holds a job for the other.
  const GpuContextRow* most = nullptr;
  for (const GpuContextRow& row : gpu_context) {
    if (most == nullptr || row.mib > most->mib) most = &row;
  }
  return most;
}

uint64_t Knowledge::context_bytes(std::string_view cc) const {
  const GpuContextRow* row = find_gpu_context(cc);
  return row != nullptr ? static_cast<uint64_t>(row->mib) << 20 : quota_size_bytes("least_context");
}

}  // namespace cufit::knowledge
