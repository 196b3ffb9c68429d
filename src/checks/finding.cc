// SPDX-License-Identifier: Apache-2.0
#include "checks/finding.h"

namespace cufit::checks {

const char* to_string(Severity severity) {
  switch (severity) {
    case Severity::ok:
      return "ok";
    case Severity::note:
      return "note";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
    case Severity::unknown:
      return "unknown";
  }
  return "unknown";
}

int seriousness(Severity severity) {
  switch (severity) {
    case Severity::ok:
      return 0;
    case Severity::note:
      return 1;
    case Severity::unknown:
      return 2;
    case Severity::warning:
      return 3;
    case Severity::error:
      return 4;
  }
  return 4;
}

const char* to_string(LinkState state) {
  switch (state) {
    case LinkState::ok:
      return "ok";
    case LinkState::limited:
      return "limited";
    case LinkState::broken:
      return "broken";
    case LinkState::unknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace cufit::checks
