// SPDX-License-Identifier: Apache-2.0
// Facts from a collect_env dump that somebody pasted: every one is `claimed`, with the line that
// says so. What the text does not say stays unknown; nothing is filled in from this machine. Used
// by load_facts (`--from dump.txt`).
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "facts/facts.h"

namespace cufit::formats {
struct CollectEnvDump;
}

namespace cufit::facts {

// `name` is what sources call the text ("dump.txt"). Error{malformed} when the text is no such
// dump.
Result<Facts> facts_from_dump(std::string_view text, const std::string& name);
// The same of a dump that was recognised already.
Facts facts_from_dump(const formats::CollectEnvDump& dump, const std::string& name);

}  // namespace cufit::facts
