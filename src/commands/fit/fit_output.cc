// SPDX-License-Identifier: Apache-2.0
#include "commands/fit/fit_output.h"

#include "host/files/atomic_write.h"

namespace cufit::commands {
namespace {

Result<void> write_fit_page(const report::FitView& view, const std::string& path,
                            const std::string& lang) {
  const uint64_t batch = view.answer.prediction.batch;
  CUFIT_TRY(timeline, fit::step_timeline(view.answer.programs.at(batch), batch, view.answer.setup));
  return host::write_whole_file(path, report::fit_html(view, timeline, lang));
}

}  // namespace

int print_fit_answer(const Context& context, const std::string& program, const fit::Answer& answer,
                     const FitOutputRequest& wanted) {
  const Output& output = context.output;
  const report::FitView view{program, answer, context.knowledge};
  if (wanted.html)
    if (const Result<void> page = write_fit_page(view, *wanted.html, context.language()); !page)
      return output.exit_code_for(page.error());
  const int code =
      output.print(wanted.json ? report::fit_json(view) : report::fit_text(view, output.style()),
                   answer.fits() ? k_ok : k_findings);
  if (!answer.unanswered) return code;
  output.print_error(
      context.message("fit.unanswered", {{"batch", std::to_string(*answer.unanswered)}}));
  return k_failed;
}

}  // namespace cufit::commands
