// SPDX-License-Identifier: Apache-2.0
// The mirror that a user has in place of PyTorch's own index and of the default Python index:
//
//   [index]                                              # of cufit.toml
//   pytorch = "https://mirror.example/pytorch-wheels"   # below it: /cu126, /cu130, /cpu
//   default = "https://mirror.example/simple"
//
// What uv's and pip's own settings say (index_config.h) these tools read themselves; but uv does not
// read pip's, and a mirror of PyTorch's index that is configured for one variant serves the others.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace cufit::formats {

struct IndexSetting {
  std::string pytorch;        // empty = PyTorch's own
  std::string default_index;  // empty = as the installers are configured
  std::string from;           // the file or variable; empty = nothing is set
  std::string default_from;   // of default_index
  // UV_TORCH_BACKEND is set: uv takes torch from the index that it names, whatever a command says.
  bool uv_backend = false;
  bool has_mirror() const { return !pytorch.empty(); }
  // "https://download.pytorch.org/whl/cu126", or of the mirror. May hold a password: print it by
  // without_credentials().
  std::string pytorch_index_url(std::string_view tag) const;
};

// [index] of a cufit.toml; other tables are left to others. Error{malformed} with file and line: a
// key that is not known, a value that is no http or https address.
Result<IndexSetting> parse_index_setting(std::string_view text, const std::string& file);

// The mirror whose variant `index_url` is: "https://mirror.example/whl" of ".../whl/cu126/" and
// ".../whl". Empty: it is no mirror that its address shows, or PyTorch's own.
std::string pytorch_mirror(std::string_view index_url);

}  // namespace cufit::formats
