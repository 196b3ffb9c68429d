// SPDX-License-Identifier: Apache-2.0
// Where installers are told to find packages: [[index]], index-url and extra-index-url of uv.toml
// or pyproject.toml's [tool.uv], index-url and extra-index-url of pip.conf. cufit itself knows no
// index.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

struct IndexUrl {
  std::string url;           // may hold a user's name and password: print shown_url() of it
  std::string name;          // of [[index]]; often empty
  std::string from;          // "UV_INDEX", "/etc/pip.conf", "--index"
  bool is_default = false;   // asked last, in place of the installer's own
  bool is_explicit = false;  // only for packages that name it
};

// `table` is "tool.uv" in a pyproject.toml and empty in a uv.toml. Error{malformed} with file and
// line. Entries of another form are skipped: the file is uv's to judge.
Result<std::vector<IndexUrl>> parse_uv_indexes(std::string_view text, const std::string& file,
                                               bool is_pyproject);
// Sections [global] and [install], the latter going first; never fails, unknown lines are skipped.
std::vector<IndexUrl> parse_pip_indexes(std::string_view text, const std::string& file);

// "https://me:secret@host/simple" -> "https://***@host/simple"; everywhere in a longer text too.
std::string without_credentials(std::string_view text);

// "name=https://..." as uv's variables and options take it.
IndexUrl parse_index_word(std::string_view word, const std::string& from);

}  // namespace cufit::formats
