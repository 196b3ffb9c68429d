// SPDX-License-Identifier: Apache-2.0
// `cufit export` of what a cluster runs of cufit: node-problem-detector's plug-in, features for
// node-feature-discovery, a DaemonSet for the exporter, a Job that asks every node, a quota of GPUs.
// They need no lock. Texts: src/report/export/templates/, comments in data/messages/export.toml.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "knowledge/knowledge.h"
#include "report/export.h"

namespace cufit::report {

struct ClusterView {
  std::string to;  // of k_cluster_formats
  std::string lang;
  const knowledge::Knowledge& knowledge;
  // Plain words, checked by the command: they stand in YAML as they are.
  std::string image;              // empty: "cufit:VERSION", which the user builds
  std::string space = "default";  // the namespace
  uint32_t nodes = 0;             // k8s-job: how many there are
  // k8s-quota: "nvidia.com/gpu" and how many, in the order in which they were asked for.
  std::vector<std::pair<std::string, uint32_t>> resources;
};

bool is_cluster_format(std::string_view to);

// `to` is of k_cluster_formats: CUFIT_CHECK.
std::vector<ExportFile> export_cluster(const ClusterView& view);

// Schema cufit.export/1, without a lock and its classes.
std::string cluster_json(const ClusterView& view, const std::vector<ExportFile>& files);

}  // namespace cufit::report
