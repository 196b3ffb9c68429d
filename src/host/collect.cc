// SPDX-License-Identifier: Apache-2.0
#include "host/probe.h"

#include <exception>
#include <optional>

namespace cufit::host {
namespace {

// Probes do not throw for what they find on a machine. What a library throws nonetheless (no
// memory, a broken locale) costs that one probe and is told; the report with a hole is worth more
// than none.
template <class Probe>
void guarded(const char* name, facts::Facts& facts, Probe probe) {
  try {
    probe();
  } catch (const std::exception& error) {
    facts.problems.push_back(std::string("reading ") + name + ": " + error.what());
  }
}

}  // namespace

// The order is that of need: the kernel probe looks at the PCI functions and the container kind,
// the driver's answers at the library that would load, the Python environments at all of the
// system. The driver is asked while the environments are read.
facts::Facts collect(const Host& host, const ProbeOptions& options) {
  facts::Facts facts;
  facts.cufit_version = CUFIT_VERSION;
  guarded("the system", facts, [&] { read_system(host, facts); });
  guarded("the PCI bus", facts, [&] { read_pci(host, facts); });
  if (options.deep) guarded("the PCI bridges", facts, [&] { read_gpu_paths(host, facts); });
  guarded("the kernel driver", facts, [&] { read_kernel_driver(host, facts); });
  guarded("the driver libraries", facts, [&] { read_driver_libraries(host, facts); });
  guarded("the variables", facts, [&] { read_variables(host, facts); });
  guarded("the toolkits", facts, [&] { read_toolkits(host, facts); });
  guarded("the container engine", facts, [&] { read_container_engine(host, facts); });
  std::optional<DriverQuestions> driver;
  guarded("the driver's answers", facts, [&] { driver.emplace(host, options, facts); });
  guarded("the Python environments", facts, [&] { read_python_envs(host, options, facts); });
  if (options.for_collect_env)
    guarded("the versions of tools", facts, [&] { read_collect_env(host, facts); });
  guarded("the driver's answers", facts, [&] {
    if (driver) driver->finish(facts);
  });
  guarded("torch's own computation", facts, [&] { run_torch_checks(host, options, facts); });
  guarded("the GPUs together", facts, [&] { run_together_check(host, options, facts); });
  return facts;
}

facts::Facts collect_health(const Host& host, ProbeOptions options) {
  options.cuda_driver = false;
  options.more_time_per_gpu = false;
  facts::Facts facts;
  facts.cufit_version = CUFIT_VERSION;
  std::optional<DriverQuestions> driver;
  guarded("the PCI bus", facts, [&] { read_pci(host, facts); });
  guarded("the driver's answers", facts, [&] { driver.emplace(host, options, facts); });
  guarded("the system", facts, [&] { read_system(host, facts); });
  guarded("the kernel driver", facts, [&] { read_kernel_driver(host, facts); });
  guarded("the driver libraries", facts, [&] { read_driver_libraries(host, facts); });
  guarded("the variables", facts, [&] { read_variables(host, facts); });
  guarded("the toolkits", facts, [&] { read_toolkits(host, facts); });
  guarded("the container engine", facts, [&] { read_container_engine(host, facts); });
  guarded("the driver's answers", facts, [&] {
    if (driver) driver->finish(facts);
  });
  return facts;
}

}  // namespace cufit::host
