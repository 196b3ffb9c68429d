// SPDX-License-Identifier: Apache-2.0
// The packages of a lock as a bill of materials: CycloneDX 1.6, JSON (ECMA-424). Without a time and
// with a serial number made of the lock, so that one lock gives one file.
#include <algorithm>
#include <map>

#include "base/format.h"
#include "formats/python/wheel_name.h"
#include "report/export/export_values.h"
#include "report/json/json_value.h"
#include "report/terminal/width.h"
#include "resolve/lock/lock_check.h"

namespace cufit::report {
namespace {

// "urn:uuid:..." of the first 128 bits of a SHA-256, as version 8 of RFC 9562 (own content).
std::string serial_of(const std::string& sum) {
  std::string digits = sum.substr(0, 32);
  digits.resize(32, '0');
  digits[12] = '8';
  digits[16] = "89ab"[digits[16] % 4];
  return format("urn:uuid:{}-{}-{}-{}-{}", digits.substr(0, 8), digits.substr(8, 4),
                digits.substr(12, 4), digits.substr(16, 4), digits.substr(20));
}

// Of a package URL's parts: letters, digits and ".-_~" stand as they are (purl specification).
std::string percent_encoded(std::string_view text) {
  constexpr const char* k_digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '-' || c == '_' || c == '~';
    const auto byte = static_cast<unsigned char>(c);
    if (plain)
      out += c;
    else
      out += std::string("%") + k_digits[byte >> 4] + k_digits[byte & 15];
  }
  return out;
}

// The file that is installed: the class's wheel, else what it is built from. nullptr = a folder.
const formats::PylockFile* installed_file(const formats::PylockPackage& package,
                                          const ExportClass& one) {
  const Version any_glibc{{99, 0}};
  for (const formats::PylockFile& file : package.wheels) {
    const auto name = formats::parse_wheel_name(file.name);
    if (name && formats::fits(*name, one.lock.python, one.lock.wheel.platform.substr(6), any_glibc))
      return &file;
  }
  if (package.sdist) return &*package.sdist;
  return package.archive ? &*package.archive : nullptr;
}

std::string sha256_of(const formats::PylockFile* file) {
  if (file == nullptr) return {};
  for (const auto& [kind, value] : file->hashes)
    if (kind == "sha256" && value.size() == 64 &&
        value.find_first_not_of("0123456789abcdef") == std::string::npos)
      return value;
  return {};
}

struct Component {
  std::string name, version, sha256, file;
  std::vector<std::string> classes;
};

// What two classes take as the same file is one component.
std::vector<Component> components_of(const ExportView& view) {
  std::vector<Component> out;
  std::map<std::string, size_t> places;
  for (const ExportClass& one : view.classes)
    for (const formats::PylockPackage& package : one.pylock.packages) {
      if (!formats::applies(package, one.lock.python, resolve::machine_of(one.lock))) continue;
      const formats::PylockFile* file = installed_file(package, one);
      Component component{printable(package.name),
                          printable(package.version),
                          sha256_of(file),
                          file == nullptr ? "" : printable(file->name),
                          {}};
      const std::string key =
          join({component.name, component.version, component.sha256, component.file}, "\n");
      const auto [place, is_new] = places.emplace(key, out.size());
      if (is_new) out.push_back(std::move(component));
      out[place->second].classes.push_back(one.lock.name);
    }
  return out;
}

Json component_json(const Component& one, const std::string& ref) {
  const std::string purl =
      "pkg:pypi/" + percent_encoded(one.name) +
      (one.version.empty() ? std::string() : "@" + percent_encoded(one.version));
  Json out;
  out["type"] = "library";
  out["bom-ref"] = ref;
  out["name"] = one.name;
  if (!one.version.empty()) out["version"] = one.version;
  out["purl"] = purl;
  if (!one.sha256.empty())
    out["hashes"] = Json::array({Json{{"alg", "SHA-256"}, {"content", one.sha256}}});
  out["properties"] = Json::array();
  for (const std::string& name : one.classes)
    out["properties"].push_back({{"name", "cufit:class"}, {"value", name}});
  if (!one.file.empty()) out["properties"].push_back({{"name", "cufit:file"}, {"value", one.file}});
  return out;
}

}  // namespace

std::string sbom_text(const ExportView& view, const std::string& lock_sha256) {
  Json out;
  out["bomFormat"] = "CycloneDX";
  out["specVersion"] = "1.6";
  out["serialNumber"] = serial_of(lock_sha256);
  out["version"] = 1;
  Json tool = {{"type", "application"}, {"name", "cufit"}, {"version", CUFIT_VERSION}};
  out["metadata"]["tools"]["components"] = Json::array({tool});
  out["metadata"]["component"] = {{"type", "container"},
                                  {"bom-ref", "image"},
                                  {"name", "pytorch"},
                                  {"version", lock_sha256.substr(0, 12)}};
  out["metadata"]["properties"] =
      Json::array({Json{{"name", "cufit:lock:sha256"}, {"value", lock_sha256}}});
  out["components"] = Json::array();
  Json refs = Json::array();
  const std::vector<Component> components = components_of(view);
  for (size_t i = 0; i < components.size(); ++i) {
    const std::string ref = format("{}-{}", i + 1, components[i].name);
    out["components"].push_back(component_json(components[i], ref));
    refs.push_back(ref);
  }
  out["dependencies"] = Json::array({Json{{"ref", "image"}, {"dependsOn", refs}}});
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
