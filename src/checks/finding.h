// SPDX-License-Identifier: Apache-2.0
// What checks return. No text: `id` + `args` + language choose it from data/findings/<id>.toml, so
// that text, JSON, HTML, English and Chinese come from one object.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fact.h"

namespace cufit::checks {

enum class Severity { ok, note, warning, error, unknown };
const char* to_string(Severity severity);
// 0 = ok to 4 = error; what could not be looked at is worse than a note, a warning is worse than
// it.
int seriousness(Severity severity);

// kind is the Source's kind ("file", "nvml", "cuda", "env", "claimed", "assumed") or "table" (a row
// of data/) or "rule" (a stated rule of compatibility). detail says where, value what was read
// there.
struct Evidence {
  std::string kind;
  std::string detail;
  std::string value;
};

// What the next step changes, as far as facts show it: with it the engine is asked again
// (checks/install/after_step.h).
struct Change {
  enum class Kind {
    torch,     // another torch, or the same again, with torchvision and torchaudio
    packages,  // these packages, or the same again
    driver,    // a driver of this branch
  };
  Kind kind = Kind::torch;
  std::string env;                        // path of the environment
  std::string torch, tag;                 // "2.11.0", "cu126"
  std::string python;                     // "3.12": in a new environment with this Python
  std::vector<std::string> requirements;  // "nvidia-cudnn-cu13==9.19.0.56"; of torch: beside it
  std::string driver;                     // "580"; with another kind: before it
  bool other_files = false;  // of packages: not the files that are there, but those of another build
};

struct Finding {
  std::string id;  // root-cause id of taxonomy-env.yaml, or a new one in its style
  Severity severity = Severity::error;
  std::string subject;                      // "GPU 0", "env /path", "machine", or a file
  std::map<std::string, std::string> args;  // placeholders of the texts: {have}, {need}
  std::string variant;  // picks `why.<variant>` / `next.<variant>`; empty = default text
  std::vector<Evidence> evidence;
  // ids of findings that follow from this one and are not listed beside it
  std::vector<std::string> consequences;
  std::string unknown_because;   // with Severity::unknown: which fact is missing and why
  std::optional<Change> change;  // of the next step, where facts show it
  bool step_fails = false;       // with this change the engine finds the same again
};

enum class LinkState { ok, limited, broken, unknown };
const char* to_string(LinkState state);

// One link of the chain of one GPU and one environment. Its text is messages "link.<key>" with
// args.
struct Link {
  std::string name;  // "gpu", "kernel_driver", "user_driver", "cuda_runtime", "libraries", "torch",
                     // "extensions", "container"
  LinkState state = LinkState::unknown;
  std::string key;  // of data/messages: "link.torch.cubin"
  std::map<std::string, std::string> args;
  std::vector<Evidence> evidence;
};

struct Chain {
  std::string gpu;  // "0: NVIDIA H200 (9.0)"
  std::string env;  // path of the environment
  std::vector<Link> links;
};

struct Report {
  LinkState verdict = LinkState::unknown;  // printed as works / limited / broken / unknown
  std::vector<Finding> findings;           // most severe first; one root cause once
  std::vector<Chain> chains;               // GPU-major
  // "What each GPU can do": one row per GPU and data type; key of data/messages and args as in
  // Link.
  std::vector<Link> abilities;
  std::vector<Link> host_limits;  // what on the host would starve the GPUs
  std::vector<Link> together;     // --deep: whether the GPUs work together
  // The verdict is unknown only because nobody named a driver (--gpu without --driver): from this
  // branch on it is `with_driver`. 0 = no such driver.
  uint32_t driver_branch = 0;
  LinkState with_driver = LinkState::unknown;
};

}  // namespace cufit::checks
