// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <set>

#include <re2/re2.h>

#include "base/format.h"
#include "facts/facts_fields.h"
#include "facts/redact.h"
#include "facts/secrets.h"

namespace cufit::facts {
namespace {

// A pattern and what stands for what it finds. In this order: a whole is taken before its parts. Tokens (secrets.h) come first.
struct Rule {
  RE2 pattern;
  const char* replacement;
};

// Homes wherever they are; a name may have more words ("John Doe") where a slash ends it.
const std::vector<std::unique_ptr<Rule>>& rules() {
  static const std::vector<std::unique_ptr<Rule>> all = [] {
    std::vector<std::unique_ptr<Rule>> out;
    const auto add = [&](const char* pattern, const char* replacement) {
      out.push_back(std::unique_ptr<Rule>(new Rule{RE2(pattern), replacement}));
    };
    // At the top of a path; a folder "members" of a package holds no people.
    const std::string homes = R"((?i)((?:^|[^A-Za-z0-9_./-]/{0,2})(?:/[^/\s:;,"'`]+){0,3}/)"
                              R"((?:home|homes|users|people|staff|students|members)\d*)/)";
    add((homes + R"([^/\s:;,"'`]+(?-i: [A-Z][^/\s:;,"'`]*){1,3}/)").c_str(), R"(\1/user/)");
    add((homes + R"([^/\s:;,"'`]+)").c_str(), R"(\1/user)");
    add(R"((?i)\b([a-z]:\\{1,2}users\\{1,2})[^\\/:;,"'`]+(\\))", R"(\1user\2)");
    add(R"((?i)\b([a-z]:\\{1,2}users\\{1,2})[^\\/\s:;,"'`]+)", R"(\1user)");
    add(R"((?i)\b(?:[0-9a-f]{2}:){5}[0-9a-f]{2}\b)", "00:00:00:00:00:00");
    add(R"((?i)\b(?:[0-9a-f]{2}-){5}[0-9a-f]{2}\b)", "00-00-00-00-00-00");
    add(R"([A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)", "user@example.org");
    // No version begins so: private networks, a server's address, and IPv6 that is routed.
    add(R"(\b(?:192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b)", "0.0.0.0");
    add(R"((//|@)\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)", R"(\10.0.0.0)");
    add(R"((?i)\b(?:[23][0-9a-f]{3}|f[cde][0-9a-f]{2})(?::[0-9a-f]{1,4}){0,6}::)"
        R"((?:[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){0,6}\b)?)",
        "::");
    return out;
  }();
  return all;
}

// Also the short form that CUDA_VISIBLE_DEVICES takes, and the one without dashes.
const RE2& uuid_pattern() {
  static const RE2 pattern(
      R"((?i)\b([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|)"
      R"([0-9a-f]{32}\b|(?-i:GPU-|MIG-)[0-9a-f]{6,8}(?:-[0-9a-f]{4}){0,3}(?:-[0-9a-f]{12})?\b))");
  return pattern;
}
// Only used where versions ("13.1.0.3") cannot stand: variables, the kernel's log, names of
// processes.
const RE2& ipv4_pattern() {
  static const RE2 pattern(R"(\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)");
  return pattern;
}
const RE2& ipv6_pattern() {
  static const RE2 pattern(R"((?i)\b(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}\b)");
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
    for (const auto& [home, shown] : homes_) RE2::GlobalReplace(&text, *home, shown);
    number_uuids(text);
    hide_tokens(text, "redacted");
    for (const auto& rule : rules()) RE2::GlobalReplace(&text, rule->pattern, rule->replacement);
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
    static const std::set<std::string> k_common = {
        "root",  "user",   "host",   "localhost", "home",  "ubuntu", "debian", "admin", "cuda",
        "torch", "nvidia", "python", "gpu",       "gpus",  "dgx",    "hgx",    "dev",   "lib",
        "lib64", "usr",    "opt",    "bin",       "tmp",   "etc",    "var",    "proc",  "sys",
        "run",   "node",   "login",  "head",      "mnt",   "data",   "venv",   "conda", "env",
        "envs",  "test",   "work",   "server",    "docker"};
    // A host called "a800" is no reason to take the name out of its GPUs.
    static const RE2 k_gpu_name(
        R"((?i)(?:a|b|gb|gh|h|l|p|t|v|k|m|rtx|gtx|titan|tesla|quadro)-?\d{1,4}[a-z]{0,2})");
    if (RE2::FullMatch(name, k_gpu_name)) return;
    if (starts_with(name, "/")) return add_home(name);
    if (name.size() < 3 || k_common.count(lower(name))) return;
    const std::string quoted = "(?i)" + RE2::QuoteMeta(name);
    // Folders are named after people: "/data/zhangwei_proj", "/scratch/zhangwei2".
    names_.emplace_back(std::make_unique<RE2>("(/)" + quoted + "($|[^A-Za-z])"),
                        R"(\1)" + replacement + R"(\2)");
    names_.emplace_back(std::make_unique<RE2>("(^|[^A-Za-z0-9_])" + quoted + "($|[^A-Za-z0-9_])"),
                        R"(\1)" + replacement + R"(\2)");
  }

  // This user's own, wherever it lies and however short the name is.
  void add_home(const std::string& path) {
    const size_t slash = path.rfind('/');
    if (path.size() < 4 || slash + 1 == path.size() || path == "/root") return;
    homes_.emplace_back(std::make_unique<RE2>(RE2::QuoteMeta(path) + "($|[^A-Za-z0-9_.-])"),
                        escaped(path.substr(0, slash)) + R"(/user\1)");
  }
  static std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '\\' ? std::string("\\\\") : std::string(1, c);
    return out;
  }

  // The same number for the same device, also where it is named by the beginning alone.
  size_t number_of(const std::string& digits) {
    const auto at = uuids_.lower_bound(digits);  // the first that this may begin
    if (at != uuids_.end() && starts_with(at->first, digits)) return at->second;
    for (size_t size = digits.size() - 1; size >= 6; --size)
      if (const auto shorter = uuids_.find(digits.substr(0, size)); shorter != uuids_.end())
        return shorter->second;
    return uuids_.emplace(digits, uuids_.size()).first->second;
  }

  void number_uuids(std::string& text) {
    std::string out, found;
    re2::StringPiece rest(text);
    const char* start = text.data();
    while (RE2::FindAndConsume(&rest, uuid_pattern(), &found)) {
      const char* after = rest.data();
      out.append(start, static_cast<size_t>(after - start) - found.size());
      const bool named = found[3] == '-';  // "GPU-", "MIG-"
      std::string digits;
      for (const char c : lower(found.substr(named ? 4 : 0)))
        if (c != '-') digits += c;
      out += found.substr(0, named ? 4 : 0) +
             format("00000000-0000-0000-0000-{:012}", number_of(digits));
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

  std::vector<std::pair<std::unique_ptr<RE2>, std::string>> homes_, names_;
  std::map<std::string, size_t> uuids_;  // by their digits, or the first of them
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
