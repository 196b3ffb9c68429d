// SPDX-License-Identifier: Apache-2.0
// The constants of torch/version.py, read as text: it is generated and holds only assignments of
// literals. Used for the environment's torch. Other modules' code cannot be read this way.
//
// Eras: `cuda = '9.0.176'` (0.4), `cuda = None`, `hip = None` (1.5), `cuda: Optional[str] = '12.6'`
// (2.x), `rocm`, `xpu` (2.5 and later).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cufit::formats {

// A constant: absent from the file, None, or its text.
struct PyConstant {
  bool present = false;
  std::optional<std::string> text;  // nullopt = None (or absent)
};

struct TorchVersionFile {
  PyConstant version, cuda, hip, xpu, git;
  std::optional<bool> debug;
};

// Lines that are no plain assignment are passed over.
TorchVersionFile parse_torch_version(std::string_view text);

}  // namespace cufit::formats
