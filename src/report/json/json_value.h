// SPDX-License-Identifier: Apache-2.0
// JSON as the writers of this folder build it: members in the order in which they were added, and
// null for what is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/version.h"
#include "knowledge/knowledge.h"

namespace cufit::report {

Json or_null(const std::string& text);  // null where it is empty
Json or_null(const std::optional<std::string>& text);
Json or_null(const std::optional<uint64_t>& number);
Json or_null(const std::optional<Version>& version);         // "12.8"
Json driver_or_null(const std::optional<Version>& version);  // "525.60.13", with its zero

// "tables_date", of the tables that judged.
void put_tables(Json& report, const knowledge::Knowledge& knowledge);

}  // namespace cufit::report
