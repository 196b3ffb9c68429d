// SPDX-License-Identifier: Apache-2.0
#include "resolve/wheel/index_packages.h"

#include <algorithm>

#include "base/format.h"
#include "formats/python/requirement.h"
#include "formats/python/wheel_name.h"

namespace cufit::resolve {
namespace {

// "cp311" -> "3.11"; with an abi "cp313t" -> "3.13t". Empty for others.
std::string minor_of(const std::string& python, const std::string& abi) {
  if (python.size() < 4 || python.compare(0, 3, "cp3") != 0) return {};
  const bool digits = python.find_first_not_of("0123456789", 2) == std::string::npos;
  if (!digits) return {};
  const bool threaded = !abi.empty() && abi.back() == 't';
  return "3." + python.substr(3) + (threaded ? "t" : "");
}

void add_once(std::vector<std::string>& list, const std::string& word) {
  if (!word.empty() && std::find(list.begin(), list.end(), word) == list.end())
    list.push_back(word);
}

bool same(const Available& one, const Wheel& wheel) {
  return one.torch == wheel.torch &&
         (one.local.empty() ? wheel.on_default_index : one.local == wheel.tag);
}

}  // namespace

std::vector<Available> available_of(const formats::IndexPage& page, std::string_view platform,
                                    const std::optional<Version>& glibc) {
  const std::string machine(platform.substr(platform.find('_') + 1));
  const Version newest{{2, 999}};
  std::vector<Available> out;
  for (const formats::IndexFile& file : page.files) {
    const auto name = formats::parse_wheel_name(file.filename);
    // Of a variant only an installer that knows variants takes the file.
    if (!name || name->name != "torch" || file.yanked || !name->variant.empty()) continue;
    const size_t plus = name->version.find('+');
    const std::string torch = name->version.substr(0, plus);
    const std::string local = plus == std::string::npos ? "" : name->version.substr(plus + 1);
    const auto version = formats::parse_python_version(torch);
    if (!version || version->pre || version->dev) continue;  // nobody asked for a pre-release
    for (const std::string& python : name->pythons) {
      const std::string minor = minor_of(python, name->abis.empty() ? "" : name->abis.front());
      const bool threaded = !minor.empty() && minor.back() == 't';
      const std::string plain = threaded ? minor.substr(0, minor.size() - 1) : minor;
      if (minor.empty() ||
          (!threaded && !formats::fits(*name, plain, machine, glibc.value_or(newest))))
        continue;
      auto row = std::find_if(out.begin(), out.end(), [&](const Available& one) {
        return one.torch == torch && one.local == local;
      });
      if (row == out.end()) row = out.insert(out.end(), {torch, local, {}});
      add_once(row->pythons, minor);
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Available& a, const Available& b) {
    return formats::compare(*formats::parse_python_version(a.torch),
                            *formats::parse_python_version(b.torch)) > 0;
  });
  return out;
}

std::vector<size_t> match_available(const std::vector<Available>& available,
                                    std::string_view platform, std::vector<Wheel>& wheels) {
  std::vector<size_t> absent;
  for (size_t i = 0; i < wheels.size(); ++i) {
    const auto row = std::find_if(available.begin(), available.end(),
                                  [&](const Available& one) { return same(one, wheels[i]); });
    if (row == available.end())
      absent.push_back(i);
    else
      wheels[i].pythons = row->pythons;
  }
  for (const Available& one : available) {
    const bool known = std::any_of(wheels.begin(), wheels.end(),
                                   [&](const Wheel& wheel) { return same(one, wheel); });
    if (known) continue;
    Wheel wheel;
    wheel.torch = one.torch;
    wheel.tag = one.local.empty() ? "unknown" : one.local;
    wheel.platform = std::string(platform);
    wheel.pythons = one.pythons;
    wheel.on_default_index = one.local.empty();
    wheel.source = "index";
    wheels.push_back(std::move(wheel));
  }
  return absent;
}

}  // namespace cufit::resolve
