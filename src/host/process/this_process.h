// SPDX-License-Identifier: Apache-2.0
// cufit's own process: its terminal, its variables.
#pragma once

#include <string>

namespace cufit::host {

enum class Stream { in, out, err };
bool is_terminal(Stream stream);
int terminal_columns();  // of stdout; 0 = it is no terminal or does not say

std::string program_path();  // of this program's file; empty = not known
int process_id();
unsigned user_id();                              // the effective one
bool is_root();                                  // by its effective user
std::string process_variable(const char* name);  // empty = not set

}  // namespace cufit::host
