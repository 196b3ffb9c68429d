// SPDX-License-Identifier: Apache-2.0
#include "resolve/judge.h"

namespace cufit::resolve {

const char* to_string(Fit fit) {
  switch (fit) {
    case Fit::works:
      return "works";
    case Fit::works_minor:
      return "works_minor";
    case Fit::works_ptx:
      return "works_ptx";
    case Fit::needs_compat:
      return "needs_compat";
    case Fit::unknown:
      return "unknown";
    case Fit::no:
      return "no";
  }
  return "no";
}

bool usable(Fit fit) {
  return fit == Fit::works || fit == Fit::works_minor || fit == Fit::works_ptx;
}

}  // namespace cufit::resolve
