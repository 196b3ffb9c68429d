// SPDX-License-Identifier: Apache-2.0
// The tables that change with releases (GPUs, drivers, toolkits, torch, its wheels, companions), read
// from one file in place of the built-in ones. All else of data/ stays as it was built in.
//
//   format = 1
//   date = 2026-12-24         # of the newest row of data/
//   [gpu]                     # and so on, as in data/*.toml: gen-tables --release writes it
//   ...
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "knowledge/knowledge.h"

namespace cufit::knowledge {

constexpr int64_t k_tables_format = 1;
constexpr size_t k_tables_most_bytes = size_t{4} << 20;

// Owns the texts that its rows point to.
class UpdatedTables {
 public:
  // Error{malformed} names file, line or table, and what is wrong: another format, a table or field
  // that lacks or is not known, a row that refers to none, a version that is none. Error{unsupported}
  // where the file is older than `base`, whose other tables it takes.
  static Result<std::unique_ptr<UpdatedTables>> read(std::string_view text, const std::string& file,
                                                     const Knowledge& base = Knowledge::builtin());
  const Knowledge& knowledge() const { return knowledge_; }

 private:
  UpdatedTables() = default;
  Knowledge knowledge_;
  std::vector<std::shared_ptr<const void>> storage_;
};

// What is wrong with tables that hold rows of the right form; empty = nothing.
std::string contradiction_in(const Knowledge& tables);

}  // namespace cufit::knowledge
