// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <set>

#include <re2/re2.h>

#include "base/format.h"
#include "facts/facts_fields.h"
#include "facts/redact.h"

namespace cufit::facts {
namespace {

const RE2& home_pattern() {
  static const RE2 pattern(R"((/home|/Users|/mnt/[a-z]/Users)/[^/\s:;,"'`]+)");
  return pattern;
}
const RE2& uuid_pattern() {
  static const RE2 pattern(
      R"((?i)\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b)");
  return pattern;
}
const RE2& mac_pattern() {
  static const RE2 pattern(R"((?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b)");
  return pattern;
}
const RE2& mail_pattern() {
  static const RE2 pattern(R"([A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)");
  return pattern;
}
// Only used where versions ("13.1.0.3") cannot stand: variables, the kernel's log, names of
// processes.
const RE2& ipv4_pattern() {
  static const RE2 pattern(R"(\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)");
  return pattern;
}
const RE2& ipv6_pattern() {
  static const RE2 pattern(
      R"((?i)\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b|(?i)\bfe80::[0-9a-f:]+)");
  return pattern;
}

// Walks all texts of Facts.
class Redactor {
 public:
  explicit Redactor(const std::vector<PrivateName>& names) {
    for (const PrivateName& each : names) add_name(each.name, each.replacement);
  }

  template <class T>
  void operator()(const char* name, T& value) {
    const std::string outer = field_;
    field_ = name;
    walk(value);
    field_ = outer;
  }

  void walk(std::string& text) {
    RE2::GlobalReplace(&text, home_pattern(), R"(\1/user)");
    number_uuids(text);
    RE2::GlobalReplace(&text, mac_pattern(), "00:00:00:00:00:00");
    RE2::GlobalReplace(&text, mail_pattern(), "user@example.org");
    if (addresses_) {
      RE2::GlobalReplace(&text, ipv4_pattern(), "0.0.0.0");
      RE2::GlobalReplace(&text, ipv6_pattern(), "::");
    }
    for (const auto& [pattern, replacement] : names_)
      RE2::GlobalReplace(&text, *pattern, replacement);
  }
  template <class T>
  void walk(std::vector<T>& values) {
    for (T& value : values) walk(value);
  }
  template <class T>
  void walk(Fact<T>& fact) {
    walk(fact.source.detail);
    walk(fact.note);
    if (fact.value) walk(*fact.value);
    if constexpr (std::is_same_v<T, std::string>) {
      if (fact.value && (field_ == "serial" || field_ == "boot_id")) fact.value = "redacted";
    }
  }
  void walk(EnvVariable& variable) {
    with_addresses([&] { visit_fields(*this, variable); });
  }
  void walk(KernelDriver& kernel) {
    with_addresses([&] { visit_fields(*this, kernel); });
  }
  void walk(GpuProcess& process) {
    with_addresses([&] { visit_fields(*this, process); });
  }
  void walk(bool&) {}
  void walk(int&) {}
  void walk(double&) {}
  void walk(uint32_t&) {}
  void walk(uint64_t&) {}
  void walk(formats::CodeKind&) {}
  template <class T>
  void walk(T& value) {
    visit_fields(*this, value);
  }

 private:
  // Short and common words would tear other texts apart ("root", "user", "host", "a").
  void add_name(const std::string& name, const std::string& replacement) {
    static const std::set<std::string> k_common = {"root", "user",   "host",   "localhost",
                                                   "home", "ubuntu", "debian", "admin",
                                                   "cuda", "torch",  "nvidia", "python"};
    if (name.size() < 3 || k_common.count(lower(name))) return;
    std::string pattern =
        R"((?i)(^|[^A-Za-z0-9_]))" + RE2::QuoteMeta(name) + R"(($|[^A-Za-z0-9_]))";
    names_.emplace_back(std::make_unique<RE2>(pattern), R"(\1)" + replacement + R"(\2)");
  }

  void number_uuids(std::string& text) {
    std::string out, found;
    re2::StringPiece rest(text);
    const char* start = text.data();
    while (RE2::FindAndConsume(&rest, uuid_pattern(), &found)) {
      const char* after = rest.data();
      out.append(start, static_cast<size_t>(after - start) - found.size());
      auto [known, is_new] = uuids_.emplace(lower(found), uuids_.size());
      out += format("00000000-0000-0000-0000-{:012}", known->second);
      start = after;
    }
    if (out.empty()) return;
    out.append(start, static_cast<size_t>(text.data() + text.size() - start));
    text = std::move(out);
  }

  template <class Work>
  void with_addresses(Work work) {
    bool outer = addresses_;
    addresses_ = true;
    work();
    addresses_ = outer;
  }

  std::vector<std::pair<std::unique_ptr<RE2>, std::string>> names_;
  std::map<std::string, size_t> uuids_;
  std::string field_;
  bool addresses_ = false;
};

}  // namespace

Facts redact(Facts facts, const std::vector<PrivateName>& names) {
  Redactor redactor(names);
  redactor.walk(facts);
  return facts;
}

}  // namespace cufit::facts
