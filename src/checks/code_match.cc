// SPDX-License-Identifier: Apache-2.0
#include "checks/code_match.h"

#include <algorithm>
#include <tuple>

namespace cufit::checks {
namespace {

struct Arch {
  ComputeCapability capability;
  char suffix = '\0';  // 'a', 'f' or none
};

std::optional<Arch> parse_arch(const std::string& text) {
  Arch arch;
  std::string digits = text;
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
    arch.suffix = digits.back();
    digits.pop_back();
  }
  if (digits.size() < 2 || digits.size() > 4) return std::nullopt;
  uint32_t number = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<uint32_t>(c - '0');
  }
  arch.capability = {number / 10, number % 10};
  return arch;
}

// Integrated GPUs of Jetson boards. The CUDA Programming Guide ("Binary Compatibility") promises nothing between them
// and desktop GPUs, in either direction, and torch's own requirement table lists their own cubin only.
bool is_tegra(ComputeCapability cc) {
  return cc == ComputeCapability{3, 2} || cc == ComputeCapability{5, 3} || cc == ComputeCapability{6, 2} ||
         cc == ComputeCapability{7, 2} || cc == ComputeCapability{8, 7};
}

// Thor was sm_101 up to CUDA 12.9 and is sm_110 since 13.0: one chip with two names, related to no other 10.x.
bool is_thor(ComputeCapability cc) { return cc == ComputeCapability{10, 1} || cc == ComputeCapability{11, 0}; }

// Family targets (CUDA 12.9 and later). A family that is not listed here serves its own capability only.
bool in_family(ComputeCapability family, ComputeCapability device) {
  if (is_thor(family)) return is_thor(device);
  if (family == device) return true;
  if (family == ComputeCapability{10, 0}) return device == ComputeCapability{10, 3};
  if (family == ComputeCapability{12, 0}) return device == ComputeCapability{12, 1};
  return false;
}

// Order of the driver's preference: the highest architecture; of equal ones the plain entry is the one to name.
auto preference(const Arch& arch) {
  int plain = arch.suffix == '\0' ? 2 : arch.suffix == 'f' ? 1 : 0;
  return std::make_tuple(arch.capability.major, arch.capability.minor, plain);
}

CodeMatch judge_ptx(const formats::DeviceCode& code, const std::optional<Version>& driver_cuda,
                    const knowledge::Knowledge& knowledge) {
  CodeMatch out{Match::ptx_unknown, code.arch, code.ptx_isa, {}};
  std::optional<Version> isa = parse_version(code.ptx_isa);
  if (!isa) return out;
  std::optional<Version> needed = knowledge.cuda_for_ptx(*isa);
  if (needed) {
    if (!driver_cuda) return out;
    if (*needed <= *driver_cuda) {
      out.match = Match::ptx;
    } else {
      out.match = Match::ptx_too_new;
      out.needs_cuda = needed->text();
    }
    return out;
  }
  // An ISA that the table does not hold: older than all of it is fine for every driver that knows the oldest row.
  if (!driver_cuda) return out;
  std::optional<Version> oldest_isa, oldest_cuda;
  for (const knowledge::PtxIsaRow& row : knowledge.ptx_isas) {
    std::optional<Version> row_isa = parse_version(row.isa);
    if (!row_isa || (oldest_isa && *oldest_isa <= *row_isa)) continue;
    oldest_isa = row_isa;
    oldest_cuda = parse_version(row.cuda);
  }
  if (oldest_isa && oldest_cuda && *isa < *oldest_isa && *oldest_cuda <= *driver_cuda) out.match = Match::ptx;
  return out;
}

}  // namespace

const char* to_string(Match match) {
  switch (match) {
    case Match::cubin: return "cubin";
    case Match::ptx: return "ptx";
    case Match::ptx_too_new: return "ptx_too_new";
    case Match::ptx_unknown: return "ptx_unknown";
    case Match::none: return "none";
    case Match::no_code: return "no_code";
  }
  return "none";
}

bool cubin_runs(const std::string& text, ComputeCapability device) {
  std::optional<Arch> arch = parse_arch(text);
  if (!arch) return false;
  if (arch->suffix == 'a') return arch->capability == device;
  if (arch->suffix == 'f') return in_family(arch->capability, device);
  if (arch->capability == device) return true;
  if (is_thor(arch->capability) || is_thor(device)) return is_thor(arch->capability) && is_thor(device);
  if (is_tegra(arch->capability) || is_tegra(device)) return false;
  return arch->capability.major == device.major && arch->capability.minor <= device.minor;
}

bool ptx_runs(const std::string& text, ComputeCapability device) {
  std::optional<Arch> arch = parse_arch(text);
  if (!arch) return false;
  if (arch->suffix == 'a') return arch->capability == device;
  if (arch->suffix == 'f') return in_family(arch->capability, device);
  return arch->capability <= device || (is_thor(arch->capability) && is_thor(device));
}

CodeMatch match_code(const std::vector<formats::DeviceCode>& code, ComputeCapability device,
                     std::optional<Version> driver_cuda, const knowledge::Knowledge& knowledge) {
  CodeMatch out{Match::no_code, {}, {}, {}};
  const formats::DeviceCode* best_ptx = nullptr;
  std::optional<Arch> best_cubin, best_virtual;
  std::optional<Version> best_isa;
  for (const formats::DeviceCode& entry : code) {
    const bool cubin = entry.kind == formats::CodeKind::cubin, ptx = entry.kind == formats::CodeKind::ptx;
    if (!cubin && !ptx) continue;
    if (out.match == Match::no_code) out.match = Match::none;
    if (!entry.loadable) continue;
    std::optional<Arch> arch = parse_arch(entry.arch);
    if (cubin && cubin_runs(entry.arch, device)) {
      if (best_cubin && preference(*arch) <= preference(*best_cubin)) continue;
      best_cubin = arch;
      out = {Match::cubin, entry.arch, {}, {}};
    } else if (ptx && ptx_runs(entry.arch, device)) {
      // Of equal ones the newest ISA decides: a file whose modules differ needs a driver that knows all of them.
      std::optional<Version> isa = parse_version(entry.ptx_isa);
      if (best_ptx && std::make_pair(preference(*arch), isa) <= std::make_pair(preference(*best_virtual), best_isa))
        continue;
      best_ptx = &entry;
      best_virtual = arch;
      best_isa = isa;
    }
  }
  if (out.match == Match::cubin || !best_ptx) return out;
  return judge_ptx(*best_ptx, driver_cuda, knowledge);
}

}  // namespace cufit::checks
