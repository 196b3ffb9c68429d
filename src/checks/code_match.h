// SPDX-License-Identifier: Apache-2.0
// Will this device code run on that device? The rule set of NVIDIA's compatibility documents; which
// capabilities stand apart is in data/gpus.toml. Used by `inspect` and by every check about architectures;
// nothing else decides this question.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "formats/binary/device_code.h"
#include "knowledge/knowledge.h"

namespace cufit::checks {

enum class Match {
  cubin,  // machine code for exactly this capability, or an older minor of the same major, or its
          // family
  ptx,  // only by compiling PTX in the driver (slow first start; needs a driver that knows the PTX
        // ISA)
  ptx_too_new,  // PTX would fit the device, but the driver does not know its ISA (error 222)
  ptx_unknown,  // PTX would fit the device; the driver's CUDA version is not known
  none,         // nothing fits: error 209
  no_code,      // the file holds no device code at all
};
const char* to_string(Match match);

struct CodeMatch {
  Match match = Match::none;
  std::string arch;        // of the entry that the driver would take: "80", "90a", "100f"
  std::string ptx_isa;     // for the ptx states
  std::string needs_cuda;  // for ptx_too_new: first CUDA whose driver knows the ISA ("12.9")
  // For `none`: the few entries that would fit the device and the number of the file's most
  // frequent entry. Not zero where a library has some special kernels for a device that the rest of
  // it leaves out.
  uint32_t fitting = 0, largest = 0;
};

// Does one entry fit the device, leaving the driver's PTX limit aside? `arch` as in the header:
// "86", "90a", "100f".
bool cubin_runs(const std::string& arch, ComputeCapability device,
                const knowledge::Knowledge& knowledge);
bool ptx_runs(const std::string& arch, ComputeCapability device,
              const knowledge::Knowledge& knowledge);

// The driver's choice: any cubin before PTX; among cubins the highest architecture; among PTX the
// highest that fits. The driver chooses for each of a library's modules; `arch` is what most of
// them get. A library whose fitting entries are fewer than a twentieth of its most frequent one
// (cuDNN 9.19 for CUDA 13: 2 for sm_70 beside 708 for sm_100) does not serve the device.
// driver_cuda: the CUDA version of the user-mode driver ("12.2" as Version), if known.
CodeMatch match_code(const std::vector<formats::DeviceCode>& code, ComputeCapability device,
                     std::optional<Version> driver_cuda, const knowledge::Knowledge& knowledge);

}  // namespace cufit::checks
