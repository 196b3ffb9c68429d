// SPDX-License-Identifier: Apache-2.0
// What is inside a container image and where it can run: torch and the hardware its code fits, CUDA
// libraries and their copies, driver files that do not belong into an image, bytes that no
// container will see. Pure: from the image's tree and the facts that the probes read of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checks/finding.h"
#include "facts/facts.h"
#include "facts/opened_image.h"
#include "resolve/image/image_rules.h"
#include "resolve/wheel/wheel_compatibility.h"

namespace cufit::resolve {

struct ImageFile {
  std::string name;  // "libcudnn.so.9"
  std::string path, version, package;
  uint64_t size_bytes = 0;
  size_t layer = 0;
};

// One library of one version more than once: within one environment, or in an environment and in
// the system's folders. What two environments hold is no copy: each loads its own.
struct ImageCopies {
  std::string name;
  std::vector<ImageFile> files;
  uint64_t extra_bytes = 0;  // what goes when each environment keeps one file
  bool in_base = false;      // one of them lies in a folder of the system
};

struct ImageTorch {
  size_t env = 0;     // of facts.envs
  std::string label;  // among the image's other torch: "torch 2.14.1", or "cu126" of its folder
  Wheel wheel;        // as its files say
  bool code_known = false;
  std::vector<Verdict> verdicts;  // one for each target
  std::vector<Fit> files_alone;   // for each: what torch's files would do, whatever is in the way
  // Fit::needs_compat, and the image holds a cuda-compat for that driver.
  std::vector<bool> by_own_compat;
  // Of ImageAudit::findings, the first that says that this environment cannot work; npos = none.
  static constexpr size_t npos = SIZE_MAX;
  size_t broken_by = npos;
  // One for each target: what of the image itself, not of torch, stands in the way there, as an id
  // of messages "report.image.blocked" with its arguments; empty id = nothing. The verdict is `no`.
  std::vector<Reason> blocked_by;
};

// Text: messages "report.image.defect.<id>" and "...<id>_next", filled with args.
struct ImageDefect {
  std::string id;
  checks::Severity severity = checks::Severity::warning;
  std::map<std::string, std::string> args;
};

struct ImageAudit {
  std::vector<ImageTorch> torches;
  std::vector<ImageFile> libraries;       // CUDA's, by name
  std::vector<ImageFile> driver;          // of the driver, copied in
  std::vector<ImageCopies> copies;        // the most bytes first
  std::vector<facts::HiddenFile> hidden;  // the largest first
  uint64_t hidden_bytes = 0, file_bytes = 0;
  size_t files = 0;
  std::vector<ImageDefect> defects;       // most severe first
  std::vector<checks::Finding> findings;  // of the engine, about the environments
  std::vector<ImageRule> rules;           // `--check` alone; their findings are among `findings`
  std::vector<Target> targets;
  bool has_defects() const;  // a warning or an error, or a target that no torch serves
  // Each rule is kept, or broken by no more than a note; none was asked for: false.
  bool keeps_rules() const;
  bool serves(size_t target) const;
  std::vector<size_t> served_by(size_t target) const;  // of torches
};

ImageAudit audit_image(const facts::OpenedImage& image, const facts::ImageTree& tree,
                       const facts::Facts& facts, std::vector<Target> targets,
                       const knowledge::Knowledge& knowledge);

// Puts the rules and what breaks them into the audit.
void add_rules(ImageRules rules, ImageAudit& audit);

// A wheel as the installed files of an environment tell it.
Wheel installed_wheel(const facts::Facts& facts, const facts::PythonEnv& env,
                      const knowledge::Knowledge& knowledge);

// "8.0", "9.0" of the GPUs that its machine code is for. Code that only one capability takes
// ("90a") is no GPU of its own, and counts only where it serves that GPU.
std::vector<std::string> gpu_capabilities(const Wheel& wheel,
                                          const knowledge::Knowledge& knowledge);
// Of its PTX, without the one for a single capability ("90a").
std::vector<std::string> gpu_ptx(const Wheel& wheel);

}  // namespace cufit::resolve
