// SPDX-License-Identifier: Apache-2.0
// Checks of manifests before a cluster sees them: is the GPU asked for so that Kubernetes takes it,
// do shared memory, memory limit and variables fit a GPU program, is there a node that takes the
// pod, does the image's device code run there. Pure: manifests, nodes and an opened image in,
// findings out. What a manifest alone does not tell is listed as not judged, and never guessed.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checks/finding.h"
#include "facts/opened_image.h"
#include "formats/system/kubernetes_objects.h"
#include "resolve/kubernetes/cluster_node.h"
#include "resolve/wheel/wheel_compatibility.h"

namespace cufit::resolve {

struct LintFile {
  std::string path;  // "-" is standard input
  formats::ManifestObjects objects;
};

struct LintImage {
  const facts::OpenedImage& image;
  const facts::ImageTree& tree;
  const facts::Facts& facts;
};

struct LintInput {
  std::vector<LintFile> files;
  std::vector<ClusterNode> nodes;    // empty: nothing is said of nodes
  const LintImage* image = nullptr;  // nullptr: nothing is said of what is inside an image
};

struct LintFinding {
  checks::Finding finding;  // evidence: "pod.yaml:12" and what stands there
  size_t file = 0, line = 0;
  std::string object;     // "Job/train", of a part "PyTorchJob/train (Worker)"
  std::string container;  // empty: the pod as a whole
  std::string place;      // where the lines belong: "spec.template.spec.containers[0]"
  std::string yaml;       // the lines to put there, each ends with a line break; empty = none
  // Why an image does not run on a node, for {reason} of the finding's texts.
  std::optional<Reason> reason;
};

// Message "report.k8s.unjudged.<id>", filled with args.
struct Unjudged {
  std::string id;
  std::map<std::string, std::string> args;
};

struct Lint {
  std::vector<LintFinding> findings;  // most severe first, then by file, line
  std::vector<Unjudged> unjudged;
  size_t pods = 0, gpu_pods = 0;
};

Lint lint_manifests(const LintInput& input, const knowledge::Knowledge& knowledge);

}  // namespace cufit::resolve
