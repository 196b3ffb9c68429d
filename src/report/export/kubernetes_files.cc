// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/format.h"
#include "report/export/export_template.h"
#include "report/export/monitoring.h"
#include "report/export_kubernetes.h"

namespace cufit::report {
namespace {

// As a custom plug-in's file is read (pkg/custompluginmonitor/types/config.go of
// node-problem-detector): exit 0 is well, 1 a problem, 2 not known; a message is all that is
// printed, cut after 80 bytes: of doctor the first line alone. A rule's timeout is not longer than
// the plug-in's. The condition stays on the node, the event tells when it began.
constexpr const char* k_first_line =
    "out=$(/usr/local/bin/cufit doctor --fast --lang en); code=$?; "
    "printf '%s\\n' \"$out\" | head -n 1; exit $code";

std::string problem_detector(const ClusterView&) {
  const auto rule = [](const char* type) {
    Json out;
    out["type"] = type;
    if (std::string_view(type) == "permanent") out["condition"] = "CufitGPUProblem";
    out["reason"] = "CufitGPUNotUsable";
    out["path"] = "/bin/sh";
    out["args"] = Json::array();
    for (const char* word : {"-c", k_first_line}) out["args"].push_back(word);
    out["timeout"] = "20s";
    return out;
  };
  Json settings;
  settings["invoke_interval"] = "60s";
  settings["timeout"] = "30s";
  settings["max_output_length"] = 80;
  settings["concurrency"] = 1;
  settings["enable_message_change_based_condition_update"] = true;
  Json well;
  well["type"] = "CufitGPUProblem";
  well["reason"] = "CufitGPUsUsable";
  well["message"] = "every GPU of this node is usable";
  Json out;
  out["plugin"] = "custom";
  out["pluginConfig"] = settings;
  out["source"] = "cufit-monitor";
  out["metricsReporting"] = true;
  out["conditions"] = Json::array();
  out["conditions"].push_back(well);
  out["rules"] = Json::array();
  out["rules"].push_back(rule("temporary"));
  out["rules"].push_back(rule("permanent"));
  return out.dump(2) + "\n";
}

std::string cluster_file(const char* name, const Scope& scope, const ClusterView& view) {
  return fill_template(export_template(name), scope, view.lang, view.knowledge);
}

}  // namespace

bool is_cluster_format(std::string_view to) {
  const std::vector<std::string_view> all = split(k_cluster_formats, ' ');
  return std::find(all.begin(), all.end(), to) != all.end();
}

std::vector<ExportFile> export_cluster(const ClusterView& view) {
  Scope scope;
  scope.values = {
      {"version", CUFIT_VERSION},
      {"image", !view.image.empty()      ? view.image
                : view.to == "k8s-quota" ? std::string("train:1")
                                         : std::string("cufit:") + CUFIT_VERSION},
      {"namespace", view.space},
      {"nodes", std::to_string(view.nodes)},
      {"resource", view.resources.empty() ? "nvidia.com/gpu" : view.resources[0].first}};
  for (const auto& [name, count] : view.resources) {
    Scope row;
    // More than one share of a GPU, or one instance of a program, is rarely what was meant.
    const bool whole = name == "nvidia.com/gpu";
    row.values = {{"name", name},
                  {"count", std::to_string(count)},
                  {"each_at_most", std::to_string(whole ? count : std::min(count, 1u))}};
    scope.lists["resource"].push_back(std::move(row));
  }
  if (view.to == "npd") return {{"cufit-npd.json", problem_detector(view)}};
  if (view.to == "nfd") return {{"cufit-nfd.sh", cluster_file("cufit-nfd.sh", scope, view), true}};
  if (view.to == "k8s-daemonset")
    return {{"exporter-daemonset.yaml", cluster_file("exporter-daemonset.yaml", scope, view)}};
  if (view.to == "k8s-job")
    return {{"fleet-check-job.yaml", cluster_file("fleet-check-job.yaml", scope, view)}};
  CUFIT_CHECK(view.to == "k8s-quota", "a format that is no cluster's");
  return {{"quota.yaml", cluster_file("quota.yaml", scope, view)},
          {"quota-pod.yaml", cluster_file("quota-pod.yaml", scope, view)}};
}

std::string cluster_json(const ClusterView& view, const std::vector<ExportFile>& files) {
  Json out;
  out["schema"] = "cufit.export/1";
  out["to"] = view.to;
  put_export_files(files, out);
  return out.dump(2) + "\n";
}

}  // namespace cufit::report
