// SPDX-License-Identifier: Apache-2.0
#include "report/json/json_value.h"

#include "resolve/wheel/target.h"

namespace cufit::report {

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json or_null(const std::optional<std::string>& text) { return text ? Json(*text) : Json(nullptr); }

Json or_null(const std::optional<uint64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json or_null(const std::optional<Version>& version) {
  return version ? Json(version->text()) : Json(nullptr);
}

Json driver_or_null(const std::optional<Version>& version) {
  return version ? Json(resolve::driver_text(*version)) : Json(nullptr);
}

void put_tables(Json& report, const knowledge::Knowledge& knowledge) {
  report["tables_date"] = knowledge.date;
  if (knowledge.updated) report["tables_updated"] = true;
}

}  // namespace cufit::report
