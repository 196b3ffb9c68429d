// SPDX-License-Identifier: Apache-2.0
#include "resolve/diff/lock_difference.h"

#include <algorithm>

#include "base/format.h"

namespace cufit::resolve {
namespace {

std::string text(const std::optional<Version>& version) { return version ? version->text() : ""; }

void compare_classes(std::vector<FieldChange>& out, const char* field, std::string a,
                     std::string b) {
  if (a != b) out.push_back({field, std::move(a), std::move(b)});
}

std::vector<FieldChange> fields_of(const LockClass& a, const LockClass& b) {
  std::vector<FieldChange> out;
  compare_classes(out, "torch", a.wheel.torch, b.wheel.torch);
  compare_classes(out, "tag", a.wheel.tag, b.wheel.tag);
  compare_classes(out, "cuda", text(a.wheel.cuda), text(b.wheel.cuda));
  compare_classes(out, "driver-min", text(a.wheel.driver_min), text(b.wheel.driver_min));
  compare_classes(out, "driver-full", text(a.wheel.driver_full), text(b.wheel.driver_full));
  for (const formats::CodeKind kind : {formats::CodeKind::cubin, formats::CodeKind::ptx})
    compare_classes(out, kind == formats::CodeKind::cubin ? "cubins" : "ptx",
                    join(capabilities_of(a.wheel, kind), " "),
                    join(capabilities_of(b.wheel, kind), " "));
  compare_classes(out, "python", a.python, b.python);
  compare_classes(out, "platform", a.wheel.platform, b.wheel.platform);
  compare_classes(out, "glibc", text(a.wheel.glibc), text(b.wheel.glibc));
  compare_classes(out, "serves", join(a.serves, "; "), join(b.serves, "; "));
  compare_classes(out, "packages", std::to_string(a.packages), std::to_string(b.packages));
  compare_classes(out, "sha256", a.sha256, b.sha256);
  return out;
}

const LockClass* find(const LockFile& lock, const std::string& name) {
  for (const LockClass& one : lock.classes)
    if (one.name == name) return &one;
  return nullptr;
}

const std::vector<PackageVersion>* class_packages(const LockFile& lock, const LockClass* one,
                                                  const ClassPackages& packages) {
  const size_t index = static_cast<size_t>(one - lock.classes.data());
  return index < packages.size() && !packages[index].empty() ? &packages[index] : nullptr;
}

}  // namespace

LockDifference compare_locks(const LockFile& a, const LockFile& b, const ClassPackages& packages_a,
                             const ClassPackages& packages_b) {
  LockDifference out;
  compare_classes(out.fields, "requirements", join(a.requirements, "; "),
                  join(b.requirements, "; "));
  compare_classes(out.fields, "targets", join(a.targets, "; "), join(b.targets, "; "));
  for (const LockClass& one : b.classes) {
    ClassChange change{one.name, find(a, one.name), &one, {}, false, {}};
    if (change.a != nullptr) {
      change.fields = fields_of(*change.a, one);
      const auto* left = class_packages(a, change.a, packages_a);
      const auto* right = class_packages(b, &one, packages_b);
      change.packages_known = left != nullptr && right != nullptr;
      if (change.packages_known) change.packages = compare_packages(*left, *right);
      if (change.fields.empty() && change.packages.empty()) continue;
    }
    out.classes.push_back(std::move(change));
  }
  for (const LockClass& one : a.classes)
    if (find(b, one.name) == nullptr)
      out.classes.push_back({one.name, &one, nullptr, {}, false, {}});
  out.differs = !out.fields.empty() || !out.classes.empty();
  return out;
}

}  // namespace cufit::resolve
