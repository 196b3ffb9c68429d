// SPDX-License-Identifier: Apache-2.0
// Where the failing program runs, as its text tells it: container engine, operating system, package
// manager, Python. Decided once per text; every step is chosen for this one place
// ("next.text.<variant>" of data/findings), so that no two steps of an answer speak of two places.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/keeper.h"
#include "formats/prose/text_lines.h"

namespace cufit::explain {

struct Setting {
  enum class Engine { none, docker, compose, podman, containerd, kubernetes, apptainer, lxc };
  enum class System { unknown, wsl, windows, mac };

  Engine engine = Engine::none;
  System system = System::unknown;
  // How the system gets its packages: "ubuntu", "debian", "dnf", "zypper", "pacman", "void", "nixos",
  // "gentoo", "proxmox", "immutable" (rpm-ostree, bootc); empty: unknown
  std::string_view packages;
  bool portable = false;  // the Python that a Windows program brings along (ComfyUI)
  bool conda = false, slurm = false;
  Keeper keeper = Keeper::none;
  std::string tool;         // that uvx runs
  std::string interpreter;  // how that Python is called; empty: "python"
  std::string program;      // the script that was started: "train.py"; empty: not told

  // What a step of its own may be written for, most telling first.
  std::vector<std::string_view> variants() const;
};

// `clues`: names of those that the text holds (data/clues).
Setting read_setting(std::span<const formats::TextLine> lines,
                     const std::set<std::string_view>& clues);

}  // namespace cufit::explain
