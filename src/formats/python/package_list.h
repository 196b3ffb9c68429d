// SPDX-License-Identifier: Apache-2.0
// Reads which packages a pasted text speaks of: `pip list`, `pip freeze`, `uv pip list`,
// requirements, `pip show`, `conda list`, environment.yml, what pip prints while it installs, and
// mentions in prose ("torch: 2.3.0", "PyTorch 1.13.1", "vllm 0.8.4").
//
// A text tells things that are not so any more or never were: what pip removed, what a failing
// command asked for. `kind` keeps them apart; what another package needs and what prose compares
// with ("requires torch 2.4", "2.3 worked") is left out. Entries are in the order of the text, so
// that a later one replaces an earlier one of the same name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/prose/text_lines.h"

namespace cufit::formats {

enum class PackageKind {
  installed,  // a list of what is there, or an installer's "Successfully installed"
  requested,  // asked for by a command or a list of requirements
  removed,
  mentioned  // prose: "torch 2.3.0"
};

struct PackageEntry {
  std::string name;     // as written: "flash_attn"; "PyTorch" of prose is "torch"
  std::string version;  // empty = not said
  std::string build;    // conda: "py3.8_cpu_0"
  std::string channel;  // conda
  PackageKind kind = PackageKind::mentioned;
  bool conda = false;   // from a conda list, command or environment
  bool step = false;    // an installer's report: it takes the place of what was there
  bool failed = false;  // requested, and the text says that it could not be had
  uint64_t line = 0;
};

struct PackageList {
  std::vector<PackageEntry> entries;  // at most 4000
};

PackageList parse_package_list(std::span<const TextLine> lines);

// "Name" and version of "torch-2.3.0+cu121-cp310-cp310-linux_x86_64.whl"; empty version = neither.
PackageEntry wheel_name(std::string_view file);

}  // namespace cufit::formats
