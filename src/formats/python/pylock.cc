// SPDX-License-Identifier: Apache-2.0
#include "formats/python/pylock.h"

#include <algorithm>

#include "base/format.h"
#include "formats/python/marker.h"
#include "formats/prose/printable.h"
#include "formats/python/python_metadata.h"
#include "formats/toml_text.h"
#include "formats/python/wheel_name.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_packages = 20'000, k_pylock_most_files = 2'000, k_most_hashes = 16;
constexpr size_t k_pylock_longest_text = 4096;

// The first thing that is wrong; everything after it is read into values that nobody sees.
class PylockReader {
 public:
  explicit PylockReader(const TomlDocument& document) : document_(document) {}

  Result<Pylock> read() {
    const TomlValue& root = document_.root;
    Pylock out;
    out.lock_version = text(root, "lock-version", true);
    if (error_.what.empty() && !starts_with(out.lock_version, "1."))
      return fail(Code::unsupported, format("{}: lock-version {}; this cufit reads 1.x",
                                            document_.file, out.lock_version));
    out.created_by = text(root, "created-by", true);
    out.requires_python = text(root, "requires-python", false);
    const TomlValue* packages = root.find("packages");
    if (packages == nullptr) wrong(root, "`packages` is missing");
    for (const TomlValue* one : tables(packages, "packages", k_most_packages))
      out.packages.push_back(package(*one));
    if (!error_.what.empty()) return error_;
    return out;
  }

 private:
  void wrong(const TomlValue& at, const std::string& what) {
    if (error_.what.empty()) error_ = document_.wrong(at, what);
  }

  std::string text(const TomlValue& table, const char* key, bool required) {
    const TomlValue* value = table.find(key);
    if (value == nullptr) {
      if (required) wrong(table, format("`{}` is missing", key));
      return {};
    }
    if (!value->is_text() || value->text.size() > k_pylock_longest_text) {
      wrong(*value, format("`{}` is no text, or longer than {} bytes", key, k_pylock_longest_text));
      return {};
    }
    return printable(value->text, k_pylock_longest_text);
  }

  const TomlValue* table(const TomlValue* value, const char* key) {
    if (value != nullptr && !value->is_table()) wrong(*value, format("`{}` is no table", key));
    return value != nullptr && value->is_table() ? value : nullptr;
  }

  std::vector<const TomlValue*> tables(const TomlValue* value, const char* key, size_t most) {
    std::vector<const TomlValue*> out;
    if (value == nullptr) return out;
    if (value->kind != TomlValue::Kind::array || value->items.size() > most) {
      wrong(*value, format("`{}` is no list, or has more than {} entries", key, most));
      return out;
    }
    for (const TomlValue& item : value->items)
      if (const TomlValue* one = table(&item, key)) out.push_back(one);
    return out;
  }

  void read_hashes(const TomlValue& table_of_file, PylockFile& out) {
    const TomlValue* hashes = table(table_of_file.find("hashes"), "hashes");
    if (hashes == nullptr || hashes->members.empty() || hashes->members.size() > k_most_hashes)
      return wrong(table_of_file, format("`{}` has no `hashes`", out.name));
    for (const auto& [kind, value] : hashes->members) {
      if (!value.is_text() || value.text.size() > 256) return wrong(value, "a hash is no text");
      out.hashes.emplace_back(lower(printable(kind, 64)), lower(printable(value.text, 256)));
    }
    std::sort(out.hashes.begin(), out.hashes.end());
  }

  PylockFile archive(const TomlValue& entry) {
    PylockFile out;
    out.name = text(entry, "name", false);
    out.url = text(entry, "url", false);
    out.path = text(entry, "path", false);
    if (out.url.empty() && out.path.empty()) wrong(entry, "neither `url` nor `path`");
    if (out.name.empty()) {
      std::string_view from = out.url.empty() ? out.path : out.url;
      from = from.substr(0, from.find_first_of("?#"));
      out.name = std::string(from.substr(from.rfind('/') + 1));
    }
    if (const TomlValue* size = entry.find("size")) {
      if (size->kind != TomlValue::Kind::integer || size->integer < 0)
        wrong(*size, "`size` is no count of bytes");
      else
        out.size = static_cast<uint64_t>(size->integer);
    }
    if (const TomlValue* day = entry.find("upload-time")) out.uploaded = day->text.substr(0, 10);
    read_hashes(entry, out);
    return out;
  }

  PylockPackage package(const TomlValue& entry) {
    PylockPackage out;
    out.line = entry.line;
    out.name = normalize_name(text(entry, "name", true));
    if (out.name.empty()) wrong(entry, "a package without a name");
    out.version = text(entry, "version", false);
    out.marker = text(entry, "marker", false);
    out.requires_python = text(entry, "requires-python", false);
    out.index = text(entry, "index", false);
    for (const TomlValue* wheel : tables(entry.find("wheels"), "wheels", k_pylock_most_files))
      out.wheels.push_back(archive(*wheel));
    if (const TomlValue* sdist = table(entry.find("sdist"), "sdist")) out.sdist = archive(*sdist);
    if (const TomlValue* one = table(entry.find("archive"), "archive")) out.archive = archive(*one);
    if (const TomlValue* vcs = table(entry.find("vcs"), "vcs")) {
      std::string place = text(*vcs, "url", false);
      if (place.empty()) place = text(*vcs, "path", false);
      out.vcs = text(*vcs, "type", true) + " " + place;
    }
    if (const TomlValue* directory = table(entry.find("directory"), "directory")) {
      out.directory = text(*directory, "path", true);
      const TomlValue* editable = directory->find("editable");
      out.editable = editable != nullptr && editable->integer == 1;
    }
    return out;
  }

  const TomlDocument& document_;
  Error error_;
};

}  // namespace

Result<Pylock> parse_pylock(std::string_view text, const std::string& file) {
  CUFIT_TRY(document, parse_toml(text, file));
  return PylockReader(document).read();
}

const PylockPackage* find_package(const Pylock& lock, std::string_view normalised_name) {
  for (const PylockPackage& package : lock.packages)
    if (package.name == normalised_name) return &package;
  return nullptr;
}

std::string uploaded(const PylockPackage& package) {
  std::string first;
  const auto take = [&](const PylockFile& file) {
    if (!file.uploaded.empty() && (first.empty() || file.uploaded < first)) first = file.uploaded;
  };
  for (const PylockFile& wheel : package.wheels) take(wheel);
  if (package.sdist) take(*package.sdist);
  return first;
}

bool applies(const PylockPackage& package, const std::string& python, const std::string& machine) {
  if (package.marker.empty()) return true;
  return requirement_that_applies(package.name + "; " + package.marker, {python, machine})
      .has_value();
}

uint64_t download_bytes(const Pylock& lock, const std::string& python, const std::string& machine,
                        uint64_t* unsized) {
  uint64_t sum = 0;
  if (unsized != nullptr) *unsized = 0;
  for (const PylockPackage& package : lock.packages) {
    if (!applies(package, python, machine)) continue;
    std::optional<uint64_t> largest;
    for (const PylockFile& wheel : package.wheels)
      if (wheel.size && (!largest || *wheel.size > *largest)) largest = wheel.size;
    if (!largest && package.sdist) largest = package.sdist->size;
    if (!largest && package.archive) largest = package.archive->size;
    const uint64_t room = UINT64_MAX - sum;
    if (largest) sum += std::min(*largest, room);
    if (!largest && unsized != nullptr) ++*unsized;
  }
  return sum;
}

std::vector<std::string> built_from_source(const Pylock& lock, const std::string& python,
                                           const std::string& machine, const Version& glibc) {
  // What nobody can read is no reason to say that something is missing.
  const auto can_take = [&](const PylockFile& file) {
    const std::optional<WheelName> wheel = parse_wheel_name(file.name);
    return !wheel || fits(*wheel, python, machine, glibc);
  };
  std::vector<std::string> out;
  for (const PylockPackage& package : lock.packages) {
    if (!applies(package, python, machine)) continue;
    const bool archive = package.archive && !ends_with(package.archive->name, ".whl");
    const bool source =
        package.sdist || archive || !package.vcs.empty() || !package.directory.empty();
    if (source && std::none_of(package.wheels.begin(), package.wheels.end(), can_take))
      out.push_back(package.name + (package.version.empty() ? "" : " " + package.version));
  }
  return out;
}

}  // namespace cufit::formats
