// SPDX-License-Identifier: Apache-2.0
#include "commands/mem_view.h"

#include "analysis/view.h"
#include "base/format.h"
#include "commands/mem_snapshot.h"
#include "commands/settings.h"
#include "commands/write_file.h"
#include "report/mem_view.h"

namespace cufit::commands {
namespace {

constexpr Option k_options[] = {
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

std::span<const Option> mem_view_options() { return k_options; }

int run_mem_view(const Arguments& arguments) {
  const std::string out = arguments.get("output");
  if (out.empty())
    return give_up(fail(Code::usage, "`cufit mem view` needs the page's name: `-o FILE.html`"));
  const auto torch = chosen_torch(arguments);
  if (!torch) return give_up(torch.error());
  const std::string path = arguments.get("SNAPSHOT");
  const Result<memory::Snapshot> snapshot = load_snapshot(path);
  if (!snapshot) return give_up(snapshot.error());
  const Result<uint32_t> device = chosen_device(arguments, *snapshot);
  if (!device) return give_up(device.error());
  const Result<memory::Study> study = memory::study_of(*snapshot, *device, *torch);
  if (!study) return give_up(Error(study.error()).in(path));
  const analysis::View view = analysis::view_of(*snapshot, *study);
  // The name alone: a page is passed on, and folders name people and machines.
  const report::MemView page{view, *snapshot, knowledge::Knowledge::builtin(), base_name(path)};
  const Result<void> written =
      write_whole_file(out, report::mem_view_html(page, language(arguments)));
  if (!written) return give_up(written.error());
  return k_ok;
}

}  // namespace cufit::commands
