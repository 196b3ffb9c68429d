// SPDX-License-Identifier: Apache-2.0
// What `cufit bench loader` shows.
#pragma once

#include <string>

#include "report/report.h"
#include "resolve/bench/loader_advice.h"

namespace cufit::report {

struct BenchLoaderView {
  const formats::LoaderAnswer& answer;
  const resolve::LoaderAdvice& advice;
  const resolve::LoaderHost& host;
  const knowledge::Knowledge& knowledge;
};

std::string bench_loader_text(const BenchLoaderView& view, const Style& style);
std::string bench_loader_json(const BenchLoaderView& view);  // schema cufit.bench.loader/1

}  // namespace cufit::report
