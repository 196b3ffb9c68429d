// SPDX-License-Identifier: Apache-2.0
#include "commands/mem/mem_view.h"

#include "memory/analysis/view.h"
#include "base/format.h"
#include "commands/mem/mem_snapshot.h"
#include "commands/settings.h"
#include "host/files/atomic_write.h"
#include "report/page/mem_view.h"

namespace cufit::commands {
namespace {

constexpr Option k_mem_view_options[] = {
    {"SNAPSHOT", "", "", false, "", true},
    {"-o,--output", "FILE.html", "", false, ""},
    k_device_option,
    k_torch_option,
};

std::string base_name(const std::string& path) {
  const size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

}  // namespace

std::span<const Option> mem_view_options() { return k_mem_view_options; }

int run_mem_view(const Arguments& arguments) {
  const std::string out = arguments.get("output");
  if (out.empty())
    return exit_code_for(
        fail(Code::usage, "`cufit mem view` needs the page's name: `-o FILE.html`"));
  const Result<OpenedStudy> opened = open_study(arguments);
  if (!opened) return exit_code_for(opened.error());
  const auto& [path, snapshot, device, verified] = *opened;
  const analysis::View view = analysis::view_of(*snapshot, verified);
  // The name alone: a page is passed on, and folders name people and machines.
  const report::MemView page{view, *snapshot, knowledge::Knowledge::builtin(), base_name(path)};
  const Result<void> written =
      host::write_whole_file(out, report::mem_view_html(page, language(arguments)));
  if (!written) return exit_code_for(written.error());
  return k_ok;
}

}  // namespace cufit::commands
