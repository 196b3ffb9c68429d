// SPDX-License-Identifier: Apache-2.0
// Look-ups in Facts that several checks share: states of a missing fact, nodes, log lines, versions
// as Python packages write them. Answers only; no findings.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "checks/check.h"

namespace cufit::checks {

// Asked for, but not answered: a question that this fact decides must be answered with `unknown`.
// not_present and not_supported are answers; not_asked means that nobody looked.
template <class T>
bool failed(const Fact<T>& fact) {
  return !fact && (fact.why == WhyNot::no_permission || fact.why == WhyNot::malformed ||
                   fact.why == WhyNot::timeout || fact.why == WhyNot::crashed);
}
template <class T>
bool absent(const Fact<T>& fact) {
  return !fact && fact.why == WhyNot::not_present;
}

// NVIDIA functions of display class: GPUs without NVSwitch bridges and audio.
std::vector<const facts::PciGpu*> pci_gpus(const facts::Facts& facts);
// The GPU of an Xid line's "0000:01:00"; null: no GPU that a source shows.
const GpuView* gpu_at(const Input& input, const std::string& pci);
const facts::DeviceNode* find_node(const facts::Facts& facts, std::string_view path);
// A node of a GPU itself: /dev/nvidia0, /dev/nvidia7.
bool is_gpu_node(std::string_view path);
// Open to everybody by its mode and refused all the same, while NVML lists other GPUs: the device
// rules of a scheduler's step or a container gave this process a part of the GPUs. No fault.
bool is_kept_from_this_job(const facts::Facts& facts, const facts::DeviceNode& node);
bool exists(const facts::DeviceNode* node);
// First kernel-log line that holds one of the (lower-case) texts; empty = none, or the log cannot
// be read.
std::string log_line(const facts::Facts& facts, std::initializer_list<std::string_view> texts);
// cuInit succeeded in the child process.
bool cuda_works(const facts::Facts& facts);

std::vector<const facts::Distribution*> find_distributions(const facts::PythonEnv& env,
                                                           std::string_view name);
// "a, b, c (+4)": at most `limit` parts.
std::string short_list(const std::vector<std::string>& parts, size_t limit = 6);
uint32_t major_of(std::string_view version);                // "13.0" -> 13; 0 = unknown
std::string_view public_version(std::string_view version);  // "2.11.0+cu130" -> "2.11.0"
std::string_view local_version(std::string_view version);   // "2.11.0+cu130" -> "cu130"

}  // namespace cufit::checks
