// SPDX-License-Identifier: Apache-2.0
// What goes with a torch: packages of its own release, and those whose binaries are built against
// it (data/extensions.toml).
#include <algorithm>

#include "base/format.h"
#include "resolve/wheel/resolve.h"

namespace cufit::resolve {
namespace {

using knowledge::ExtensionRow;
using knowledge::Knowledge;

std::string minor_of(std::string_view version) {
  const auto parsed = parse_version(version);
  return parsed ? std::to_string(parsed->part(0)) + "." + std::to_string(parsed->part(1)) : "";
}

bool has_word(std::string_view list, std::string_view word) {
  for (std::string_view one : split(list, ' '))
    if (one == word) return true;
  return false;
}

bool fits_torch(const ExtensionRow& row, const Wheel& wheel) {
  const bool clauses = row.torch.find_first_of("=<>~") != std::string_view::npos;
  if (!clauses) return has_word(row.torch, minor_of(wheel.torch));
  const auto parsed = formats::parse_clauses(row.torch);
  return parsed && formats::satisfies(*parsed, wheel.torch);
}

// Code for one CUDA version, or for all of a major. The file comes from the index that torch comes
// from, and the default one has a single file: it needs the runtime of its own major.
bool fits_cuda(const ExtensionRow& row, const Wheel& wheel) {
  if (!wheel.cuda) return row.cuda.empty();
  const std::string major = std::to_string(wheel.cuda->part(0));
  if (wheel.on_default_index && !row.default_cuda.empty()) {
    const auto built = parse_version(split(row.default_cuda, ' ').front());
    return built && built->part(0) == wheel.cuda->part(0);
  }
  return row.cuda.empty() || has_word(row.cuda, major) ||
         has_word(row.cuda, major + "." + std::to_string(wheel.cuda->part(1)));
}

bool fits_glibc(const ExtensionRow& row, const CompanionPlace& place) {
  const auto need = parse_version(row.glibc);
  return !need || !place.glibc || *place.glibc >= *need;
}

bool fits_python(const ExtensionRow& row, const std::string& python) {
  if (python.empty()) return true;
  if (!row.python.empty() && !has_word(row.python, python)) return false;
  const auto have = parse_version(python), need = parse_version(row.python_min);
  return !need || !have || *have >= *need;
}

bool fits_gpus(const ExtensionRow& row, const std::vector<ComputeCapability>& ccs) {
  const auto least = parse_compute_capability(row.cc_min);
  return !least ||
         std::all_of(ccs.begin(), ccs.end(), [&](ComputeCapability cc) { return cc >= *least; });
}

// Where the prebuilt file of a project's own releases lies. "" where its name is not known for sure:
// older releases named the CUDA minor that they were built with, and Arm has none.
std::string release_url(const ExtensionRow& row, const Wheel& wheel, const CompanionPlace& place,
                        const Knowledge& knowledge) {
  const auto version = parse_version(row.version);
  if (row.package != "flash-attn" || !wheel.cuda || wheel.platform != "linux_x86_64" ||
      place.python.empty() || !version || *version < Version{{2, 7, 3}})
    return {};
  for (const knowledge::WheelVariant* variant : knowledge.wheels_of(wheel.torch)) {
    if (variant->tag != wheel.tag) continue;
    std::string python = "cp";
    for (const char c : place.python)
      if (c != '.') python += c;
    return format(
        "https://github.com/Dao-AILab/flash-attention/releases/download/v{}/"
        "flash_attn-{}%2Bcu{}torch{}cxx11abi{}-{}-{}-linux_x86_64.whl",
        row.version, row.version, wheel.cuda->part(0), minor_of(wheel.torch),
        variant->cxx11_abi == 1 ? "TRUE" : "FALSE", python, python);
  }
  return {};
}

// What is asked of one package.
std::vector<formats::VersionClause> clauses_of(const CompanionPlace& place,
                                               std::string_view package) {
  std::vector<formats::VersionClause> out;
  for (const formats::Requirement& one : place.asked)
    if (one.name == package) out.insert(out.end(), one.clauses.begin(), one.clauses.end());
  return out;
}

// The version that clauses speak of where no row meets them: what they begin with, else what they
// end at. It may not meet them itself: "<1" names none.
std::optional<formats::PythonVersion> version_asked(
    const std::vector<formats::VersionClause>& clauses) {
  for (const bool ends : {false, true})
    for (const formats::VersionClause& clause : clauses)
      if (clause.op != "!=" && ends == (clause.op[0] == '<'))
        return formats::parse_python_version(clause.version);
  return std::nullopt;
}

struct Rows {
  std::vector<const ExtensionRow*> rows;  // oldest first
  std::string version;                    // asked for and no row; empty: the rows' own
  std::string names;                      // of the rows then
};

void add_version(Rows& rows, const ExtensionRow& row) {
  const std::string version(row.version);
  rows.rows.push_back(&row);
  if (contains(rows.names, version)) return;
  rows.names += (rows.names.empty() ? "" : ", ") + version;
}

// Those that meet what is asked. Where none does, a release between two rows or before the first is
// as its neighbours are: unknown, which is not impossible. What is newer than all is not among them.
Rows rows_for(std::string_view package, const std::vector<formats::VersionClause>& clauses,
              const Knowledge& knowledge) {
  Rows meeting, all, between;
  for (const ExtensionRow& row : knowledge.extensions) {
    if (row.package != package) continue;
    all.rows.push_back(&row);
    if (formats::satisfies(clauses, row.version)) meeting.rows.push_back(&row);
  }
  if (!meeting.rows.empty()) return meeting;
  const auto asked = version_asked(clauses);
  if (!asked || !formats::satisfies(clauses, asked->text)) return all;
  const ExtensionRow *below = nullptr, *above = nullptr;
  for (const ExtensionRow* row : all.rows) {
    const auto version = formats::parse_python_version(row->version);
    if (!version || row->origin == "source") continue;
    if (formats::compare(*version, *asked) < 0) {
      below = row;
    } else if (above == nullptr) {
      above = row;
    }
  }
  if (above == nullptr) return all;
  for (const ExtensionRow* row : all.rows)
    if (row->version == above->version || (below != nullptr && row->version == below->version))
      add_version(between, *row);
  between.version = asked->text;
  return between;
}

// The newest row that fits; else what the best one fails on, in the order torch, CUDA, GPU, Python,
// C library. What has to be built comes after all files.
Companion best_row(const Rows& rows, std::string_view package, const Wheel& wheel,
                   const CompanionPlace& place, const Knowledge& knowledge) {
  Companion companion{std::string(package), "", "torch"};
  int best = 0;
  constexpr int k_all = 5;
  std::string_view newest;
  for (const ExtensionRow& row : knowledge.extensions)
    if (row.package == package && row.origin != "source") newest = row.version;
  for (const bool built : {false, true}) {
    for (auto at = rows.rows.rbegin(); at != rows.rows.rend() && best < k_all; ++at) {
      const ExtensionRow& row = **at;
      if (built != (row.origin == "source")) continue;
      if (!fits_torch(row, wheel)) continue;
      int reached = 1;
      if (fits_cuda(row, wheel)) reached = 2;
      if (reached == 2 && fits_gpus(row, place.ccs)) reached = 3;
      if (reached == 3 && fits_python(row, place.python)) reached = 4;
      if (reached == 4 && fits_glibc(row, place)) reached = k_all;
      if (reached <= best) continue;
      best = reached;
      static constexpr const char* k_why[] = {"torch", "cuda", "gpu", "python", "glibc", ""};
      companion.why_not = k_why[reached];
      if (reached < k_all) continue;
      companion.version = std::string(row.version);
      companion.origin = std::string(row.origin);
      companion.newest = row.version == newest;
      if (row.origin == "release") companion.url = release_url(row, wheel, place, knowledge);
    }
  }
  return companion;
}

Companion extension_for(std::string_view package, const Wheel& wheel, const CompanionPlace& place,
                        const Knowledge& knowledge) {
  const std::vector<formats::VersionClause> clauses = clauses_of(place, package);
  const Rows rows = rows_for(package, clauses, knowledge);
  Companion companion = best_row(rows, package, wheel, place, knowledge);
  if (!companion.version.empty() && !rows.version.empty()) {
    companion.version = rows.version;
    companion.judged_by = rows.names;
    companion.newest = false;
    companion.url.clear();  // of a file that nobody has seen
  }
  // What is there for this torch beside what is asked for tells more than that nothing is.
  if (companion.version.empty() && !clauses.empty()) {
    const Companion unasked =
        best_row(rows_for(package, {}, knowledge), package, wheel, place, knowledge);
    if (!unasked.version.empty()) return unasked;
  }
  return companion;
}

}  // namespace

bool is_judged(const formats::Requirement& requirement) {
  for (const char* package :
       {"torch", "torchvision", "torchaudio", "triton", "xformers", "flash-attn", "bitsandbytes"})
    if (requirement.name == package) return true;
  return false;
}

std::vector<Companion> companions_of(const Wheel& wheel, const CompanionPlace& place,
                                     const Knowledge& knowledge) {
  std::vector<Companion> out;
  if (const knowledge::TorchRelease* release = knowledge.find_torch(wheel.torch)) {
    const std::pair<const char*, std::string_view> own[] = {
        {"torchvision", release->torchvision},
        {"torchaudio", release->torchaudio},
        {"triton", wheel.is_cpu() ? std::string_view() : release->triton}};
    // torch._inductor refuses older GPUs ("Triton only supports devices of CUDA Capability
    // >= 7.0").
    const bool too_old = std::any_of(place.ccs.begin(), place.ccs.end(), [](ComputeCapability cc) {
      return cc < ComputeCapability{7, 0};
    });
    for (const auto& [package, version] : own) {
      const char* why = version.empty() ? (wheel.is_cpu() ? "cpu" : "ended") : "";
      if (version.empty() && std::string_view(package) == "torchvision") why = "not_known";
      if (version.empty() && std::string_view(package) == "torchaudio") why = "ended";
      if (std::string_view(package) == "triton" && too_old && !version.empty()) {
        out.push_back({package, "", "old_gpu"});
        continue;
      }
      out.push_back({package, std::string(version), why});
    }
  }
  if (wheel.is_cpu()) return out;
  for (const char* package : {"xformers", "flash-attn", "bitsandbytes"})
    out.push_back(extension_for(package, wheel, place, knowledge));
  return out;
}

}  // namespace cufit::resolve
