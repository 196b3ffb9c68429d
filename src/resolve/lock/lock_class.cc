// SPDX-License-Identifier: Apache-2.0
#include "resolve/lock/lock_class.h"

#include <algorithm>

#include "base/format.h"
#include "resolve/lock/lock_check.h"

namespace cufit::resolve {
namespace {

std::string why_chosen(const Plan& plan, const Class& one, bool of_index) {
  std::vector<std::string> labels;
  for (const size_t index : one.targets) labels.push_back(plan.targets[index].label);
  std::string out = one.targets.size() > 1 ? "one wheel for "
                    : of_index             ? "the newest torch of the index for "
                                           : "the newest torch for ";
  out += join(labels, "; ");
  if (one.choice.verdict.fit != Fit::works)
    out += format(" ({})", to_string(one.choice.verdict.fit));
  return out;
}

// Of "x86_64-manylinux_2_28".
Version glibc_of(std::string platform) {
  platform.erase(0, platform.rfind("manylinux_") + 10);
  std::replace(platform.begin(), platform.end(), '_', '.');
  return parse_version(platform).value_or(Version{{2, 17}});
}

}  // namespace

std::string uv_platform(const std::string& platform, const std::vector<Version>& glibcs,
                        const std::optional<Version>& wheel) {
  // The names that uv knows.
  static const std::vector<Version> k_known = [] {
    std::vector<Version> out;
    for (const char* text : {"2.17", "2.28", "2.31", "2.32", "2.33", "2.34", "2.35", "2.36", "2.37",
                             "2.38", "2.39", "2.40"})
      out.push_back(*parse_version(text));
    return out;
  }();
  Version wanted = *parse_version("2.28");
  if (wheel && *wheel > wanted) wanted = *wheel;
  for (const Version& glibc : glibcs) wanted = std::min(wanted, glibc);
  const Version* best = &k_known.front();
  for (const Version& known : k_known)
    if (known <= wanted) best = &known;
  const size_t at = platform.find('_');
  const std::string machine = at == std::string::npos ? "x86_64" : platform.substr(at + 1);
  return format("{}-manylinux_{}_{}", machine, best->part(0), best->part(1));
}

std::string uv_platform(const Plan& plan, const Class& one) {
  std::vector<Version> glibcs;
  for (const size_t index : one.targets)
    if (plan.targets[index].glibc) glibcs.push_back(*plan.targets[index].glibc);
  return uv_platform(one.choice.wheel.platform, glibcs, one.choice.wheel.glibc);
}

LockClass lock_class(const Plan& plan, const Class& one, bool of_index) {
  LockClass row;
  row.name = one.name;
  row.file = format("pylock.{}.toml", one.name);
  row.wheel = one.choice.wheel;
  row.python = one.choice.python;
  row.why = why_chosen(plan, one, of_index);
  for (const size_t index : one.targets) row.serves.push_back(plan.targets[index].label);
  return row;
}

LockedPackages take_packages(LockClass& row, const formats::Pylock& pylock,
                             const std::string& platform) {
  const std::string machine = machine_of(row);
  for (const formats::PylockPackage& package : pylock.packages)
    row.packages += formats::applies(package, row.python, machine) ? 1 : 0;
  LockedPackages out;
  row.download_bytes = formats::download_bytes(pylock, row.python, machine, &out.unsized);
  out.built = formats::built_from_source(pylock, row.python, machine, glibc_of(platform));
  return out;
}

}  // namespace cufit::resolve
