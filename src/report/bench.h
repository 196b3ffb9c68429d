// SPDX-License-Identifier: Apache-2.0
// What `cufit bench` shows.
#pragma once

#include <ctime>
#include <string>

#include "report/report.h"
#include "resolve/bench/measurement.h"

namespace cufit::report {

struct BenchView {
  const resolve::BenchMeasurement& result;
  std::time_t time = 0;  // of its end
  std::string file;      // that it was written to; empty: none
  const knowledge::Knowledge& knowledge;
};

std::string bench_text(const BenchView& view, const Style& style);
std::string bench_json(const BenchView& view);  // schema cufit.bench/1
std::string bench_html(const BenchView& view, const std::string& lang);

// Parts of both, in the user's language.
std::string bench_trouble(const formats::BenchRefusal& trouble, const BenchView& view,
                          const std::string& lang);
std::string bench_verdict(const resolve::BenchCase& one, const BenchView& view,
                          const std::string& lang);
// Why a result is to be taken with care: neighbours, slower clocks, a warm-up that did not end.
std::vector<std::string> bench_marks(const BenchView& view, const std::string& lang);
// A rate or an energy with four digits: "2,480", "0.2314".
std::string four_digits(double value);
// "cu130", "cu130, bf16" where precisions are what is compared.
std::string side_name(const resolve::BenchCase& one, const resolve::BenchRun& run,
                      const BenchView& view);
std::string bench_device(const BenchView& view, const std::string& lang);
std::string bench_heading(const resolve::BenchCase& one, const BenchView& view,
                          const std::string& lang);

}  // namespace cufit::report
