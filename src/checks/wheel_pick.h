// SPDX-License-Identifier: Apache-2.0
// Which official wheel serves these GPUs? Asks the wheel table (data/wheels.toml) with the same
// rules that judge real files. Used for next steps and, where a library cannot be read, as the
// table's opinion of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/check.h"
#include "formats/binary/device_code.h"

namespace cufit::checks {

struct WheelPick {
  std::string torch;                // "2.14.1"
  std::string tag;                  // "cu126"
  bool needs_newer_driver = false;  // serves the GPUs, but not with the driver that is here
  // "3.12": it does not exist for the environment's Python, but for this one; else empty.
  std::string python = {};
};
// A wheel with machine code for all of `ccs`; where there is one, of a release that the installed
// packages take, that this driver runs and that exists for the environment's Python. Of several the
// release that is installed, else the newest.
std::optional<WheelPick> pick_wheel(const Input& input, const std::vector<ComputeCapability>& ccs,
                                    const facts::PythonEnv* env = nullptr);
// For all GPUs of the machine, so that a next step never cures one GPU and breaks another; empty
// where none does.
std::optional<WheelPick> pick_wheel_for_machine(const Input& input,
                                                const facts::PythonEnv* env = nullptr);
// The newest CPU build, for a machine without a GPU, that exists for the environment's Python.
std::optional<WheelPick> pick_cpu_wheel(const Input& input, const facts::PythonEnv& env);
// For a machine whose GPU nobody named: the newest that its driver and Python take.
std::optional<WheelPick> pick_wheel_for_any(const Input& input,
                                            const facts::PythonEnv* env = nullptr);
// This driver runs the wheel's CUDA; one that is not known is no reason against it.
bool driver_runs(const Input& input, const knowledge::WheelVariant& wheel);
// The driver is older than the first that drives one of these GPUs, whatever CUDA it speaks.
bool driver_precedes_gpu(const Input& input, const std::vector<ComputeCapability>& ccs);
// A Python that this release has wheels for, "3.11"; empty: the tables do not know the release.
std::string python_for(const knowledge::Knowledge& knowledge, std::string_view torch);

// What the table says of a wheel's device code on a platform ("linux_x86_64", "linux_aarch64").
std::vector<formats::DeviceCode> wheel_code(const knowledge::Knowledge& knowledge,
                                            std::string_view platform,
                                            const knowledge::WheelVariant& wheel);
// The table's device code of a wheel; empty = the table does not know this wheel.
std::vector<formats::DeviceCode> table_code(const Input& input, const std::string& release,
                                            const std::string& tag);
bool wheel_serves(const Input& input, const knowledge::WheelVariant& wheel, ComputeCapability cc);

}  // namespace cufit::checks
