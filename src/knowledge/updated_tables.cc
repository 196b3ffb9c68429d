// SPDX-License-Identifier: Apache-2.0
#include "knowledge/updated_tables.h"

#include "base/format.h"
#include "knowledge/table_reader.h"

namespace cufit::knowledge {
namespace {

bool is_day(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (size_t i = 0; i < text.size(); ++i)
    if (i != 4 && i != 7 && (text[i] < '0' || text[i] > '9')) return false;
  return true;
}

Result<std::string> day_of(const formats::TomlDocument& document, const Knowledge& base) {
  const formats::TomlValue* form = document.find("format");
  if (form == nullptr || form->kind != formats::TomlValue::Kind::integer)
    return document.wrong(form != nullptr ? *form : document.root,
                          "no `format`: not a table file of cufit");
  if (form->integer != k_tables_format)
    return document.wrong(*form, format("tables of format {}; this cufit reads format {}",
                                        form->integer, k_tables_format));
  const formats::TomlValue* date = document.find("date");
  if (date == nullptr || !is_day(date->text))
    return document.wrong(date != nullptr ? *date : document.root, "no `date`");
  if (date->text < base.date)
    return fail(Code::unsupported,
                format("{}: tables of {} are older than those of this cufit ({})", document.file,
                       date->text, base.date));
  return date->text;
}

}  // namespace

Result<std::unique_ptr<UpdatedTables>> UpdatedTables::read(std::string_view text,
                                                           const std::string& file,
                                                           const Knowledge& base) {
  if (text.size() > k_tables_most_bytes)
    return fail(Code::malformed, format("{}: larger than {} MiB", file, k_tables_most_bytes >> 20));
  CUFIT_TRY(document, formats::parse_toml(text, file));
  CUFIT_TRY(day, day_of(document, base));
  std::unique_ptr<UpdatedTables> out(new UpdatedTables());
  out->knowledge_ = base;
  TableReader reader(document, out->storage_);
  read_release_tables(reader, out->knowledge_);
  reader.finish({"format", "date"});
  if (reader.error()) return *reader.error();
  auto kept = std::make_shared<const std::string>(std::move(day));
  out->storage_.push_back(kept);
  out->knowledge_.date = *kept;
  out->knowledge_.updated = true;
  if (const std::string what = contradiction_in(out->knowledge_); !what.empty())
    return fail(Code::malformed, format("{}: {}", file, what));
  return out;
}

}  // namespace cufit::knowledge
