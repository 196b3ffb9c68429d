// SPDX-License-Identifier: Apache-2.0
// Facts as a flat list whose entries can be laid beside those of another machine: lists are keyed
// by what names their elements (a variable's name, a library's soname), not by their place. Walks
// facts/facts_fields.h, so a new fact takes part by itself. Used by fact_difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "facts/facts.h"

namespace cufit::resolve {

struct ListedFact {
  std::string field;  // "kernel.version", "variables[]", "nvml.gpus[].mig_current"
  std::string key;    // what stands in the brackets: "LD_LIBRARY_PATH", "0"; empty without brackets
  std::string value;  // empty where it is missing
  std::optional<WhyNot> missing;
  std::string note;  // of a missing one
  // Where it was read and what it is about: files and variables that a finding's evidence may name.
  std::vector<std::string> places;
  std::string package;  // of a library: "nvidia-cudnn-cu12", the distribution that owns it
  // An element of a plain list: that another machine lacks it is no answer where that one is known
  // from a pasted text.
  bool of_list = false;
};

// Everything but environments. One entry "gpus" sums up which GPUs there are.
std::vector<ListedFact> list_machine(const facts::Facts& facts);
// Fields begin with "env."; paths inside the environment are written from its root. Distributions
// are left to package_difference.
std::vector<ListedFact> list_env(const facts::PythonEnv& env);

// "2x NVIDIA A800 80GB PCIe (8.0, 80 GiB)": as NVML tells, else the CUDA driver; empty = none seen.
std::string gpus_summary(const facts::Facts& facts);

}  // namespace cufit::resolve
