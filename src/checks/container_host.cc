// SPDX-License-Identifier: Apache-2.0
// What a host offers to its containers, and the shared memory of a container. Notes on a host: they
// matter only to somebody who starts GPU containers there.
#include "base/format.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"
#include "checks/machine_checks.h"
#include "checks/torch_env.h"

namespace cufit::checks {
namespace {

// What docker, podman and Kubernetes give a container that does not ask for more.
constexpr uint64_t k_default_shm_bytes = 64u << 20;

}  // namespace

std::vector<Finding> check_container_host(const Input& input) {
  const facts::ContainerEngine& engine = input.facts.engine;
  if (in_container(input.facts) || !engine.docker || input.gpus.empty()) return {};
  const bool snap = engine.snap_docker.value_or(false);
  if (absent(engine.toolkit)) {
    Finding made = finding("container_toolkit_missing", Severity::note, k_machine);
    made.args["engine"] = *engine.docker;
    made.evidence.push_back(seen(engine.docker));
    made.evidence.push_back(seen(engine.toolkit));
    return {made};
  }
  if (!engine.toolkit) {
    if (!failed(engine.toolkit)) return {};
    return {cannot_tell("container_toolkit_missing", k_machine, why_missing(engine.toolkit))};
  }
  // `docker run --gpus` needs no entry in daemon.json: docker finds the toolkit's hook on its PATH.
  // Only snap's docker cannot (it does not see the host's files), and `--runtime nvidia` needs the
  // entry.
  const bool registered = engine.runtime_registered.value_or(true) || !engine.cdi_specs.empty();
  if (registered) return {};
  Finding made = finding("container_runtime_not_registered",
                         snap ? Severity::warning : Severity::note, k_machine);
  made.variant = snap ? "snap" : "";
  made.args["engine"] = *engine.docker;
  made.evidence.push_back(seen(engine.runtime_registered));
  made.evidence.push_back(seen(engine.toolkit));
  if (snap) made.evidence.push_back(seen(engine.snap_docker));
  return {made};
}

std::vector<Finding> check_container_shm(const Input& input) {
  const facts::Facts& facts = input.facts;
  if (!in_container(facts) || input.gpus.empty()) return {};
  const Fact<uint64_t>& shm = facts.system.shm_bytes;
  if (failed(shm)) return {cannot_tell("shm_too_small", "container", why_missing(shm))};
  if (!shm || *shm > k_default_shm_bytes) return {};
  Finding made = finding("shm_too_small", Severity::warning, "container");
  if (*facts.system.container == "kubernetes") made.variant = "kubernetes";
  made.args["have"] = format_bytes(*shm);
  made.args["container"] = *facts.system.container;
  made.evidence.push_back(seen(shm.source, format_bytes(*shm)));
  made.evidence.push_back(seen(facts.system.container));
  return {made};
}

}  // namespace cufit::checks
