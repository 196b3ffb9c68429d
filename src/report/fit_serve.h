// SPDX-License-Identifier: Apache-2.0
// The answer of `cufit fit --serve`.
#pragma once

#include <string>

#include "fit/serve/serve_answer.h"
#include "report/report.h"

namespace cufit::report {

struct FitServeView {
  const std::string& model;  // as it was typed
  const fit::ServeAnswer& answer;
  const knowledge::Knowledge& knowledge;
};

std::string fit_serve_text(const FitServeView& view, const Style& style);
std::string fit_serve_json(const FitServeView& view);  // schema cufit.fit.serve/1

// A warning's sentence.
std::string fit_serve_warning(const std::pair<std::string, std::string>& warning,
                              const knowledge::Knowledge& knowledge, std::string_view lang);
// The command that starts the engine with these options; empty where it is no command.
std::string serve_command(fit::Engine engine, const std::string& model,
                          const std::vector<std::string>& flags);

}  // namespace cufit::report
