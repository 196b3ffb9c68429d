// SPDX-License-Identifier: Apache-2.0
#include "report/export.h"

#include "base/format.h"
#include "report/export/export_values.h"
#include "report/export/monitoring.h"
#include "report/json/json_value.h"

namespace cufit::report {
namespace {

struct ExportWriter {
  std::string_view to;
  ExportFiles (*write)(const ExportView&);
};

constexpr ExportWriter k_writers[] = {
    {"uv", export_uv},
    {"pip", export_pip},
    {"conda", export_conda},
    {"pixi", export_pixi},
    {"dockerfile", export_dockerfile},
    {"compose", export_compose},
    {"devcontainer", export_devcontainer},
    {"k8s", export_k8s},
    {"apptainer", export_apptainer},
    {"slurm", export_slurm},
};

}  // namespace

Result<std::vector<ExportFile>> export_files(const ExportView& view) {
  if (view.classes.empty())
    return fail(Code::usage, format("{}: no class is chosen", view.lock.path));
  if (Result<void> plain = check_plain(view); !plain) return plain.error();
  for (const ExportWriter& writer : k_writers)
    if (writer.to == view.to) return writer.write(view);
  return fail(Code::usage, format("`--to {}`: {}", view.to, k_lock_formats));
}

std::string export_json(const ExportView& view, const std::vector<ExportFile>& files) {
  Json out;
  out["schema"] = "cufit.export/1";
  out["to"] = view.to;
  out["lock"] = view.lock.path;
  out["classes"] = Json::array();
  for (const ExportClass& one : view.classes) out["classes"].push_back(one.lock.name);
  put_export_files(files, out);
  return out.dump(2) + "\n";
}

void put_export_files(const std::vector<ExportFile>& files, Json& out) {
  out["files"] = Json::array();
  for (const ExportFile& file : files)
    out["files"].push_back(
        {{"path", file.path}, {"executable", file.executable}, {"text", file.text}});
}

}  // namespace cufit::report
