// SPDX-License-Identifier: Apache-2.0
// Probes: each reads one part of the machine into Facts. They judge nothing and never fail as a
// whole: what cannot be read becomes a Fact with its WhyNot. `collect` runs all of them in the
// order in which they depend on each other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "host/files/host.h"

namespace cufit::host {

// How much the driver is asked: which devices CUDA shows; also NVML's state of each GPU; also the
// compute check, which makes a context on each.
enum class DriverDepth { identity, state, compute };

struct ProbeOptions {
  std::vector<std::string> env_dirs;  // --env DIR; empty = the environments found by themselves
  bool driver_calls = true;           // ask NVML and the CUDA driver (in a child process)
  bool cuda_driver = true;            // false: NVML alone, which makes no context
  DriverDepth driver_depth = DriverDepth::compute;
  bool deep = false;             // memory pattern test and a matrix product in torch
  bool for_collect_env = false;  // also what only collect-env shows (lscpu, compilers): some 10 ms
  // Whether the user's own site (~/.local) belongs to the environments, as it does for their Python.
  // Not to one of `cufit env`: a venv shuts it out, for conda's `cufit run` sets PYTHONNOUSERSITE.
  bool user_site = true;
  // Every file that RECORDs name is looked for, not code alone.
  bool every_file = false;
  // Also environments in the home folder and beside the current one (python_prefix.h).
  bool search_everywhere = false;
  double driver_timeout_seconds = 10;  // for the child; a wedged driver hangs
  bool more_time_per_gpu = true;       // 3 s for each further GPU, which a first start takes
  std::string driver_library_dir;  // tests: where the stand-in libcuda/libnvidia-ml lie; empty =
                                   // normal search
  // Progress of long work: what, done and total units. May be empty.
  std::function<void(const std::string& what, uint64_t done, uint64_t total)> progress;
};

facts::Facts collect(const Host& host, const ProbeOptions& options);
// What a node's health is judged by: the machine and NVML, no environment and no CUDA context.
facts::Facts collect_health(const Host& host, ProbeOptions options);

// Asks NVML and the CUDA driver in two child processes that run from construction on, so that other
// probes can work while the driver starts (260 ms on an H200). finish() waits for the answers;
// without it the children are ended.
class DriverQuestions {
 public:
  DriverQuestions(const Host& host, const ProbeOptions& options,
                  const facts::Facts& facts);  // driver_child.cc
  ~DriverQuestions();
  DriverQuestions(const DriverQuestions&) = delete;
  DriverQuestions& operator=(const DriverQuestions&) = delete;
  void finish(facts::Facts& facts);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

void read_system(const Host& host, facts::Facts& facts);            // system.cc
void read_pci(const Host& host, facts::Facts& facts);               // pci.cc
// --deep: PciGpu::iommu and bridges of each GPU.
void read_gpu_paths(const Host& host, facts::Facts& facts);         // pci_paths.cc
void read_kernel_driver(const Host& host, facts::Facts& facts);     // kernel_driver.cc
void read_driver_libraries(const Host& host, facts::Facts& facts);  // driver_libraries.cc
// Only the libcuda.so.1 that a new process would load: part of a millisecond.
void read_loaded_libcuda(const Host& host, facts::Facts& facts);  // driver_libraries.cc
void read_driver_answers(const Host& host, const ProbeOptions& options,
                         facts::Facts& facts);                      // driver_child.cc
void read_toolkits(const Host& host, facts::Facts& facts);          // toolkits.cc
void read_variables(const Host& host, facts::Facts& facts);         // variables.cc
void read_container_engine(const Host& host, facts::Facts& facts);  // container_engine.cc
void read_python_envs(const Host& host, const ProbeOptions& options,
                      facts::Facts& facts);  // python_envs.cc
// Facts::collect_env, and of every environment and toolkit what only that report shows.
void read_collect_env(const Host& host, facts::Facts& facts);  // collect_env.cc
// --deep: PythonEnv::torch_run of every environment with torch and a known interpreter.
void run_torch_checks(const Host& host, const ProbeOptions& options,
                      facts::Facts& facts);  // torch_child.cc
// --deep: what all GPUs do together, in the first environment whose torch runs.
void run_together_check(const Host& host, const ProbeOptions& options,
                        facts::Facts& facts);  // together_run.cc

}  // namespace cufit::host
