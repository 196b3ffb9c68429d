// SPDX-License-Identifier: Apache-2.0
// Which file is being read, for the one message that can say nothing else: that memory ran out.
#pragma once

#include <string_view>

namespace cufit {

// The last file that this thread or another began to read. A copy, cut to what is kept for it, with
// what a terminal would obey as '?'; nothing is allocated.
void note_reading(std::string_view file);
const char* reading_now();  // empty where none was

}  // namespace cufit
