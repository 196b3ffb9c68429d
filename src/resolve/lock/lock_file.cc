// SPDX-License-Identifier: Apache-2.0
#include "resolve/lock/lock_file.h"

#include <algorithm>

#include "base/format.h"
#include "base/sha256.h"
#include "formats/toml_text.h"

namespace cufit::resolve {
namespace {

constexpr const char* k_schema = "cufit.lock/1";
constexpr size_t k_most_classes = 256;
constexpr std::string_view k_sum_table = "\n[sum]\n";

// Reads the keys of one table; the first wrong one is kept.
class Keys {
 public:
  Keys(const formats::TomlDocument& document, const formats::TomlValue& table)
      : document_(document), table_(table) {}

  std::string text(const char* key, bool required) {
    const formats::TomlValue* value = get(key, required);
    if (value == nullptr) return {};
    if (!value->is_text())
      complain(*value, key, "a text");
    else if (required && value->text.empty())  // left out when it is written again
      complain(*value, key, "a text that is not empty");
    return value->text;
  }
  std::optional<Version> version(const char* key, bool required) {
    const std::string value = text(key, required);
    if (value.empty()) return std::nullopt;
    std::optional<Version> parsed = parse_version(value);
    if (!parsed) complain(*table_.find(key), key, "a version");
    return parsed;
  }
  uint64_t number(const char* key) {
    const formats::TomlValue* value = get(key, false);
    if (value == nullptr) return 0;
    if (value->kind != formats::TomlValue::Kind::integer || value->integer < 0) {
      complain(*value, key, "a number");
      return 0;
    }
    return static_cast<uint64_t>(value->integer);
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> out;
    const formats::TomlValue* value = get(key, false);
    if (value == nullptr) return out;
    if (!value->is_texts()) complain(*value, key, "a list of texts");
    for (const formats::TomlValue& item : value->items) out.push_back(item.text);
    return out;
  }
  const formats::TomlValue* get(const char* key, bool required) {
    const formats::TomlValue* value = table_.find(key);
    if (value == nullptr && required && !error_)
      error_ = document_.wrong(table_, format("`{}` is missing", key));
    return value;
  }
  void complain(const formats::TomlValue& at, const char* key, const char* wanted) {
    if (!error_) error_ = document_.wrong(at, format("`{}` must be {}", key, wanted));
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  const formats::TomlDocument& document_;
  const formats::TomlValue& table_;
  std::optional<Error> error_;
};

// "86", "90a": what a cubin or PTX entry is called.
bool is_arch(const std::string& text) {
  return text.size() >= 2 && text.size() <= 5 && text[0] >= '1' && text[0] <= '9' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= '0' && c <= '9') || c == 'a' || c == 'f';
         });
}

void read_code(Keys& keys, LockClass& one) {
  for (const std::string& arch : keys.texts("cubins")) {
    if (!is_arch(arch)) keys.complain(*keys.get("cubins", false), "cubins", "a list like \"90\"");
    one.wheel.code.push_back({formats::CodeKind::cubin, arch, "", 1});
  }
  const formats::TomlValue* ptx = keys.get("ptx", false);
  if (ptx == nullptr) return;
  if (ptx->kind != formats::TomlValue::Kind::array)
    return keys.complain(*ptx, "ptx", "a list of tables");
  for (const formats::TomlValue& item : ptx->items) {
    const formats::TomlValue* arch = item.find("arch");
    const formats::TomlValue* isa = item.find("isa");
    if (arch == nullptr || !arch->is_text() || !is_arch(arch->text))
      return keys.complain(item, "ptx", "a list of tables with `arch` and `isa`");
    one.wheel.code.push_back({formats::CodeKind::ptx, arch->text,
                              isa != nullptr && isa->is_text() ? isa->text : std::string(), 1});
  }
}

// Also the name of a folder and part of a file name: letters, digits, '-' and '_'.
bool is_class_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] != '-' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_'; });
}

Result<LockClass> read_class(const formats::TomlDocument& document,
                             const formats::TomlValue& table) {
  if (!table.is_table()) return document.wrong(table, "`class` must be a list of tables");
  Keys keys(document, table);
  LockClass one;
  one.name = keys.text("name", true);
  one.file = keys.text("file", true);
  one.sha256 = keys.text("sha256", true);
  one.wheel.torch = keys.text("torch", true);
  one.wheel.tag = keys.text("tag", true);
  one.wheel.cuda = keys.version("cuda", one.wheel.tag != "cpu");
  one.wheel.platform = keys.text("platform", true);
  one.wheel.driver_min = keys.version("driver-min", false);
  one.wheel.driver_full = keys.version("driver-full", false);
  one.wheel.glibc = keys.version("glibc", false);
  one.python = keys.text("python", true);
  if (!one.python.empty()) one.wheel.pythons = {one.python};
  read_code(keys, one);
  one.packages = keys.number("packages");
  one.download_bytes = keys.number("download-bytes");
  one.serves = keys.texts("serves");
  one.why = keys.text("why", false);
  one.wheel.source = document.file;
  if (keys.error()) return *keys.error();
  if (!is_class_name(one.name))
    return document.wrong(*table.find("name"), "a class name has letters, digits, `-` and `_`");
  // The file lies beside the lock: a name with a slash could point anywhere.
  // A later lock removes the files of classes that are gone: of no other kind.
  if (one.file.find('/') != std::string::npos || !starts_with(one.file, "pylock.") ||
      !ends_with(one.file, ".toml"))
    return document.wrong(*table.find("file"), "`file` must be the name of a file in this folder");
  return one;
}

std::string list_of(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts)
    out += (out.size() > 1 ? ", " : "") + formats::toml_quoted(text);
  return out + "]";
}

void put(std::string& out, const char* key, const std::string& value) {
  if (!value.empty()) out += std::string(key) + " = " + formats::toml_quoted(value) + "\n";
}

void put(std::string& out, const char* key, const std::optional<Version>& value) {
  if (value) put(out, key, value->text());
}

std::string driver_or_empty(const std::optional<Version>& driver) {
  return driver ? driver_text(*driver) : std::string();
}

std::string code_text(const Wheel& wheel) {
  std::vector<std::string> cubins;
  std::string ptx;
  for (const formats::DeviceCode& code : wheel.code) {
    if (code.kind == formats::CodeKind::cubin) cubins.push_back(code.arch);
    if (code.kind == formats::CodeKind::ptx)
      ptx += format("{}{{ arch = {}, isa = {} }}", ptx.empty() ? "" : ", ",
                    formats::toml_quoted(code.arch), formats::toml_quoted(code.ptx_isa));
  }
  std::string out;
  if (!cubins.empty()) out += "cubins = " + list_of(cubins) + "\n";
  if (!ptx.empty()) out += "ptx = [" + ptx + "]\n";
  return out;
}

std::string sum_table(const std::string& sum) {
  return std::string(k_sum_table) + "sha256 = " + formats::toml_quoted(sum) + "\n";
}

// Whether the text above the table of the sum is another than the one that was written.
Result<bool> is_edited(const formats::TomlDocument& document, std::string_view text) {
  const formats::TomlValue* table = document.find("sum");
  if (table == nullptr) return false;
  if (!table->is_table()) return document.wrong(*table, "`sum` must be a table");
  Keys keys(document, *table);
  const std::string wanted = keys.text("sha256", true);
  if (keys.error()) return *keys.error();
  // Version control may have given the lines other ends: that is no edit.
  std::string plain(text);
  plain.erase(std::remove(plain.begin(), plain.end(), '\r'), plain.end());
  if (starts_with(plain, "\xEF\xBB\xBF")) plain.erase(0, 3);
  const size_t at = plain.rfind(k_sum_table);
  if (at == std::string::npos) return true;
  // Nothing follows the sum, for which it would not speak.
  return sha256(plain.substr(0, at)) != wanted || plain.substr(at) != sum_table(wanted);
}

}  // namespace

Result<LockFile> parse_lock(std::string_view text, const std::string& path) {
  CUFIT_TRY(document, formats::parse_toml(text, path));
  Keys keys(document, document.root);
  LockFile lock;
  lock.path = path;
  const std::string schema = keys.text("schema", true);
  if (keys.error()) return *keys.error();
  if (schema != k_schema)
    return fail(Code::unsupported,
                format("{}: schema `{}`; this cufit reads `{}`", path, schema, k_schema));
  CUFIT_TRY(edited, is_edited(document, text));
  lock.edited = edited;
  lock.summed = document.find("sum") != nullptr;
  lock.created_by = keys.text("created-by", false);
  lock.requirements = keys.texts("requirements");
  lock.targets = keys.texts("targets");
  lock.asked = keys.texts("asked");
  if (keys.error()) return *keys.error();
  const formats::TomlValue* classes = document.find("class");
  if (classes == nullptr || classes->kind != formats::TomlValue::Kind::array ||
      classes->items.empty())
    return fail(Code::malformed, format("{}: no [[class]]", path));
  if (classes->items.size() > k_most_classes)
    return document.wrong(*classes, "more than 256 classes");
  for (const formats::TomlValue& table : classes->items) {
    CUFIT_TRY(one, read_class(document, table));
    for (const LockClass& other : lock.classes)
      if (other.name == one.name)
        return document.wrong(table, format("a second class `{}`", one.name));
    lock.classes.push_back(std::move(one));
  }
  return lock;
}

std::string lock_text(const LockFile& lock) {
  std::string out =
      "# Which environment serves which hardware. Written by `cufit lock`; `cufit lock --check` "
      "finds drift.\n";
  put(out, "schema", std::string(k_schema));
  put(out, "created-by", lock.created_by);
  out += "requirements = " + list_of(lock.requirements) + "\n";
  out += "targets = " + list_of(lock.targets) + "\n";
  if (!lock.asked.empty()) out += "asked = " + list_of(lock.asked) + "\n";
  for (const LockClass& one : lock.classes) {
    out += "\n[[class]]\n";
    put(out, "name", one.name);
    put(out, "file", one.file);
    put(out, "sha256", one.sha256);
    put(out, "torch", one.wheel.torch);
    put(out, "tag", one.wheel.tag);
    put(out, "cuda", one.wheel.cuda);
    put(out, "python", one.python);
    put(out, "platform", one.wheel.platform);
    put(out, "driver-min", driver_or_empty(one.wheel.driver_min));
    put(out, "driver-full", driver_or_empty(one.wheel.driver_full));
    out += code_text(one.wheel);
    put(out, "glibc", one.wheel.glibc);
    if (one.packages > 0) out += format("packages = {}\n", one.packages);
    if (one.download_bytes > 0) out += format("download-bytes = {}\n", one.download_bytes);
    out += "serves = " + list_of(one.serves) + "\n";
    put(out, "why", one.why);
  }
  return out + sum_table(sha256(out));
}

Routing route(const LockFile& lock, const Target& target, const knowledge::Knowledge& knowledge) {
  Routing routing;
  // The environment brings its own Python: the target's does not matter.
  Target machine = target;
  machine.python.clear();
  for (const LockClass& one : lock.classes) {
    routing.verdicts.push_back(judge(one.wheel, machine, knowledge));
    const size_t index = routing.verdicts.size() - 1;
    if (!usable(routing.verdicts[index].fit)) continue;
    if (routing.chosen == Routing::npos) {
      routing.chosen = index;
      continue;
    }
    // Of one torch the variant that fits without conditions.
    const bool same_torch = one.wheel.torch == lock.classes[routing.chosen].wheel.torch;
    if (same_torch && routing.verdicts[index].fit < routing.verdicts[routing.chosen].fit)
      routing.chosen = index;
  }
  return routing;
}

bool serves_all_gpus(const LockFile& lock, const Target& target, const Routing& routing,
                     const knowledge::Knowledge& knowledge) {
  if (routing.chosen != Routing::npos) return true;
  return target.gpus.size() > 1 &&
         std::all_of(target.gpus.begin(), target.gpus.end(), [&](const TargetGpu& gpu) {
           return route(lock, with_gpus(target, {gpu}), knowledge).chosen != Routing::npos;
         });
}

}  // namespace cufit::resolve
