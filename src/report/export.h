// SPDX-License-Identifier: Apache-2.0
// `cufit export`: a lock as the files of other tools, each after that tool's best practice. The
// files themselves are src/report/export/, their comments data/messages/export.toml; here are the
// values that go into them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/python/pylock.h"
#include "knowledge/knowledge.h"
#include "resolve/lock/lock_file.h"

namespace cufit::report {

struct ExportClass {
  resolve::LockClass lock;
  formats::Pylock pylock;
};

struct ExportView {
  std::string to;  // "dockerfile"
  resolve::LockFile lock;
  std::vector<ExportClass> classes;  // those asked for, in the lock's order
  std::string base;   // "IMAGE@sha256:<64 hex>", empty = a placeholder that has to be filled in
  uint32_t gpus = 0;  // 0 = not given: all of them, or one where a number is needed
  std::string lang;
  const knowledge::Knowledge& knowledge;
  std::vector<std::string> with = {};  // of k_export_services, in that order; dockerfile only
  std::string lock_sha256 = {};        // of the lock's file
};

struct ExportFile {
  std::string path;  // relative: "Dockerfile", ".devcontainer/devcontainer.json"
  std::string text;
  bool executable = false;
};

// "uv pip conda ...": what `--to` may be. The first ones are of a lock: ExportView::to. The last ones
// need none (export_monitoring.h, export_kubernetes.h).
constexpr std::string_view k_export_formats =
    "uv pip conda pixi dockerfile compose devcontainer k8s apptainer slurm "
    "prometheus-rules alertmanager grafana compose-monitoring slurm-health slurm-prolog "
    "slurm-submit npd nfd k8s-daemonset k8s-job k8s-quota";
constexpr size_t k_monitoring_begin = k_export_formats.find("prometheus-rules");
constexpr std::string_view k_lock_formats = k_export_formats.substr(0, k_monitoring_begin - 1);
constexpr size_t k_cluster_begin = k_export_formats.find("npd");
constexpr std::string_view k_monitoring_formats =
    k_export_formats.substr(k_monitoring_begin, k_cluster_begin - 1 - k_monitoring_begin);
constexpr std::string_view k_cluster_formats = k_export_formats.substr(k_cluster_begin);

// What an image of `--to dockerfile` can hold besides its environments: `--with`.
constexpr std::string_view k_export_services = "jupyter ssh";

// Error{unsupported}: this lock cannot be said in that format, and why. Error{malformed}: a text of
// the lock or of a pylock file is not what its place in the file allows.
Result<std::vector<ExportFile>> export_files(const ExportView& view);

// Schema cufit.export/1.
std::string export_json(const ExportView& view, const std::vector<ExportFile>& files);

}  // namespace cufit::report
