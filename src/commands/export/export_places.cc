// SPDX-License-Identifier: Apache-2.0
#include "commands/export/export_places.h"

#include "base/format.h"
#include "base/path.h"
#include "host/files/atomic_write.h"
#include "host/files/paths.h"

namespace cufit::commands {
namespace {

// Where each file goes: one file to -o itself, unless that is a folder; several into the folder.
std::vector<std::string> places(const std::string& output,
                                const std::vector<report::ExportFile>& files) {
  const bool folder = files.size() > 1 || output.back() == '/' || host::is_folder(output);
  std::vector<std::string> out;
  for (const report::ExportFile& file : files)
    out.push_back(folder ? path_in(output, file.path) : output);
  return out;
}

// Several files need a folder, and `-o Dockerfile` would be a folder of that name.
bool can_hold(const std::string& path, const std::vector<report::ExportFile>& files) {
  if (path.empty()) return false;
  if (files.size() < 2 || host::is_folder(path)) return true;
  return !host::path_exists(path) && file_name(path) != file_name(files.front().path);
}

}  // namespace

Result<std::vector<std::string>> chosen_places(const ExportRequest& request,
                                               const std::vector<report::ExportFile>& files) {
  if (!can_hold(request.output, files))
    return fail(Code::usage, format("`--to {}` makes {} files: name a folder, `-o DIR`, or "
                                    "take them as `--json`",
                                    request.to, files.size()));
  return places(request.output, files);
}

Result<void> write_files(const std::vector<report::ExportFile>& files,
                         const std::vector<std::string>& paths, bool force) {
  for (const std::string& path : paths)
    if (!force && host::entry_exists(path))
      return fail(Code::usage,
                  format("`{}` exists; `--force` replaces it; nothing was written", path));
  for (size_t i = 0; i < files.size(); ++i) {
    if (const std::string folder = parent_folder(paths[i]); !folder.empty())
      if (Result<void> made = host::create_folders(folder); !made) return made;
    if (Result<void> written = host::write_whole_file(paths[i], files[i].text); !written)
      return written;
    if (files[i].executable) (void)host::let_run(paths[i]);
  }
  return {};
}

}  // namespace cufit::commands
