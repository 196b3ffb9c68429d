// SPDX-License-Identifier: Apache-2.0
// What the look-ups take for granted of rows: versions that parse, in order, and references to rows
// that exist. tests/unit/knowledge/tables_test.cc asks more of the built-in tables.
#include <algorithm>

#include "base/format.h"
#include "knowledge/updated_tables.h"

namespace cufit::knowledge {
namespace {

bool is_plain(std::string_view text) {
  constexpr std::string_view k_plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
  return text.find_first_not_of(k_plain) == text.npos;
}

// The first thing that is wrong.
class Contradiction {
 public:
  void version(const char* table, std::string_view text, bool may_be_empty = false) {
    if (!(text.empty() && may_be_empty) && (!is_plain(text) || !parse_version(text)))
      say(format("table `{}`: `{}` is no version", table, text));
  }
  // Names that commands to copy are made of.
  void name(const char* table, std::string_view text) {
    if (!is_plain(text)) say(format("table `{}`: `{}` is no name", table, text));
  }
  void capability(const char* table, std::string_view text) {
    if (!parse_compute_capability(text))
      say(format("table `{}`: `{}` is no compute capability", table, text));
  }
  void capabilities(const char* table, std::string_view list) {
    for (const std::string_view one : split(list, ' '))
      if (!one.empty()) capability(table, one);
  }
  // Both were looked at before.
  void ascends(const char* table, std::string_view before, std::string_view now) {
    if (!problem_.empty() || before.empty()) return;
    if (!(*parse_version(before) < *parse_version(now)))
      say(format("table `{}`: `{}` stands behind `{}`", table, now, before));
  }
  void refers(bool exists, const char* table, std::string_view row, const char* to,
              std::string_view name) {
    if (!exists) say(format("table `{}`, row {}: `{}` is no row of `{}`", table, row, name, to));
  }
  std::string problem() { return std::move(problem_); }

 private:
  void say(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }
  std::string problem_;
};

void look_at_drivers(const Knowledge& tables, Contradiction& out) {
  std::string_view last;
  for (const ToolkitRow& row : tables.toolkits) {
    out.version("toolkit", row.version);
    out.version("toolkit", row.linux_driver, true);
    out.ascends("toolkit", last, row.version);
    last = row.version;
  }
  last = {};
  for (const PtxIsaRow& row : tables.ptx_isas) {
    out.version("ptx_isa", row.isa);
    out.version("ptx_isa", row.cuda);
    out.ascends("ptx_isa", last, row.isa);
    last = row.isa;
  }
  std::string branch;
  for (const BranchRow& row : tables.branches) {
    const std::string now = std::to_string(row.branch);
    out.version("branch", row.cuda);
    out.ascends("branch", branch, now);
    branch = now;
  }
  for (const FamilyFloor& row : tables.floors) out.version("family_floor", row.linux_min);
  for (const DriverWindow& row : tables.windows) out.capability("driver_window", row.cc);
  for (const ForwardCompat& row : tables.forward_compat) out.version("forward_compat", row.cuda);
}

void look_at_gpus(const Knowledge& tables, Contradiction& out) {
  for (const Gpu& row : tables.gpus) out.capability("gpu", row.cc);
  for (const OwnCodeRow& row : tables.own_code) out.capability("own_code", row.cc);
  for (const PciBlock& row : tables.pci_blocks) out.capability("pci_block", row.cc);
  for (const GpuContextRow& row : tables.gpu_context) out.capability("gpu_context", row.cc);
  for (const ArchFamilyRow& row : tables.arch_families) out.capability("arch_family", row.cc);
  for (const RenumberedArchRow& row : tables.renumbered_archs) {
    out.capability("renumbered_arch", row.before);
    out.capability("renumbered_arch", row.cc);
  }
}

void look_at_wheels(const Knowledge& tables, Contradiction& out) {
  std::string_view last;
  for (const TorchRelease& row : tables.torch_releases) {
    out.version("torch", row.version);
    out.ascends("torch", last, row.version);
    last = row.version;
  }
  for (const CudaTag& row : tables.cuda_tags) {
    out.name("cuda_tag", row.tag);
    out.version("cuda_tag", row.cuda);
    out.version("cuda_tag", row.linux_min);
    out.version("cuda_tag", row.first_torch);
    out.version("cuda_tag", row.last_torch);
  }
  for (const TorchRelease& row : tables.torch_releases)
    for (const std::string_view one : {row.torchvision, row.torchaudio, row.triton})
      out.name("torch", one);
  for (const ExtensionRow& row : tables.extensions) {
    out.name("extension", row.package);
    out.name("extension", row.version);
  }
  for (const ArchSet& row : tables.arch_sets) {
    out.capabilities("arch_set", row.sm);
    out.capabilities("arch_set", row.ptx);
  }
  for (const WheelVariant& row : tables.wheel_variants) {
    const std::string name = format("{} {}", row.torch, row.tag);
    const bool has_set = std::any_of(tables.arch_sets.begin(), tables.arch_sets.end(),
                                     [&](const ArchSet& set) { return set.id == row.arch_set; });
    out.refers(has_set, "wheel", name, "arch_set", row.arch_set);
    out.refers(tables.find_torch(row.torch) != nullptr, "wheel", name, "torch", row.torch);
    out.refers(tables.find_cuda_tag(row.tag) != nullptr, "wheel", name, "cuda_tag", row.tag);
  }
}

}  // namespace

std::string contradiction_in(const Knowledge& tables) {
  Contradiction out;
  look_at_gpus(tables, out);
  look_at_drivers(tables, out);
  look_at_wheels(tables, out);
  return out.problem();
}

}  // namespace cufit::knowledge
