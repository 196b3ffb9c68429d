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

// Order of the driver's preference: the highest architecture; of equal ones the plain entry is the
// one to name.
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
  // An ISA that the table does not hold: older than all of it is fine for every driver that knows
  // the oldest row.
  if (!driver_cuda) return out;
  std::optional<Version> oldest_isa, oldest_cuda;
  for (const knowledge::PtxIsaRow& row : knowledge.ptx_isas) {
    std::optional<Version> row_isa = parse_version(row.isa);
    if (!row_isa || (oldest_isa && *oldest_isa <= *row_isa)) continue;
    oldest_isa = row_isa;
    oldest_cuda = parse_version(row.cuda);
  }
  if (oldest_isa && oldest_cuda && *isa < *oldest_isa && *oldest_cuda <= *driver_cuda)
    out.match = Match::ptx;
  return out;
}

}  // namespace

const char* to_string(Match match) {
  switch (match) {
    case Match::cubin:
      return "cubin";
    case Match::ptx:
      return "ptx";
    case Match::ptx_too_new:
      return "ptx_too_new";
    case Match::ptx_unknown:
      return "ptx_unknown";
    case Match::none:
      return "none";
    case Match::no_code:
      return "no_code";
  }
  return "none";
}

bool cubin_runs(const std::string& text, ComputeCapability device,
                const knowledge::Knowledge& knowledge) {
  std::optional<Arch> arch = parse_arch(text);
  if (!arch) return false;
  if (arch->suffix == 'a') return arch->capability == device;
  if (arch->suffix == 'f') return knowledge.in_family(arch->capability, device);
  const ComputeCapability made_for = knowledge.renumbered(arch->capability);
  const ComputeCapability runs_on = knowledge.renumbered(device);
  if (made_for == runs_on) return true;
  if (made_for.major != runs_on.major || made_for.minor > runs_on.minor) return false;
  return !knowledge.has_own_code(made_for) && !knowledge.has_own_code(runs_on);
}

bool ptx_runs(const std::string& text, ComputeCapability device,
              const knowledge::Knowledge& knowledge) {
  std::optional<Arch> arch = parse_arch(text);
  if (!arch) return false;
  if (arch->suffix == 'a') return arch->capability == device;
  if (arch->suffix == 'f') return knowledge.in_family(arch->capability, device);
  return arch->capability <= device ||
         knowledge.renumbered(arch->capability) == knowledge.renumbered(device);
}

namespace {

// Entries of one kind that fit the device.
struct Fitting {
  std::vector<std::pair<Arch, const formats::DeviceCode*>> entries;
  uint64_t count = 0, most = 0;

  void add(const Arch& arch, const formats::DeviceCode& code) {
    entries.emplace_back(arch, &code);
    count += code.count;
    most = std::max<uint64_t>(most, code.count);
  }
  // What most modules get: the most preferred entry that is not a rare one. Of equal ones the
  // newest ISA decides: a file whose modules differ needs a driver that knows all of them.
  const formats::DeviceCode* best() const {
    const std::pair<Arch, const formats::DeviceCode*>* best = nullptr;
    auto order = [](const auto& entry) {
      return std::make_pair(preference(entry.first), parse_version(entry.second->ptx_isa));
    };
    for (const auto& entry : entries) {
      if (uint64_t{entry.second->count} * 2 < most) continue;
      if (!best || order(*best) < order(entry)) best = &entry;
    }
    return best ? best->second : nullptr;
  }
};

}  // namespace

CodeMatch match_code(const std::vector<formats::DeviceCode>& code, ComputeCapability device,
                     std::optional<Version> driver_cuda, const knowledge::Knowledge& knowledge) {
  constexpr uint64_t k_special = 20;  // see the header: fewer than 1 of 20 are special kernels
  CodeMatch out;
  out.match = Match::no_code;
  Fitting cubins, ptx;
  for (const formats::DeviceCode& entry : code) {
    const bool is_cubin = entry.kind == formats::CodeKind::cubin;
    if (!is_cubin && entry.kind != formats::CodeKind::ptx) continue;
    out.match = Match::none;
    out.largest = std::max(out.largest, entry.count);
    std::optional<Arch> arch = parse_arch(entry.arch);
    if (!arch || !entry.loadable) continue;
    if (is_cubin && cubin_runs(entry.arch, device, knowledge)) cubins.add(*arch, entry);
    if (!is_cubin && ptx_runs(entry.arch, device, knowledge)) ptx.add(*arch, entry);
  }
  if (cubins.count > 0 && cubins.count * k_special >= out.largest)
    return CodeMatch{Match::cubin, cubins.best()->arch, {}, {}};
  if (ptx.count > 0 && ptx.count * k_special >= out.largest)
    return judge_ptx(*ptx.best(), driver_cuda, knowledge);
  out.fitting = static_cast<uint32_t>(std::min<uint64_t>(cubins.count + ptx.count, UINT32_MAX));
  return out;
}

}  // namespace cufit::checks
