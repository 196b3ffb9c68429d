// SPDX-License-Identifier: Apache-2.0
#include "formats/pylock.h"

#include <algorithm>

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "base/format.h"
#include "formats/marker.h"
#include "formats/printable.h"
#include "formats/python_metadata.h"

namespace cufit::formats {
namespace {

constexpr size_t k_most_bytes = 64u << 20;
constexpr size_t k_most_packages = 20'000, k_most_files = 2'000, k_most_hashes = 16;
constexpr size_t k_longest_text = 4096;

// The first thing that is wrong; everything after it is read into values that nobody sees.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  Result<Pylock> read(const toml::table& root) {
    Pylock out;
    out.lock_version = text(root, "lock-version", true);
    if (error_.what.empty() && out.lock_version != "1.0" && !starts_with(out.lock_version, "1."))
      return fail(Code::unsupported,
                  format("{}: lock-version {}; this cufit reads 1.x", file_, out.lock_version));
    out.created_by = text(root, "created-by", true);
    out.requires_python = text(root, "requires-python", false);
    const toml::node* packages = root.get("packages");
    if (packages == nullptr) wrong(root, "no `packages`");
    if (const toml::array* list = array_of(packages, "packages", k_most_packages))
      for (const toml::node& each : *list)
        if (const toml::table* one = table_of(&each, "packages"))
          out.packages.push_back(package(*one));
    if (!error_.what.empty()) return error_;
    return out;
  }

 private:
  void wrong(const toml::node& at, const std::string& what) {
    if (error_.what.empty())
      error_ = fail(Code::malformed, format("{}:{}: {}", file_, at.source().begin.line, what));
  }

  std::string text(const toml::table& table, const char* key, bool required) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (required) wrong(table, format("no `{}`", key));
      return {};
    }
    const toml::value<std::string>* value = node->as_string();
    if (value == nullptr || value->get().size() > k_longest_text) {
      wrong(*node, format("`{}` is no text, or longer than {} bytes", key, k_longest_text));
      return {};
    }
    return printable(value->get(), k_longest_text);
  }

  const toml::table* table_of(const toml::node* node, const char* key) {
    if (node == nullptr) return nullptr;
    const toml::table* table = node->as_table();
    if (table == nullptr) wrong(*node, format("`{}` is no table", key));
    return table;
  }

  const toml::array* array_of(const toml::node* node, const char* key, size_t most) {
    if (node == nullptr) return nullptr;
    const toml::array* list = node->as_array();
    if (list == nullptr || list->size() > most) {
      wrong(*node, format("`{}` is no list, or has more than {} entries", key, most));
      return nullptr;
    }
    return list;
  }

  PylockFile archive(const toml::table& table) {
    PylockFile out;
    out.name = text(table, "name", false);
    out.url = text(table, "url", false);
    out.path = text(table, "path", false);
    if (out.url.empty() && out.path.empty()) wrong(table, "neither `url` nor `path`");
    if (out.name.empty()) {
      std::string_view from = out.url.empty() ? out.path : out.url;
      from = from.substr(0, from.find_first_of("?#"));
      out.name = std::string(from.substr(from.rfind('/') + 1));
    }
    if (const toml::node* size = table.get("size")) {
      const toml::value<int64_t>* number = size->as_integer();
      if (number == nullptr || number->get() < 0)
        wrong(*size, "`size` is no count of bytes");
      else
        out.size = static_cast<uint64_t>(number->get());
    }
    const toml::table* hashes = table_of(table.get("hashes"), "hashes");
    if (hashes == nullptr || hashes->empty() || hashes->size() > k_most_hashes) {
      wrong(table, format("`{}` has no `hashes`", out.name));
      return out;
    }
    for (const auto& pair : *hashes) {
      const toml::value<std::string>* value = pair.second.as_string();
      if (value == nullptr || value->get().size() > 256)
        wrong(pair.second, "a hash is no text");
      else
        out.hashes.emplace_back(lower(std::string_view(pair.first)),
                                lower(printable(value->get(), 256)));
    }
    std::sort(out.hashes.begin(), out.hashes.end());
    return out;
  }

  PylockPackage package(const toml::table& table) {
    PylockPackage out;
    out.line = table.source().begin.line;
    out.name = normalize_name(text(table, "name", true));
    if (out.name.empty()) wrong(table, "a package without a name");
    out.version = text(table, "version", false);
    out.marker = text(table, "marker", false);
    out.requires_python = text(table, "requires-python", false);
    out.index = text(table, "index", false);
    if (const toml::array* wheels = array_of(table.get("wheels"), "wheels", k_most_files))
      for (const toml::node& each : *wheels)
        if (const toml::table* one = table_of(&each, "wheels")) out.wheels.push_back(archive(*one));
    if (const toml::table* sdist = table_of(table.get("sdist"), "sdist"))
      out.sdist = archive(*sdist);
    if (const toml::table* one = table_of(table.get("archive"), "archive"))
      out.archive = archive(*one);
    if (const toml::table* vcs = table_of(table.get("vcs"), "vcs")) {
      std::string place = text(*vcs, "url", false);
      if (place.empty()) place = text(*vcs, "path", false);
      out.vcs = text(*vcs, "type", true) + " " + place;
    }
    if (const toml::table* directory = table_of(table.get("directory"), "directory"))
      out.directory = text(*directory, "path", true);
    return out;
  }

  const std::string& file_;
  Error error_;
};

}  // namespace

Result<Pylock> parse_pylock(std::string_view text, const std::string& file) {
  if (text.size() > k_most_bytes)
    return fail(Code::malformed, format("{}: larger than {} MiB", file, k_most_bytes >> 20));
  const toml::parse_result parsed = toml::parse(text);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(Code::malformed, format("{}:{}: {}", file, error.source().begin.line,
                                        printable(error.description(), 400)));
  }
  return Reader(file).read(parsed.table());
}

const PylockPackage* find_package(const Pylock& lock, std::string_view normalised_name) {
  for (const PylockPackage& package : lock.packages)
    if (package.name == normalised_name) return &package;
  return nullptr;
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

}  // namespace cufit::formats
