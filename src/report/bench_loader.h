// SPDX-License-Identifier: Apache-2.0
// What `cufit bench loader` shows.
#pragma once

#include <optional>
#include <string>

#include "report/report.h"
#include "resolve/bench/loader_advice.h"

namespace cufit::report {

// The program ended, or was ended, before all was measured.
struct LoaderEnd {
  int code = 0;
  bool timed_out = false;
};

struct BenchLoaderView {
  const formats::LoaderAnswer& answer;
  const resolve::LoaderAdvice& advice;
  const resolve::LoaderHost& host;
  const knowledge::Knowledge& knowledge;
  std::optional<LoaderEnd> end = std::nullopt;
};

std::string bench_loader_text(const BenchLoaderView& view, const Style& style);
std::string bench_loader_json(const BenchLoaderView& view);  // schema cufit.bench.loader/1

}  // namespace cufit::report
