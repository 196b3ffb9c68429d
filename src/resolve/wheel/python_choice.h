// SPDX-License-Identifier: Apache-2.0
// Which Python an environment gets: the newest settled minor that the wheel, the request, the
// policy and the projects' `requires-python` allow, or why there is none. Used by
// resolve.cc and lock_check.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "resolve/wheel/resolve.h"

namespace cufit::resolve {

// A Python whose first torch came out less than ten months before a wheel is still new to most
// packages: it is taken only where nothing older is left.
class Pythons {
 public:
  explicit Pythons(const knowledge::Knowledge& knowledge);
  bool settled(const std::string& python, const Wheel& wheel) const;

 private:
  std::map<std::string, int, std::less<>> first_;
  int newest_ = 0;
};

// "3.13t": built without the global interpreter lock.
inline bool free_threaded(const std::string& python) {
  return !python.empty() && python.back() == 't';
}

// Whether some patch release of this minor ("3.12", "3.13t") meets it.
bool meets(const PythonDemand& demand, const std::string& python);

// Empty = none that all of them allow.
std::string pick_python(const Wheel& wheel, const Target& target, const Request& request,
                        const Pythons& pythons);

// Why `pick_python` has none where target and request leave it open, or why the one that they name
// will not do. What the wheel itself says of Python is judge()'s.
std::vector<Reason> python_reasons(const Wheel& wheel, const std::string& picked,
                                   const std::string& named, const Request& request);

}  // namespace cufit::resolve
