// SPDX-License-Identifier: Apache-2.0
// Members of the tables in a user's file of alert rules, each checked. Errors are Error{malformed} with file and line.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/toml_text.h"

namespace cufit::watch {

class RuleFields {
 public:
  explicit RuleFields(const formats::TomlDocument& document) : document_(document) {}

  Error wrong(const formats::TomlValue& at, const std::string& what) const;
  // Empty where it is not there.
  Result<std::string> text(const formats::TomlValue& table, std::string_view key,
                           bool needed) const;
  Result<std::string> word(const formats::TomlValue& table, std::string_view key,
                           std::initializer_list<std::string_view> words, bool needed) const;
  Result<void> only(const formats::TomlValue& table,
                    std::initializer_list<std::string_view> keys) const;
  Result<double> seconds(const formats::TomlValue& table, std::string_view key) const;
  Result<double> number(const formats::TomlValue& table, std::string_view key) const;

 protected:
  const formats::TomlDocument& document_;
};

}  // namespace cufit::watch
