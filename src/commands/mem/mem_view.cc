// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_view.h"

#include "memory/analysis/view.h"
#include "base/format.h"
#include "base/path.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/result_file.h"
#include "host/files/atomic_write.h"
#include "report/page/mem_view.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_view_options[] = {
    k_snapshot_option<MemViewRequest>,
    option<&MemViewRequest::output>("-o,--output", "FILE.html"),
    k_device_option<MemViewRequest>,
    k_torch_option<MemViewRequest>,
};

}  // namespace

std::span<const Option> mem_view_options() { return k_mem_view_options; }

int run_mem_view(const Context& context, const MemViewRequest& request) {
  const Output& output = context.output;
  if (request.output.empty())
    return output.exit_code_for(
        fail(Code::usage, "`cufit mem view` needs the page's name: `-o FILE.html`"));
  if (const Result<void> other = not_the_input(request.output, request.snapshot); !other)
    return output.exit_code_for(other.error());
  const Result<OpenedRecording> opened = open_recording(context, request);
  if (!opened) return output.exit_code_for(opened.error());
  const auto& [path, snapshot, device, verified] = *opened;
  const analysis::View view = analysis::view_of(*snapshot, verified);
  // The name alone: a page is passed on, and folders name people and machines.
  const report::MemView page{view, *snapshot, context.knowledge, std::string(file_name(path))};
  const Result<void> written =
      host::write_whole_file(request.output, report::mem_view_html(page, context.language()));
  if (!written) return output.exit_code_for(written.error());
  return k_ok;
}

}  // namespace cufit::commands
