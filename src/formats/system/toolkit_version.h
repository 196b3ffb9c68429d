// SPDX-License-Identifier: Apache-2.0
// The version that a CUDA toolkit folder states of itself: version.json (11.1 and newer) or
// version.txt (older). Used by the toolkit probe. The files are small; a damaged one says nothing
// instead of something wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cufit::formats {

// {"cuda": {"name": "CUDA SDK", "version": "12.4.1"}, ...}; empty when it is not said.
std::string parse_toolkit_json(std::string_view text);
// Of the same file what nvcc says of itself: {"cuda_nvcc": {"version": "12.4.131"}}; empty when it
// is not said.
std::string parse_toolkit_nvcc(std::string_view text);
// "CUDA Version 10.2.89"
std::string parse_toolkit_text(std::string_view text);

// The JSON text in a compatibility driver's .note.cuda.fwd_compatibility (ElfFile::compat_note):
// which CUDA it brings, and the driver branches and devices that it may be put on.
struct CompatNote {
  std::string cuda;                  // "13.0"
  std::vector<std::string> drivers;  // "535"
  std::vector<std::string> devices;
};
std::optional<CompatNote> parse_compat_note(std::string_view text);

}  // namespace cufit::formats
