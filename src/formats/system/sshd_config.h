// SPDX-License-Identifier: Apache-2.0
// sshd_config (sshd_config(5), OpenSSH 9): `Keyword value`, `Keyword=value`, keywords in any case,
// `"a value with blanks"`, `#` begins a comment. The first value of a keyword counts, except for
// Port, HostKey, ListenAddress and SetEnv, which add up. What follows `Match ...` holds for some
// logins only, up to the next Match. Include is a setting like others here: files are opened by
// whoever reads them (host/image/image_setup.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/system/shell_commands.h"

namespace cufit::formats {

struct SshdSetting {
  std::string keyword;  // lower case: "passwordauthentication"
  std::string value;    // without quotes: "yes", "/a /b"
  std::string match;    // of its Match block, "User bob"; empty = for everybody
  uint32_t line = 0;
};

// At most 10 000 settings; what is no setting is left out.
std::vector<SshdSetting> parse_sshd_config(std::string_view text);

// What a command that starts sshd says beside the file: -p, -o, -f (sshd(8)).
struct SshdStart {
  bool starts = false;
  std::string file;  // of -f; empty = the usual one
  // Of -o and -p; the number that a variable has as its default, "2222" of "${PORT:-2222}".
  std::vector<SshdSetting> settings;
};
SshdStart parse_sshd_start(const ShellCommand& command);

}  // namespace cufit::formats
