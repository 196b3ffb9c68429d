// SPDX-License-Identifier: Apache-2.0
// Which Python an environment gets: the minor nearest to 3.12 that the wheel, the request, the
// policy and the projects' `requires-python` allow, or why there is none. Used by
// resolve.cc and lock_check.cc.
#pragma once

#include <string>
#include <vector>

#include "resolve/wheel/resolve.h"

namespace cufit::resolve {

// "3.13t": built without the global interpreter lock.
inline bool free_threaded(const std::string& python) {
  return !python.empty() && python.back() == 't';
}

// Whether some patch release of this minor ("3.12", "3.13t") meets it.
bool meets(const PythonDemand& demand, const std::string& python);

// Empty = none that all of them allow.
std::string pick_python(const Wheel& wheel, const Target& target, const Request& request);

// Why `pick_python` has none where target and request leave it open, or why the one that they name
// will not do. What the wheel itself says of Python is judge()'s.
std::vector<Reason> python_reasons(const Wheel& wheel, const std::string& picked,
                                   const std::string& named, const Request& request);

}  // namespace cufit::resolve
