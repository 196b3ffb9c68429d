// SPDX-License-Identifier: Apache-2.0
// The lower links: GPU, kernel driver, user-mode driver, container.
#include "base/format.h"
#include "checks/chain_links.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"

namespace cufit::checks {

Link make_link(const char* name, LinkState state, const char* message_case) {
  Link link;
  link.name = name;
  link.state = state;
  link.key = std::string("link.") + name + "." + message_case;
  return link;
}

namespace {

// Memory as the driver reports it; empty where the board has none of its own (GB10: "[N/A]") or
// nothing was asked.
std::string memory_of(const GpuView& gpu, std::vector<Evidence>& evidence) {
  const Fact<uint64_t>* facts[] = {gpu.nvml ? &gpu.nvml->memory_total_bytes : nullptr,
                                   gpu.cuda ? &gpu.cuda->memory_total_bytes : nullptr};
  for (const Fact<uint64_t>* fact : facts) {
    if (fact == nullptr || !*fact || **fact == 0) continue;
    std::string text = format_bytes(**fact);
    evidence.push_back(seen(fact->source, text));
    return text;
  }
  return {};
}

bool is_unified(const GpuView& gpu) {
  return gpu.cuda != nullptr && gpu.cuda->integrated.value_or(false);
}

const Fact<std::string>* driver_fact(const facts::Facts& facts) {
  if (facts.kernel.version) return &facts.kernel.version;
  return facts.nvml.driver_version ? &facts.nvml.driver_version : nullptr;
}

}  // namespace

Link gpu_link(const LinkCase& c) {
  if (c.gpu == nullptr && is_wsl(c.input.facts)) return make_link("gpu", LinkState::unknown, "wsl");
  if (c.gpu == nullptr) {
    bool looked = c.input.facts.pci.value.has_value();
    Link link = make_link("gpu", looked ? LinkState::broken : LinkState::unknown,
                          looked ? "none" : "not_seen");
    if (!looked) link.args["because"] = why_missing(c.input.facts.pci);
    return link;
  }
  const GpuView& gpu = *c.gpu;
  if (!gpu.cc) {
    Link link = make_link("gpu", LinkState::unknown, "no_capability");
    link.args["name"] = gpu.name;
    return link;
  }
  std::vector<Evidence> evidence;
  std::string memory = memory_of(gpu, evidence);
  const char* key = is_unified(gpu) ? "unified" : memory.empty() ? "plain" : "ok";
  Link link = make_link("gpu", LinkState::ok, key);
  link.args = {{"name", gpu.name}, {"cc", gpu.cc->text()}, {"memory", memory}};
  link.evidence.push_back(seen(gpu.cc_source, gpu.cc->text()));
  link.evidence.insert(link.evidence.end(), evidence.begin(), evidence.end());
  return link;
}

Link kernel_driver_link(const LinkCase& c) {
  const facts::Facts& facts = c.input.facts;
  if (const Fact<std::string>* version = driver_fact(facts)) {
    bool wsl = is_wsl(facts) && !facts.kernel.version;
    const char* key = wsl                                           ? "wsl"
                      : version->source.kind == SourceKind::assumed ? "assumed"
                      : version->source.kind == SourceKind::claimed ? "claimed"
                      : facts.kernel.flavour                        ? "loaded_flavour"
                                                                    : "loaded";
    Link link = make_link("kernel_driver", LinkState::ok, key);
    link.args = {{"version", **version}, {"flavour", facts.kernel.flavour.value_or("")}};
    link.evidence.push_back(seen(*version));
    return link;
  }
  if (is_jetson(facts) && facts.cuda.init_result && *facts.cuda.init_result == 0)
    return make_link("kernel_driver", LinkState::ok, "jetson");
  // CUDA may have answered although no file says which module is loaded (a locked-down container).
  if (facts.cuda.init_result && *facts.cuda.init_result == 0)
    return make_link("kernel_driver", LinkState::ok, "answers");
  // WSL loads no module: Windows drives the GPU.
  if (is_wsl(facts)) return make_link("kernel_driver", LinkState::unknown, "wsl_unseen");
  bool absent = facts.kernel.version.why == WhyNot::not_present;
  Link link = make_link("kernel_driver", absent ? LinkState::broken : LinkState::unknown,
                        absent ? "none" : "unknown");
  link.args["because"] = why_missing(facts.kernel.version);
  return link;
}

Link user_driver_link(const LinkCase& c) {
  const facts::Facts& facts = c.input.facts;
  const facts::DriverLibrary* library = loaded_driver_library(facts, "libcuda.so.1");
  std::string path = facts.cuda.library   ? *facts.cuda.library
                     : library != nullptr ? library->path
                                          : "libcuda.so.1";
  std::string cuda = c.input.driver_cuda ? c.input.driver_cuda->text() : "";
  const char* key = "unknown";
  LinkState state = LinkState::unknown;
  std::vector<Evidence> evidence;
  if (facts.cuda.init_result && *facts.cuda.init_result == 0 &&
      facts.cuda.init_result.source.kind == SourceKind::claimed) {
    key = "claimed";  // the text says that CUDA is available and lists no devices of its own
    state = LinkState::ok;
    evidence.push_back(seen(facts.cuda.init_result));
  } else if (facts.cuda.init_result && *facts.cuda.init_result == 0) {
    bool listed = c.gpu != nullptr && c.gpu->cuda != nullptr;
    bool ran = listed && c.gpu->cuda->compute_check && *c.gpu->cuda->compute_check == "ok";
    key = ran ? "computes" : listed || c.gpu == nullptr ? "answers" : "hidden";
    state = listed ? LinkState::ok : LinkState::limited;
    evidence.push_back(seen(facts.cuda.init_result));
    if (ran) evidence.push_back(seen(c.gpu->cuda->compute_check));
  } else if (facts.cuda.init_result) {
    key = "fails";
    state = LinkState::broken;
    evidence.push_back(seen(facts.cuda.init_result));
  } else if (c.input.driver_cuda && (c.input.what_if || facts.origin == "dump")) {
    key = "by_branch";  // nobody asked a driver that is only described; its branch says what it
                        // speaks
    state = LinkState::ok;
  } else if (library != nullptr) {
    key = "not_asked";
  } else if (c.gpu == nullptr && absent(facts.cuda.init_result) && !is_wsl(facts)) {
    key = "no_gpu";  // no driver is missed where there is nothing to drive
  }
  Link link = make_link("user_driver", state, key);
  link.args = {{"path", path}, {"cuda", cuda}, {"because", why_missing(facts.cuda.init_result)}};
  const knowledge::CodeRow* row =
      facts.cuda.init_result ? c.input.knowledge.find_cuda_code(*facts.cuda.init_result) : nullptr;
  link.args["code"] = facts.cuda.init_result
                          ? std::to_string(*facts.cuda.init_result) +
                                (row != nullptr ? " " + std::string(row->name) : "")
                          : "";
  link.evidence = std::move(evidence);
  if (c.input.driver_cuda)
    link.evidence.push_back(seen(c.input.driver_cuda_source, "CUDA " + cuda));
  return link;
}

std::optional<Link> container_link(const LinkCase& c) {
  const facts::Facts& facts = c.input.facts;
  if (!in_container(facts)) return std::nullopt;
  Link link = make_link("container", LinkState::ok, "inside");
  link.args["kind"] = *facts.system.container;
  link.evidence.push_back(seen(facts.system.container));
  return link;
}

}  // namespace cufit::checks
