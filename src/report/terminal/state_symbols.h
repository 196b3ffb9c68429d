// SPDX-License-Identifier: Apache-2.0
// The mark that stands before every state word. All are one column wide in every terminal, Chinese
// ones included (East Asian width "neutral" or ASCII); colour repeats what mark and word say and
// never says it alone.
#pragma once

#include "checks/finding.h"

namespace cufit::report {

inline const char* mark(checks::LinkState state) {
  switch (state) {
    case checks::LinkState::ok:
      return "\u2713";  // check mark
    case checks::LinkState::limited:
      return "!";
    case checks::LinkState::broken:
      return "\u2717";  // ballot x
    case checks::LinkState::unknown:
      return "?";
  }
  return "?";
}

inline checks::LinkState state_of(checks::Severity severity) {
  switch (severity) {
    case checks::Severity::ok:
    case checks::Severity::note:
      return checks::LinkState::ok;
    case checks::Severity::warning:
      return checks::LinkState::limited;
    case checks::Severity::error:
      return checks::LinkState::broken;
    case checks::Severity::unknown:
      return checks::LinkState::unknown;
  }
  return checks::LinkState::unknown;
}

inline const char* mark(checks::Severity severity) {
  return severity == checks::Severity::note ? "i" : mark(state_of(severity));
}

}  // namespace cufit::report
