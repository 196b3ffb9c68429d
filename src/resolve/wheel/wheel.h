// SPDX-License-Identifier: Apache-2.0
// One torch wheel as far as its fit matters: what it was built with and for. From the wheel table
// (data/wheels.toml, data/extensions.toml), from a lock, or from installed files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "formats/binary/device_code.h"
#include "knowledge/knowledge.h"

namespace cufit::resolve {

struct Wheel {
  std::string torch;  // "2.14.1", without local part
  std::string tag;    // "cu126", "cpu"
  std::string platform = "linux_x86_64";
  std::optional<Version> cuda;         // toolkit it was built with; nullopt = CPU wheel
  std::optional<Version> driver_min;   // oldest driver, by minor-version compatibility
  std::optional<Version> driver_full;  // driver of its toolkit: PTX compiles from here on
  std::vector<formats::DeviceCode> code;
  std::optional<Version> glibc;      // oldest C library; nullopt = not known
  std::vector<std::string> pythons;  // minors "3.10"; empty = not known
  // Those of its file on the default Python index, where they are fewer.
  std::vector<std::string> default_pythons = {};
  std::string released;           // "2026-09-30"; empty = not known
  bool on_default_index = false;  // `pip install torch==...` without an index gets it
  std::string source;             // "data/wheels.toml", or a path

  bool is_cpu() const { return tag == "cpu"; }
};

// Every wheel of the table for a platform ("linux_x86_64"), CPU wheels included, newest torch
// first; of one release: the default index's variant first, then the newest CUDA, CPU last.
std::vector<Wheel> known_wheels(const knowledge::Knowledge& knowledge, std::string_view platform);

// "7.5 8.0 8.6", "12.0" of cubins / PTX.
std::vector<std::string> capabilities_of(const Wheel& wheel, formats::CodeKind kind);

}  // namespace cufit::resolve
