// SPDX-License-Identifier: Apache-2.0
// Two locks side by side: which classes came, went or changed, and in what.
#pragma once

#include <string>
#include <vector>

#include "resolve/lock/lock_file.h"
#include "resolve/diff/package_difference.h"

namespace cufit::resolve {

struct FieldChange {
  std::string field;  // as in cufit.lock: "torch", "driver-min"
  std::string a, b;   // empty = not said
};

struct ClassChange {
  std::string name;
  const LockClass *a = nullptr, *b = nullptr;  // null = the other lock alone has it
  std::vector<FieldChange> fields;             // where both have it
  bool packages_known = false;                 // both lists of packages were read
  std::vector<PackageChange> packages;
};

struct LockDifference {
  std::vector<FieldChange> fields;   // "requirements", "targets"
  std::vector<ClassChange> classes;  // only those that differ, in the order of b, then of a
  bool differs = false;
};

// The packages of a class by its index; empty = not read.
using ClassPackages = std::vector<std::vector<PackageVersion>>;

// The locks must outlive the answer.
LockDifference compare_locks(const LockFile& a, const LockFile& b, const ClassPackages& packages_a,
                             const ClassPackages& packages_b);

}  // namespace cufit::resolve
