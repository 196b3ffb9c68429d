// SPDX-License-Identifier: Apache-2.0
// `cufit export --to slurm-submit`: a cli_filter.lua that says at submission that a job does not fit
// the GPU it asks for. It runs as the user, in sbatch, srun and salloc, by Lua 5.1 to 5.4.
#include <algorithm>

#include "base/format.h"
#include "report/export/export_template.h"
#include "report/export/monitoring.h"
#include "report/message.h"

namespace cufit::report {

std::string slurm_submit_filter(const MonitoringView& view) {
  Scope scope;
  scope.values["version"] = CUFIT_VERSION;
  for (const char* key : {"too_small", "more"})
    scope.values[key] =
        message(view.knowledge, std::string("export.submit.text.") + key, view.lang);
  const std::string text =
      fill_template(export_template("cli_filter.lua"), scope, view.lang, view.knowledge);
  // Lua's comments begin otherwise than those of the other files.
  std::string out;
  for (const std::string_view line : split_lines(text)) {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const bool comment = starts_with(line.substr(begin), "#");
    out += std::string(line.substr(0, begin)) + (comment ? "--" : "") +
           std::string(line.substr(begin + (comment ? 1 : 0))) + "\n";
  }
  return out;
}

}  // namespace cufit::report
