// SPDX-License-Identifier: Apache-2.0
#include "base/fact.h"

namespace cufit {

const char* to_string(SourceKind kind) {
  switch (kind) {
    case SourceKind::file:
      return "file";
    case SourceKind::nvml:
      return "nvml";
    case SourceKind::cuda:
      return "cuda";
    case SourceKind::env:
      return "env";
    case SourceKind::command:
      return "command";
    case SourceKind::claimed:
      return "claimed";
    case SourceKind::assumed:
      return "assumed";
  }
  return "file";
}

const char* to_string(WhyNot why) {
  switch (why) {
    case WhyNot::not_present:
      return "not_present";
    case WhyNot::no_permission:
      return "no_permission";
    case WhyNot::not_supported:
      return "not_supported";
    case WhyNot::malformed:
      return "malformed";
    case WhyNot::timeout:
      return "timeout";
    case WhyNot::crashed:
      return "crashed";
    case WhyNot::not_asked:
      return "not_asked";
  }
  return "not_asked";
}

}  // namespace cufit
