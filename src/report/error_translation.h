// SPDX-License-Identifier: Apache-2.0
// What the folders below word in English — errors, why a fact is missing, values of evidence — in
// the user's language. They know no languages (an Error is one sentence, JSON keeps it), so a
// terminal finds the Chinese again by the English: messages "said.*", whose {names} stand for what
// was filled in: {meaning} is what a table of codes says, {what...} and {why...} are such texts
// again. Used by report/ and by commands/output.cc for stderr.
#pragma once

#include <string>
#include <string_view>

#include "knowledge/knowledge.h"

namespace cufit::report {

// `text` in `lang`. "class cu126: torch was not found" is put together of its parts where the whole
// is in no message. Unchanged where nothing fits: what programs and files say is quoted as it is.
std::string translated_error(std::string_view text, std::string_view lang,
                             const knowledge::Knowledge& knowledge);

// The same by messages whose keys begin with `keys` ("explain.fact."), as a whole only.
std::string reworded(std::string_view text, std::string_view keys, std::string_view lang,
                     const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
