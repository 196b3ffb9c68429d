// SPDX-License-Identifier: Apache-2.0
// The whole engine on any bytes: readers, patterns, checks, scores.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "explain/explain.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cufit::explain::Explainer explainer(cufit::knowledge::Knowledge::builtin());
  explainer.add(std::string_view(reinterpret_cast<const char*>(data), size));
  const cufit::explain::Explanation answer = explainer.finish({});
  CUFIT_CHECK(answer.causes.size() <= 8, "the engine bounds what it names");
  for (const cufit::explain::Cause& cause : answer.causes)
    CUFIT_CHECK(cause.score > 0 && cause.score <= 1, "scores stay between 0 and 1");
  return 0;
}
