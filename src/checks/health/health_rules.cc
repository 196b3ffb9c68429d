// SPDX-License-Identifier: Apache-2.0
#include "checks/health/health_rules.h"

#include <algorithm>
#include <cstdlib>

#include "base/format.h"
#include "base/memory_size.h"
#include "base/nearest.h"
#include "base/number.h"
#include "formats/python/requirement.h"
#include "formats/toml_text.h"

namespace cufit::checks {
namespace {

using formats::TomlDocument;
using formats::TomlValue;
using Kind = TomlValue::Kind;

constexpr int64_t k_most_number = 1'000'000;

struct NumberKey {
  const char* name;
  std::optional<uint32_t> HealthRules::*member;
};
constexpr NumberKey k_numbers[] = {{"gpus", &HealthRules::gpus},
                                   {"link_width", &HealthRules::link_width},
                                   {"nvlinks", &HealthRules::nvlinks},
                                   {"clock_mhz", &HealthRules::clock_mhz}};
struct SwitchKey {
  const char* name;
  std::optional<bool> HealthRules::*member;
};
constexpr SwitchKey k_switches[] = {{"ecc", &HealthRules::ecc},
                                    {"persistence", &HealthRules::persistence},
                                    {"cdi", &HealthRules::cdi}};
struct XidKey {
  const char* name;
  std::optional<std::vector<uint32_t>> HealthRules::*member;
};
constexpr XidKey k_xids[] = {{"xid", &HealthRules::xid},
                             {"xid_warning", &HealthRules::xid_warning}};
struct RuleListKey {
  const char* name;
  std::vector<std::string> HealthRules::*member;
};
constexpr RuleListKey k_rule_lists[] = {{"errors", &HealthRules::errors},
                                        {"warnings", &HealthRules::warnings},
                                        {"off", &HealthRules::off}};
constexpr const char* k_other_keys[] = {"driver", "mig", "shm_free", "memlock"};

template <class Row, size_t N>
const Row* row_of(const Row (&rows)[N], const std::string& name) {
  const Row* found = std::find_if(std::begin(rows), std::end(rows),
                                  [&](const Row& row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : found;
}

std::vector<std::string> key_names() {
  std::vector<std::string> out;
  for (const NumberKey& row : k_numbers) out.push_back(row.name);
  for (const SwitchKey& row : k_switches) out.push_back(row.name);
  for (const XidKey& row : k_xids) out.push_back(row.name);
  for (const RuleListKey& row : k_rule_lists) out.push_back(row.name);
  out.insert(out.end(), std::begin(k_other_keys), std::end(k_other_keys));
  return out;
}

// "1g.10gb", "1g.10gb+me", "2g.24gb-me": a GPU has seven slices of compute at most.
bool is_mig_instance(std::string_view name) {
  const size_t end = std::min(name.find_first_of("+-"), name.size());
  const std::string_view size = name.substr(0, end);
  return size.size() > 5 && size[0] >= '1' && size[0] <= '7' && size.substr(1, 2) == "g." &&
         ends_with(size, "gb") && parse_uint(size.substr(3, size.size() - 5)) &&
         name.substr(end).find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.+-") ==
             std::string_view::npos;
}

// As sizes of GPU memory are written, and KiB: locked memory is often limited to 64 of them.
std::optional<uint64_t> size_of_host_memory(const std::string& text) {
  const std::string unit = lower(text);
  for (const char* kib : {"kib", "ki", "kb", "k"}) {
    if (!ends_with(unit, kib)) continue;
    const std::string number = text.substr(0, text.size() - std::string_view(kib).size());
    const std::optional<uint64_t> bytes = parse_memory_size(number + "MiB");
    return bytes ? std::optional(*bytes >> 10) : std::nullopt;
  }
  return parse_memory_size(text);
}

class HealthReader {
 public:
  HealthReader(const TomlDocument& document, const knowledge::Knowledge& knowledge)
      : document_(document), knowledge_(knowledge) {}

  Result<void> read(const std::string& key, const TomlValue& value) {
    if (const NumberKey* row = row_of(k_numbers, key))
      return number(key, value, rules.*row->member);
    if (const SwitchKey* row = row_of(k_switches, key)) {
      if (value.kind != Kind::boolean)
        return document_.wrong(value, format("`health.{}` must be true or false", key));
      rules.*row->member = value.integer != 0;
      return {};
    }
    if (const XidKey* row = row_of(k_xids, key)) return xids(key, value, rules.*row->member);
    if (const RuleListKey* row = row_of(k_rule_lists, key))
      return rule_list(key, value, rules.*row->member);
    if (key == "driver") return driver(value);
    if (key == "mig") return mig(value);
    if (key == "shm_free") return size(key, value, rules.shm_free_bytes);
    if (key == "memlock") return memlock(value);
    const std::vector<std::string> near = nearest(key, key_names(), 1);
    if (near.empty())
      return document_.wrong(value, format("`health.{}` is not a rule that cufit knows", key));
    return document_.wrong(
        value, format("`health.{}` is not a rule that cufit knows; `{}` is", key, near.front()));
  }

  HealthRules rules;

 private:
  Result<void> number(const std::string& key, const TomlValue& value,
                      std::optional<uint32_t>& out) {
    if (value.kind != Kind::integer || value.integer < 0 || value.integer > k_most_number)
      return document_.wrong(value, format("`health.{}` must be a number from 0 on", key));
    out = static_cast<uint32_t>(value.integer);
    return {};
  }

  Result<void> xids(const std::string& key, const TomlValue& value,
                    std::optional<std::vector<uint32_t>>& out) {
    if (value.kind != Kind::array)
      return document_.wrong(value, format("`health.{}` must be a list of Xid numbers", key));
    out.emplace();
    for (const TomlValue& item : value.items) {
      if (item.kind != Kind::integer || item.integer <= 0 || item.integer > k_most_number)
        return document_.wrong(item, format("`health.{}` must be a list of Xid numbers", key));
      for (const XidKey& other : k_xids) {
        const auto& list = rules.*other.member;
        if (other.name != key && list &&
            std::find(list->begin(), list->end(), item.integer) != list->end())
          return document_.wrong(item, format("Xid {} stands in `xid` and in `xid_warning`: it "
                                              "can count once",
                                              item.integer));
      }
      out->push_back(static_cast<uint32_t>(item.integer));
    }
    return {};
  }

  Result<void> rule_list(const std::string& key, const TomlValue& value,
                         std::vector<std::string>& out) {
    if (value.kind != Kind::array || (!value.items.empty() && !value.is_texts()))
      return document_.wrong(value, format("`health.{}` must be a list of rules", key));
    for (const TomlValue& item : value.items) {
      const bool known =
          std::any_of(knowledge_.health_rules.begin(), knowledge_.health_rules.end(),
                      [&](const knowledge::HealthRule& rule) { return rule.id == item.text; });
      if (!known)
        return document_.wrong(item,
                               format("`{}` is not a rule of `[health]`; `cufit doctor --fast "
                                      "-v` lists them",
                                      item.text));
      for (const RuleListKey& other : k_rule_lists) {
        const std::vector<std::string>& list = rules.*other.member;
        if (std::find(list.begin(), list.end(), item.text) != list.end())
          return document_.wrong(item, format("`{}` stands in two lists of `[health]`", item.text));
      }
      out.push_back(item.text);
    }
    return {};
  }

  Result<void> driver(const TomlValue& value) {
    std::vector<const TomlValue*> items;
    if (value.is_text()) items.push_back(&value);
    if (value.is_texts())
      for (const TomlValue& item : value.items) items.push_back(&item);
    if (items.empty())
      return document_.wrong(value,
                             "`health.driver` must be a version or specifier, as "
                             "\">=580.65\", or a list of versions");
    for (const TomlValue* item : items) {
      const bool bare = !item->text.empty() && item->text[0] >= '0' && item->text[0] <= '9';
      if (!formats::parse_clauses(bare ? "==" + item->text : item->text))
        return document_.wrong(*item, format("`{}` is not a version specifier", item->text));
      if (!bare && items.size() > 1)
        return document_.wrong(*item,
                               "a list of `health.driver` holds versions; specifiers stand "
                               "in one text, as \">=580.65,<590\"");
      rules.driver.push_back(item->text);
    }
    return {};
  }

  Result<void> mig(const TomlValue& value) {
    if (value.is_text() && value.text == "off") {
      rules.mig.emplace();
      return {};
    }
    if (!value.is_texts() || value.items.empty())
      return document_.wrong(value,
                             "`health.mig` must be \"off\" or a list of instances, as "
                             "[\"3g.40gb\", \"3g.40gb\"]");
    rules.mig.emplace();
    for (const TomlValue& item : value.items) {
      if (!is_mig_instance(item.text))
        return document_.wrong(item,
                               format("`{}` is no name of a MIG instance, as \"3g.40gb\"", item.text));
      rules.mig->push_back(item.text);
    }
    // As they are made: the largest first, or there is no place left for it. Then by name, so that
    // two layouts are equal where they hold the same.
    const auto slices = [](const std::string& name) { return std::atoi(name.c_str()); };
    std::sort(rules.mig->begin(), rules.mig->end(),
              [&](const std::string& a, const std::string& b) {
                return slices(a) != slices(b) ? slices(a) > slices(b) : a < b;
              });
    return {};
  }

  Result<void> size(const std::string& key, const TomlValue& value, std::optional<uint64_t>& out) {
    const std::optional<uint64_t> bytes =
        value.is_text() ? size_of_host_memory(value.text) : std::nullopt;
    if (!bytes)
      return document_.wrong(value, format("`health.{}` must be a size, as \"8 GiB\"", key));
    out = bytes;
    return {};
  }

  Result<void> memlock(const TomlValue& value) {
    if (value.is_text() && value.text == "unlimited") {
      rules.memlock_bytes = UINT64_MAX;
      return {};
    }
    return size("memlock", value, rules.memlock_bytes);
  }

  const TomlDocument& document_;
  const knowledge::Knowledge& knowledge_;
};

bool listed(const std::vector<std::string>& list, std::string_view id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

}  // namespace

Result<HealthRules> parse_health_rules(std::string_view text, const std::string& file,
                                       const knowledge::Knowledge& knowledge) {
  CUFIT_TRY(document, formats::parse_toml(text, file));
  const TomlValue* table = document.find("health");
  if (table == nullptr) {
    // A slip in the heading would ask for nothing, and nobody would see it.
    for (const formats::TomlMember& member : document.root.members)
      if (!nearest(member.name, {"health"}, 1).empty())
        return document.wrong(
            member.value, format("`[{}]` is no table of cufit.toml; `[health]` is", member.name));
    return HealthRules();
  }
  if (!table->is_table()) return document.wrong(*table, "`health` must be a table");
  HealthReader reader(document, knowledge);
  for (const formats::TomlMember& member : table->members)
    if (Result<void> read = reader.read(member.name, member.value); !read) return read.error();
  reader.rules.file = file;
  return std::move(reader.rules);
}

bool asks_for(const HealthRules& rules, std::string_view rule) {
  if (rule == "gpu_count") return rules.gpus.has_value();
  if (rule == "driver_version") return !rules.driver.empty();
  if (rule == "xid") return rules.xid || rules.xid_warning;
  if (rule == "ecc") return rules.ecc.has_value();
  if (rule == "mig") return rules.mig.has_value();
  if (rule == "link_width") return rules.link_width.has_value();
  if (rule == "nvlink") return rules.nvlinks.has_value();
  if (rule == "persistence") return rules.persistence.has_value();
  if (rule == "clocks") return rules.clock_mhz.has_value();
  if (rule == "cdi") return rules.cdi.has_value();
  if (rule == "shm_free") return rules.shm_free_bytes.has_value();
  if (rule == "memlock") return rules.memlock_bytes.has_value();
  return false;
}

HealthLevel level_of(const HealthRules& rules, const knowledge::HealthRule& rule) {
  if (listed(rules.off, rule.id)) return HealthLevel::off;
  const bool asked_level = rule.level == "asked";
  // Of a rule without a value there is nothing to hold, whatever list it stands in.
  if (asked_level && !asks_for(rules, rule.id)) return HealthLevel::off;
  if (listed(rules.errors, rule.id)) return HealthLevel::error;
  if (listed(rules.warnings, rule.id)) return HealthLevel::warning;
  return rule.level == "warning"   ? HealthLevel::warning
         : rule.level == "unknown" ? HealthLevel::unknown
                                   : HealthLevel::error;
}

}  // namespace cufit::checks
