// SPDX-License-Identifier: Apache-2.0
// What is wrong with an image besides its environments.
#include <algorithm>

#include "base/format.h"
#include "checks/fact_view.h"
#include "resolve/image/image_audit_parts.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

constexpr uint64_t k_copies_worth = 16u << 20;  // bytes; less is not worth a line
constexpr uint64_t k_hidden_worth = 256u << 20;

int rank(Severity severity) {
  return severity == Severity::error ? 0 : severity == Severity::warning ? 1 : 2;
}

class Defects {
 public:
  Defects(const AuditInput& input, ImageAudit& out) : input_(input), out_(out) {}

  void defects() {
    driver_defect();
    for (const ImageTorch& torch : out_.torches)
      if (const std::string link = dangling_python(input_, input_.facts.envs[torch.env]);
          !link.empty())
        defect("no_python", Severity::error,
               {{"path", input_.facts.envs[torch.env].path},
                {"link", link},
                {"python", link.substr(link.find(" -> ") + 4)}});
    if (!out_.driver.empty() && out_.torches.empty()) return;
    if (out_.torches.size() > 1)
      defect("two_torch", Severity::note, {{"count", std::to_string(out_.torches.size())}});
    require_cuda();
    capabilities();
    copies_defect("copies", true);
    copies_defect("copies_inside", false);
    if (out_.hidden_bytes >= k_hidden_worth)
      defect("hidden", Severity::note, {{"bytes", format_bytes(out_.hidden_bytes)}});
  }

 private:
  void copies_defect(const char* id, bool in_base) {
    uint64_t extra = 0;
    size_t count = 0;
    for (const ImageCopies& group : out_.copies) {
      if (group.in_base != in_base) continue;
      extra += group.extra_bytes;
      ++count;
    }
    if (extra >= k_copies_worth)
      defect(id, Severity::note,
             {{"count", std::to_string(count)}, {"bytes", format_bytes(extra)}});
  }

  void defect(std::string id, Severity severity, std::map<std::string, std::string> args) {
    out_.defects.push_back({std::move(id), severity, std::move(args)});
  }

  // Files of a driver hide those that the container runtime brings from the host; empty ones are
  // what `docker commit` keeps of such a container, and the runtime trips over them.
  void driver_defect() {
    std::vector<std::string> real, empty;
    for (const ImageFile& file : out_.driver)
      (file.size_bytes == 0 ? empty : real).push_back(file.path);
    if (!real.empty())
      defect("driver_copied", Severity::error, {{"files", checks::short_list(real, 3)}});
    if (!empty.empty())
      defect("driver_empty", Severity::warning, {{"files", checks::short_list(empty, 3)}});
  }

  // "cuda>=12.6 brand=tesla,driver>=535 ...": the container runtime starts nothing on a driver of
  // an older CUDA, though every minor of torch's CUDA family would do.
  void require_cuda() {
    const std::string said = image_variable(input_, "NVIDIA_REQUIRE_CUDA");
    const size_t at = said.find("cuda>=");
    if (at == std::string::npos || !image_variable(input_, "NVIDIA_DISABLE_REQUIRE").empty())
      return;
    const size_t end = said.find_first_of(" ,", at);
    const std::optional<Version> wanted = parse_version(said.substr(at + 6, end - at - 6));
    if (!wanted) return;
    for (const ImageTorch& torch : out_.torches) {
      if (!torch.wheel.cuda) continue;
      const Version family{{torch.wheel.cuda->part(0), 0}};
      const std::optional<Version> floor = input_.knowledge.family_floor(torch.wheel.cuda->part(0));
      if (!floor || !(family < *wanted)) continue;
      defect("require_cuda", Severity::warning,
             {{"wanted", wanted->text()},
              {"torch", torch.wheel.torch},
              {"cuda", torch.wheel.cuda->text()},
              {"relaxed", "cuda>=" + family.text()},
              {"floor", driver_text(*floor)}});
      return;
    }
  }

  void capabilities() {
    if (leaves_out_compute(input_) && !out_.torches.empty())
      defect("capabilities", Severity::error,
             {{"value", image_variable(input_, "NVIDIA_DRIVER_CAPABILITIES")}});
  }

  const AuditInput& input_;
  ImageAudit& out_;
};

}  // namespace

std::string image_variable(const AuditInput& input, std::string_view name) {
  for (const auto& [key, value] : input.image.config.variables)
    if (key == name) return value;
  return {};
}

bool leaves_out_compute(const AuditInput& input) {
  const std::string said = image_variable(input, "NVIDIA_DRIVER_CAPABILITIES");
  if (said.empty()) return false;
  for (const std::string_view one : split(said, ','))
    if (trim(one) == "all" || trim(one) == "compute") return false;
  return true;
}

void audit_defects(const AuditInput& input, ImageAudit& out) {
  Defects(input, out).defects();
  std::stable_sort(out.defects.begin(), out.defects.end(),
                   [](const ImageDefect& a, const ImageDefect& b) {
                     return rank(a.severity) < rank(b.severity);
                   });
}

}  // namespace cufit::resolve
