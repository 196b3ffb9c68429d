// SPDX-License-Identifier: Apache-2.0
#include "report/terminal/fact_lines.h"

#include <type_traits>

#include "base/format.h"
#include "facts/facts_fields.h"

namespace cufit::report {
namespace {

struct Walker {
  std::vector<FactLine>& out;
  std::string at;

  template <class T>
  void operator()(const char* name, const T& value) {
    add(at.empty() ? name : at + "." + name, value);
  }

  void line(const std::string& path, std::string value) {
    if (!value.empty()) out.push_back({path, std::move(value), {}, {}, {}, {}});
  }

  static std::string text(const std::string& value) { return value; }
  static std::string text(bool value) { return value ? "true" : "false"; }
  static std::string text(double value) { return format("{:g}", value); }
  static std::string text(int value) { return std::to_string(value); }
  static std::string text(uint32_t value) { return std::to_string(value); }
  static std::string text(uint64_t value) { return std::to_string(value); }
  static std::string text(const std::vector<std::string>& values) { return join(values, ", "); }

  template <class T>
  static std::string measured(const std::string& path, const T& value) {
    if constexpr (std::is_same_v<T, uint64_t>) {  // sizes are named ..._bytes throughout facts.h
      if (ends_with(path, "_bytes") && value != UINT64_MAX) {
        return format("{} ({})", value, format_bytes(value));
      }
    }
    return text(value);
  }

  void add(const std::string& path, const std::string& value) { line(path, value); }
  void add(const std::string& path, bool value) {
    if (value) line(path, "true");
  }
  void add(const std::string& path, double value) {
    if (value != 0) line(path, text(value));
  }
  void add(const std::string& path, int value) {
    if (value != 0) line(path, text(value));
  }
  // 0 of these is what nobody asked, as the JSON leaves it out.
  void add(const std::string& path, uint32_t value) {
    if (value != 0 || path != "together.ranks") line(path, text(value));
  }
  void add(const std::string& path, uint64_t value) { line(path, measured(path, value)); }
  void add(const std::string& path, formats::CodeKind value) {
    line(path, formats::to_string(value));
  }
  void add(const std::string& path, const std::vector<std::string>& values) {
    line(path, text(values));
  }
  template <class T>
  void add(const std::string& path, const std::vector<T>& values) {
    for (size_t i = 0; i < values.size(); ++i) add(path + "[" + std::to_string(i) + "]", values[i]);
  }

  template <class T>
  void add(const std::string& path, const Fact<T>& fact) {
    if (!fact && fact.why == WhyNot::not_asked && fact.source.detail.empty() && fact.note.empty())
      return;
    FactLine entry{path, {}, {}, to_string(fact.source.kind), fact.source.detail, {}};
    if (fact) {
      entry.value = measured(path, *fact);
      if (entry.value.empty())
        entry.value = std::is_same_v<T, std::string> ? "\"\"" : "[]";  // an empty list
    } else {
      entry.missing = to_string(fact.why);
      entry.note = fact.note;
    }
    out.push_back(std::move(entry));
  }
  // A list of structs has one source for the whole list; its members carry their own.
  template <class T>
  void add_listed(const std::string& path, const Fact<std::vector<T>>& fact) {
    if (!fact) {
      if (fact.why == WhyNot::not_asked && fact.source.detail.empty() && fact.note.empty()) return;
      out.push_back({path,
                     {},
                     to_string(fact.why),
                     to_string(fact.source.kind),
                     fact.source.detail,
                     fact.note});
      return;
    }
    out.push_back({path,
                   format("{} entries", fact->size()),
                   {},
                   to_string(fact.source.kind),
                   fact.source.detail,
                   {}});
    add(path, *fact);
  }
  void add(const std::string& path, const Fact<std::vector<facts::PciGpu>>& fact) {
    add_listed(path, fact);
  }
  void add(const std::string& path, const Fact<std::vector<facts::GpuProcess>>& fact) {
    add_listed(path, fact);
  }
  void add(const std::string& path, const Fact<std::vector<facts::Distribution>>& fact) {
    add_listed(path, fact);
  }

  template <class T>
  void add(const std::string& path, const T& value) {
    Walker walker{out, path};
    visit_fields(walker, value);
  }
};

}  // namespace

std::vector<FactLine> fact_lines(const facts::Facts& facts) {
  std::vector<FactLine> out;
  Walker walker{out, ""};
  visit_fields(walker, facts);
  return out;
}

}  // namespace cufit::report
