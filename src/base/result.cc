// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <cstdio>
#include <cstdlib>

namespace cufit {

const char* to_string(Code code) {
  switch (code) {
    case Code::not_found:
      return "not found";
    case Code::no_permission:
      return "no permission";
    case Code::unsupported:
      return "unsupported";
    case Code::malformed:
      return "malformed";
    case Code::io:
      return "input/output error";
    case Code::timeout:
      return "timeout";
    case Code::cancelled:
      return "cancelled";
    case Code::usage:
      return "usage";
  }
  return "unknown";
}

std::string Error::text() const {
  std::string out;
  for (auto it = trail.rbegin(); it != trail.rend(); ++it) out += *it + ": ";
  return out + what;
}

void check_failed(const char* condition, const char* file, int line, const char* why) {
  std::fprintf(stderr, "cufit: internal error at %s:%d: %s (%s)\n", file, line, why, condition);
  std::abort();
}

}  // namespace cufit
