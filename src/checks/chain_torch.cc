// SPDX-License-Identifier: Apache-2.0
// The upper links: CUDA runtime, libraries, torch, extensions.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "checks/chain_links.h"
#include "checks/evidence.h"
#include "checks/fact_view.h"

namespace cufit::checks {

namespace {

std::string torch_name(const TorchBuild& build) {
  std::string release = build.release.empty() ? "?" : build.release;
  return build.tag.empty() ? release : release + "+" + build.tag;
}

}  // namespace

// driver_floor judges; here the link only starts as ok or unknown.
std::optional<Link> cuda_runtime_link(const LinkCase& c) {
  if (c.env == nullptr || c.build.kind != "cuda") return std::nullopt;
  bool known = c.build.cuda && (c.input.driver || c.input.driver_cuda);
  Link link = make_link("cuda_runtime", known ? LinkState::ok : LinkState::unknown,
                        known ? "ok" : "unknown");
  link.args = {{"cuda", c.build.cuda ? c.build.cuda->text() : "?"},
               {"driver_cuda", c.input.driver_cuda ? c.input.driver_cuda->text() : "?"}};
  if (c.build.cuda) link.evidence.push_back(seen(c.build.source, "CUDA " + c.build.cuda->text()));
  if (c.input.driver_cuda)
    link.evidence.push_back(
        seen(c.input.driver_cuda_source, "CUDA " + c.input.driver_cuda->text()));
  return link;
}

std::optional<Link> libraries_link(const LinkCase& c) {
  if (c.env == nullptr || c.build.kind != "cuda") return std::nullopt;
  if (c.env->loads.empty()) return make_link("libraries", LinkState::unknown, "unknown");
  // The driver's own libraries lie outside of every environment by design.
  std::vector<std::string> outside, lost;
  for (const facts::LoadedLibrary& library : c.env->loads) {
    bool of_driver =
        starts_with(library.name, "libcuda.so") || starts_with(library.name, "libnvidia-");
    if (of_driver) continue;
    if (library.path.empty())
      lost.push_back(library.name);
    else if (!library.inside && !library.cuda_major.empty())
      outside.push_back(library.path);
  }
  const char* key = !lost.empty() ? "not_found" : outside.empty() ? "inside" : "outside";
  // cuda_libraries decides whether a library that is not found stops anything.
  Link link = make_link("libraries", LinkState::ok, key);
  link.args = {{"count", std::to_string(c.env->loads.size())},
               {"outside", std::to_string(outside.size())},
               {"first", outside.empty() ? "" : outside[0]},
               {"lost", join(lost, ", ")}};
  for (const std::string& path : outside)
    link.evidence.push_back({"file", path, "outside the environment"});
  return link;
}

Link torch_link(const LinkCase& c) {
  if (c.env == nullptr || !has_torch(*c.env)) {
    if (c.env != nullptr && failed(c.env->torch.version)) {
      Link closed = make_link("torch", LinkState::unknown, "not_read");
      closed.args["because"] = why_missing(c.env->torch.version);
      return closed;
    }
    bool looked = c.env != nullptr;
    return make_link("torch", looked ? LinkState::broken : LinkState::unknown,
                     looked ? "not_installed" : "no_env");
  }
  Link link = make_link("torch", LinkState::unknown, "unknown");
  link.args = {{"torch", torch_name(c.build)},
               {"build", c.build.kind},
               {"file", std::string(file_name(c.code.where))},
               {"archs", list_archs(c.code.code)},
               {"because", c.code.why_not_file}};
  auto say = [&](LinkState state, const char* message_case) {
    link.state = state;
    link.key = std::string("link.torch.") + message_case;
  };
  if (c.build.kind == "cpu" || c.build.kind == "rocm" || c.build.kind == "xpu") {
    say(LinkState::broken, "not_cuda");
    link.evidence.push_back(seen(c.build.source, c.build.kind));
    return link;
  }
  bool table = c.code.from_table;
  if (c.gpu == nullptr && !c.code.code.empty()) {
    say(LinkState::unknown,
        table ? "holds_table" : "holds");  // nothing to run it on, but this is in it
    link.evidence.push_back({table ? "table" : "file", c.code.where, link.args["archs"]});
  }
  if (c.gpu == nullptr || !c.gpu->cc) return link;
  CodeMatch match = match_code(c.code.code, *c.gpu->cc, c.input.driver_cuda, c.input.knowledge);
  link.args["cc"] = c.gpu->cc->text();
  link.args["arch"] = match.arch;
  link.args["ptx_isa"] = match.ptx_isa;
  link.args["needs_cuda"] = match.needs_cuda;
  switch (match.match) {
    case Match::cubin:
      say(LinkState::ok, table ? "cubin_table" : "cubin");
      break;
    case Match::ptx:
      say(LinkState::limited, table ? "ptx_table" : "ptx");
      break;
    case Match::ptx_too_new:
      say(LinkState::broken, "ptx_too_new");
      break;
    case Match::ptx_unknown:
      say(LinkState::unknown, "ptx_unknown");
      break;
    case Match::none:
      if (c.code.incomplete)
        say(LinkState::unknown, "damaged");
      else
        say(LinkState::broken, table ? "none_table" : "none");
      break;
    case Match::no_code:
      say(LinkState::unknown, "unreadable");
      break;
  }
  link.evidence.push_back({table ? "table" : "file", c.code.where, link.args["archs"]});
  return link;
}

std::optional<Link> extensions_link(const LinkCase& c) {
  if (c.env == nullptr || !has_torch(*c.env)) return std::nullopt;
  std::set<std::string> packages;
  for (const facts::Binary& binary : c.env->binaries) {
    bool library = starts_with(binary.package, "nvidia-") ||
                   starts_with(binary.package, "triton") || contains(binary.path, "/nvidia/") ||
                   contains(binary.path, "/triton/");
    if (!library && !is_torch_binary(*c.env, binary) && !binary.package.empty())
      packages.insert(binary.package);
  }
  if (packages.empty()) return std::nullopt;
  Link link = make_link("extensions", LinkState::ok, "ok");
  link.args = {{"count", std::to_string(packages.size())},
               {"names", join({packages.begin(), packages.end()}, ", ")}};
  return link;
}

}  // namespace cufit::checks
