// SPDX-License-Identifier: Apache-2.0
// Each torch of an image: the wheel that its files tell, and where it runs.
#include <algorithm>
#include <set>

#include "base/format.h"
#include "checks/code_match.h"
#include "checks/fact_view.h"
#include "checks/torch_env.h"
#include "resolve/image/image_audit_parts.h"
#include "resolve/image/image_require.h"

namespace cufit::resolve {
namespace {

// Where a chain of links ends: bin/python -> python3 -> /usr/bin/python3.
std::string last_link(const AuditInput& input, std::string link,
                      const facts::ImageTree::Node& first) {
  std::string to = first.file.link;
  for (int i = 0; i < 8 && !starts_with(to, "/"); ++i) {
    link = link.substr(0, link.rfind('/') + 1) + to;
    const facts::ImageTree::Node* node = input.tree.find(link, false);
    if (node == nullptr || node->type != formats::TarType::symlink) break;
    to = node->file.link;
  }
  return to;
}

class Torches {
 public:
  Torches(const AuditInput& input, ImageAudit& out) : input_(input), out_(out) {}

  void torches() {
    for (size_t i = 0; i < input_.facts.envs.size(); ++i) {
      const facts::PythonEnv& env = input_.facts.envs[i];
      if (!checks::has_torch(env)) continue;
      ImageTorch torch;
      torch.env = i;
      torch.wheel = installed_wheel(input_.facts, env, input_.knowledge);
      const facts::Binary* main = checks::torch_main_library(env);
      torch.code_known = main != nullptr && main->unreadable.empty();
      for (const Target& target : out_.targets) {
        // The C library is the image's, the rest the machine's.
        Target inside = target;
        inside.libc = input_.facts.system.libc.value_or("glibc");
        inside.glibc =
            input_.facts.system.glibc ? parse_version(*input_.facts.system.glibc) : std::nullopt;
        inside.python.clear();
        Verdict verdict = judge(torch.wheel, inside, input_.knowledge);
        // A choice rather than physics: torch with CUDA runs on a processor as well.
        const bool only_idle = verdict.reasons.size() == 1 && verdict.reasons[0].id == "no_gpu";
        if (only_idle) verdict = {Fit::works, {}};
        torch.by_own_compat.push_back(verdict.fit == Fit::needs_compat &&
                                      has_compat(torch.wheel, target));
        torch.files_alone.push_back(verdict.fit);
        torch.verdicts.push_back(std::move(verdict));
        block(env, target, torch);
      }
      out_.torches.push_back(std::move(torch));
    }
    label_torches();
  }

 private:
  // By version where that tells them apart, else by the last part of the folder, else by all of it.
  void label_torches() {
    const auto all_differ = [&](auto text) {
      std::set<std::string> seen;
      for (const ImageTorch& torch : out_.torches) seen.insert(text(torch));
      return seen.size() == out_.torches.size();
    };
    const auto version = [](const ImageTorch& torch) { return "torch " + torch.wheel.torch; };
    const auto folder = [&](const ImageTorch& torch) { return input_.facts.envs[torch.env].path; };
    const auto last_part = [&](const ImageTorch& torch) {
      const std::string path = folder(torch);
      return path.substr(path.rfind('/') + 1);
    };
    const bool by_version = all_differ(version), by_last_part = all_differ(last_part);
    for (ImageTorch& torch : out_.torches)
      torch.label = by_version ? version(torch) : by_last_part ? last_part(torch) : folder(torch);
  }

  // What stands in the way on the target though torch's own files would do.
  void block(const facts::PythonEnv& env, const Target& target, ImageTorch& torch) const {
    Reason why;
    if (std::string link = dangling_python(input_, env); !link.empty()) {
      why = {"no_python", {{"link", link}}};
    } else if (!target.gpus.empty() || !target.unknown_gpus.empty()) {
      const std::string refused = refused_by_require(input_.image.config.variables, target);
      if (!refused.empty())
        why = {
            "require_cuda",
            {{"variable",
              refused.size() > 90 ? refused.substr(0, refused.rfind(' ', 80)) + " ..." : refused}}};
      else if (leaves_out_compute(input_))
        why = {"capabilities", {{"value", image_variable(input_, "NVIDIA_DRIVER_CAPABILITIES")}}};
    }
    Verdict& verdict = torch.verdicts.back();
    if (why.id.empty() || (verdict.fit == Fit::no && why.id != "no_python")) {
      torch.blocked_by.emplace_back();
      return;
    }
    verdict.fit = Fit::no;
    verdict.reasons.insert(verdict.reasons.begin(), {"image_" + why.id, why.args});
    torch.by_own_compat.back() = false;
    torch.blocked_by.push_back(std::move(why));
  }

  // A cuda-compat in the image that knows torch's CUDA and may be put on the target's driver.
  bool has_compat(const Wheel& wheel, const Target& target) const {
    if (!wheel.cuda || !target.driver) return false;
    const std::string branch = std::to_string(target.driver->part(0));
    for (const facts::DriverLibrary& one : input_.facts.driver_libraries) {
      const std::optional<Version> cuda = parse_version(one.compat_cuda);
      if (one.origin != "compat" || !cuda || *cuda < *wheel.cuda) continue;
      for (const std::string& driver : one.compat_drivers)
        if (driver == branch) return true;
    }
    return false;
  }

  const AuditInput& input_;
  ImageAudit& out_;
};

}  // namespace

void audit_torches(const AuditInput& input, ImageAudit& out) { Torches(input, out).torches(); }

// A build in stages that copies an environment without its Python.
std::string dangling_python(const AuditInput& input, const facts::PythonEnv& env) {
  if (env.interpreter || env.kind == "folder") return {};
  for (const char* name : {"/bin/python", "/bin/python3"}) {
    std::string link = env.path + name, end = link;
    const facts::ImageTree::Node* node = input.tree.find(link, false);
    if (node != nullptr && node->type == formats::TarType::symlink &&
        input.tree.find(end) == nullptr)
      return link + " -> " + last_link(input, link, *node);
  }
  return {};
}

Wheel installed_wheel(const facts::Facts& facts, const facts::PythonEnv& env,
                      const knowledge::Knowledge& knowledge) {
  Wheel wheel;
  if (env.torch.version) wheel.torch = std::string(checks::public_version(*env.torch.version));
  wheel.tag = env.torch.variant;
  wheel.platform = "linux_" + facts.system.architecture.value_or("x86_64");
  if (env.torch.cuda) wheel.cuda = parse_version(*env.torch.cuda);
  if (wheel.cuda) wheel.driver_min = knowledge.family_floor(wheel.cuda->part(0));
  if (wheel.cuda) wheel.driver_full = knowledge.ptx_driver(*wheel.cuda);
  if (const knowledge::CudaTag* tag = knowledge.find_cuda_tag(wheel.tag)) {
    wheel.driver_min = parse_version(tag->linux_min);
    if (const auto cuda = parse_version(tag->cuda); cuda && !wheel.driver_full)
      wheel.driver_full = knowledge.ptx_driver(*cuda);
  }
  if (const facts::Binary* main = checks::torch_main_library(env)) {
    wheel.code = main->device_code;
    wheel.source = main->path;
  }
  for (const facts::Binary& binary : env.binaries) {
    if (!checks::is_torch_binary(env, binary)) continue;
    const std::optional<Version> needs = parse_version(binary.glibc);
    if (needs && (!wheel.glibc || *wheel.glibc < *needs)) wheel.glibc = needs;
  }
  return wheel;
}

std::vector<std::string> gpu_capabilities(const Wheel& wheel,
                                          const knowledge::Knowledge& knowledge) {
  std::vector<std::string> out;
  for (const std::string& text : capabilities_of(wheel, formats::CodeKind::cubin)) {
    const std::string plain = text.substr(0, text.find_first_not_of("0123456789."));
    if (std::find(out.begin(), out.end(), plain) != out.end()) continue;
    const std::optional<ComputeCapability> gpu = parse_compute_capability(plain);
    if (plain != text &&
        (!gpu || checks::match_code(wheel.code, *gpu, std::nullopt, knowledge).match !=
                     checks::Match::cubin))
      continue;
    out.push_back(plain);
  }
  return out;
}

std::vector<std::string> gpu_ptx(const Wheel& wheel) {
  std::vector<std::string> out = capabilities_of(wheel, formats::CodeKind::ptx);
  std::erase_if(out, [](const std::string& one) {
    return one.find_first_not_of("0123456789.") != std::string::npos;
  });
  return out;
}

}  // namespace cufit::resolve
