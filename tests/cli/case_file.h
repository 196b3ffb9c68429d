// SPDX-License-Identifier: Apache-2.0
// One case of tests/cli as text: <command>/<case>.test. tests/README.md shows the layout.
// The text is kept byte for byte: what cannot stand in a text file is written as an escape.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cufit::cli_tests {

struct CaseFile {
  std::string head;    // the file up to the end of the script, as written: an update keeps it
  int columns = 0;     // width of the pseudo-terminal; 0: none, stdout and stderr are apart
  std::string script;  // for sh -c
  std::string out, err;
  int exit_code = 0;
};

// Nothing if the text is no case; `problem` then is "line N: what is wrong with it".
std::optional<CaseFile> parse_case(std::string_view text, std::string& problem);

// The text of the file: the head, then what is expected. parse_case() reads the same from it.
std::string case_text(const CaseFile& file);

}  // namespace cufit::cli_tests
