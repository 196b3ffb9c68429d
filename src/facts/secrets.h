// SPDX-License-Identifier: Apache-2.0
// Secrets in texts that are shown: tokens of known forms anywhere, and what a command line gives as a password or key. Pure.
// What has no form and no name that tells ("mysql -pSECRET", a word alone) stays: a command line is no place for secrets.
#pragma once

#include <string>
#include <string_view>

namespace cufit::facts {

// Logins of URLs become "user@"; tokens that services give, of known forms, become `shown` (letters or stars).
void hide_tokens(std::string& text, const std::string& shown);

// Whether a value of this name is one that nobody shows: "--hf-token", "WANDB_API_KEY", "db.password"; not "--pad-token",
// "--max-tokens", "tokenizer".
bool is_secret_name(std::string_view name);

// Words of a command line, each ended by a zero byte as in /proc/PID/cmdline, with blanks between and "***" where a secret
// was: "--token ***", "password=***", "Authorization: ***", also inside of a word (sh -c, python -c).
std::string shown_command(std::string_view cmdline);

}  // namespace cufit::facts
