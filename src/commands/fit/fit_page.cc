// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_page.h"

#include "commands/settings.h"
#include "host/files/atomic_write.h"

namespace cufit::commands {

Result<void> write_fit_page(const Arguments& arguments, const report::FitView& view,
                            const fit::StepProgram& program, const fit::Setup& setup) {
  if (!arguments.has("html")) return {};
  CUFIT_TRY(timeline, fit::step_timeline(program, view.prediction.batch, setup));
  return host::write_whole_file(arguments.get("html"),
                                report::fit_html(view, timeline, language(arguments)));
}

}  // namespace cufit::commands
