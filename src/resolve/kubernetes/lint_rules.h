// SPDX-License-Identifier: Apache-2.0
// What the rules of `cufit k8s lint` share: one container with what it asks for, and where findings
// go. The rules are lint_*.cc, a file for each subject.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "resolve/kubernetes/pod_lint.h"
#include "resolve/kubernetes/start_command.h"

namespace cufit::resolve {

// Of limits, or where there are none of requests: Kubernetes gives a GPU by either name.
struct GpuAsk {
  uint64_t whole = 0, instances = 0;  // GPUs (shared ones too), MIG instances
  // Something asks for a GPU in a way whose number is not seen: a claim, another vendor's or
  // plug-in's resource, a quantity that is no number.
  bool unknown = false;
  const formats::PodResource* first = nullptr;  // the first of nvidia.com/
  bool any() const { return whole > 0 || instances > 0 || unknown; }
  // How many GPUs a program sees, where it is known and no MIG instance is among them.
  std::optional<uint64_t> visible() const {
    return unknown || instances > 0 || whole == 0 ? std::nullopt : std::optional<uint64_t>(whole);
  }
};
GpuAsk gpus_asked(const formats::ManifestContainer& container);
bool is_gpu_resource(const std::string& name);  // nvidia.com/gpu, .shared, mig-*
bool is_mig_resource(const std::string& name);
std::optional<uint64_t> whole_quantity(const std::string& text);  // "4"; nullopt: "0.5", "-1"

struct ContainerView {
  const formats::ManifestPod& pod;
  const formats::ManifestContainer& container;
  GpuAsk gpus;
  StartCommand start;
};

struct PodView {
  const formats::ManifestPod& pod;
  std::vector<ContainerView> containers;
  bool asks_gpu() const;
};

class LintOut {
 public:
  LintOut(const LintInput& input, Lint& lint) : input_(input), lint_(lint) {}

  void look_at(size_t file, const formats::ManifestPod& pod) {
    file_ = file;
    pod_ = &pod;
  }
  // The finding may be filled further until the next one.
  LintFinding& add(const char* id, checks::Severity severity, size_t line, const std::string& seen,
                   const formats::ManifestContainer* container = nullptr);
  void prove(LintFinding& finding, size_t line, const std::string& seen) const;
  void not_judged(const std::string& id, std::map<std::string, std::string> args = {});

 private:
  const LintInput& input_;
  Lint& lint_;
  size_t file_ = 0;
  const formats::ManifestPod* pod_ = nullptr;
};

// A DaemonSet, or a container that looks after GPUs rather than computes on them: what is a mistake
// elsewhere is its job.
bool looks_after_gpus(const ContainerView& view);
// The volume at this path of a container ("/dev/shm", or a folder above); nullptr = none.
const formats::PodVolume* volume_at(const formats::ManifestPod& pod,
                                    const formats::ManifestContainer& container,
                                    std::string_view path);
// Of a name that stands there twice the last counts; nullptr: not there, or a value from elsewhere.
const formats::PodVariable* find_variable(const formats::ManifestContainer& container,
                                          std::string_view name);
std::string variable_seen(const formats::PodVariable& one);  // "NAME=value"
std::optional<uint64_t> memory_limit(const formats::ManifestContainer& container);

void lint_shape(const PodView& pod, LintOut& out);                  // lint_shape.cc
void lint_resources(const PodView& pod, LintOut& out);              // lint_resources.cc
void lint_memory(const PodView& pod, LintOut& out);                 // lint_memory.cc
void lint_processes(const PodView& pod, LintOut& out);              // lint_processes.cc
bool has_more_processes_than_instances(const ContainerView& view);  // of MIG
void lint_placement(const PodView& pod, const LintInput& input,
                    const knowledge::Knowledge& knowledge, LintOut& out);  // lint_placement.cc
// Of nodes that give the GPUs: do they give processors and memory, and whole GPUs?
void lint_capacity(const PodView& pod, const std::vector<const ClusterNode*>& nodes,
                   LintOut& out);  // lint_capacity.cc

// What `image audit` says of the image of `--image` on each given node, asked once.
class ImageFits {
 public:
  ImageFits(const LintInput& input, const knowledge::Knowledge& knowledge);
  // The image is the container's: by its tags, or because all GPU containers name one image alone
  // that is called the same wherever it lies.
  bool is_of(const formats::ManifestContainer& container) const;
  struct Fit {
    const ClusterNode* node = nullptr;
    bool serves = true;
    Reason reason;             // where it does not
    std::string finding;       // its id
    bool files_serve = false;  // torch's own files would run: the image's settings are in the way
    std::string resolve;       // words for `cufit resolve --for`; empty = they do not say it all
  };
  const std::vector<Fit>& fits() const { return fits_; }  // of the nodes that are recorded
  bool has_torch() const { return has_torch_; }
  bool is_used() const;  // by some container

 private:
  const LintInput& input_;
  std::vector<Fit> fits_;
  bool has_torch_ = false;
  std::string only_image_;  // of all GPU containers; empty = there are several
};
void lint_library_path(const ContainerView& view, const LintInput& input, const ImageFits& image,
                       LintOut& out);  // lint_library_path.cc
void lint_settings(const PodView& pod, const LintInput& input, const ImageFits& image,
                   LintOut& out);  // lint_settings.cc
void lint_image(const PodView& pod, const LintInput& input, const ImageFits& image,
                LintOut& out);  // lint_image.cc
// Nodes that a pod may land on, as far as is known: labels, resources.
std::vector<const ClusterNode*> possible_nodes(const PodView& pod, const LintInput& input);

}  // namespace cufit::resolve
