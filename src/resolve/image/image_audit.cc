// SPDX-License-Identifier: Apache-2.0
#include "resolve/image/image_audit.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "checks/code_match.h"
#include "checks/doctor.h"
#include "checks/fact_view.h"
#include "checks/torch_env.h"
#include "resolve/image/image_require.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

constexpr uint64_t k_copies_worth = 16u << 20;  // bytes; less is not worth a line
constexpr uint64_t k_hidden_worth = 256u << 20;

// Names of CUDA's libraries up to ".so".
const std::string_view k_cuda[] = {
    "libcudart", "libcublas",    "libcublasLt", "libcudnn",        "libnccl",     "libcufft",
    "libcufftw", "libcurand",    "libcusolver", "libcusolverMg",   "libcusparse", "libcusparseLt",
    "libnvrtc",  "libnvJitLink", "libcupti",    "libnvshmem_host", "libcufile",   "libnvToolsExt"};
const std::string_view k_driver[] = {"libcuda",         "libnvidia-ml", "libnvidia-ptxjitcompiler",
                                     "libnvidia-nvvm",  "libnvcuvid",   "libnvidia-encode",
                                     "libnvidia-opencl"};

std::string stem_of(std::string_view name) {
  const size_t end = name.find(".so");
  return std::string(end == std::string_view::npos ? name : name.substr(0, end));
}

template <size_t N>
bool is_one_of(const std::string_view (&list)[N], const std::string& name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

bool is_cuda(const std::string& stem) {
  return is_one_of(k_cuda, stem) || starts_with(stem, "libcudnn_");
}

// "libcudnn.so.9", "9.5.1" of "libcudnn.so.9.5.1": the first number is the name's.
void split_name(const std::string& file, std::string& name, std::string& version) {
  const size_t so = file.find(".so.");
  name = file;
  if (so == std::string::npos) return;
  const std::string numbers = file.substr(so + 4);
  const size_t dot = numbers.find('.');
  name = file.substr(0, so + 4) + numbers.substr(0, dot);
  if (dot != std::string::npos) version = numbers;
}

// Which distribution brings site-packages/nvidia/cudnn/lib/libcudnn.so.9.
const facts::Distribution* owner_of(const facts::Facts& facts, const std::string& path) {
  const size_t at = path.find("/nvidia/");
  if (at == std::string::npos) return nullptr;
  const std::string site = path.substr(0, at);
  std::string part = path.substr(at + 8, path.find('/', at + 8) - at - 8);
  std::replace(part.begin(), part.end(), '_', '-');
  for (const facts::PythonEnv& env : facts.envs) {
    if (!env.distributions) continue;
    for (const facts::Distribution& one : *env.distributions)
      if (starts_with(one.location, site + "/") &&
          (one.name == "nvidia-" + part || starts_with(one.name, "nvidia-" + part + "-cu")))
        return &one;
  }
  return nullptr;
}

// The loader's names for a file lead through links and "..".
using Loaded = std::map<std::string, const facts::LoadedLibrary*>;
Loaded loaded_files(const facts::Facts& facts, const facts::ImageTree& tree) {
  Loaded out;
  for (const facts::PythonEnv& env : facts.envs)
    for (const facts::LoadedLibrary& one : env.loads) {
      std::string path = one.path;
      if (!path.empty() && tree.find(path) != nullptr) out.emplace(path, &one);
    }
  return out;
}

// Names that hold no version but what the ABI was called when it was made: CUDA 11.7's runtime is
// libcudart.so.11.0 as well.
bool is_abi_name(const std::string& file) {
  return ends_with(file, "/libcudart.so.11.0") || ends_with(file, "/libnvrtc.so.11.2");
}

// "11.7.99" of "nvidia-cuda-runtime-cu11 11.7.99": packages of NVIDIA's libraries have the
// library's version, others that bring a copy along (torch 2.6.0) do not.
std::string library_version(const std::string& package) {
  const size_t space = package.rfind(' ');
  if (space == std::string::npos) return {};
  for (const char* start : {"nvidia-", "cuda-", "cudnn ", "nccl ", "libcu", "libnv"})
    if (starts_with(package, start)) return package.substr(space + 1);
  return {};
}

// "9.1.0" and "9.1.0.70": one is the other, told to fewer places.
bool equal_versions(const std::string& a, const std::string& b) {
  const std::string& longer = a.size() < b.size() ? b : a;
  const std::string& shorter = a.size() < b.size() ? a : b;
  return longer == shorter || starts_with(longer, shorter + ".");
}

void name_owner(const facts::Facts& facts, const Loaded& loaded, ImageFile& file) {
  if (const auto found = loaded.find(file.path); found != loaded.end()) {
    file.package = found->second->package;
    if (file.version.empty()) file.version = found->second->version;
  } else if (const facts::Distribution* owner = owner_of(facts, file.path)) {
    file.package = owner->name + " " + owner->version;
    if (file.version.empty()) file.version = owner->version;
  }
  const std::string packaged = library_version(file.package);
  const bool abi_only = std::count(file.version.begin(), file.version.end(), '.') < 2;
  if (!packaged.empty() && abi_only) file.version = packaged;
  if (packaged.empty() && is_abi_name(file.path)) file.version.clear();
}

// Stubs are for linking; cuda-compat's copy has a place of its own.
bool is_stub_or_compat(const std::string& path) {
  return contains(path, "/stubs/") || contains(path, "/compat/") ||
         contains(path, "/compat_orin/") || contains(path, "/cuda-compat");
}

class Auditor {
 public:
  Auditor(const facts::OpenedImage& image, const facts::ImageTree& tree, const facts::Facts& facts,
          const knowledge::Knowledge& knowledge)
      : image_(image), tree_(tree), facts_(facts), knowledge_(knowledge) {}

  ImageAudit audit(std::vector<Target> targets) {
    out_.targets = std::move(targets);
    files();
    copies();
    hidden();
    torches();
    findings();
    defects();
    std::stable_sort(out_.defects.begin(), out_.defects.end(),
                     [](const ImageDefect& a, const ImageDefect& b) {
                       return rank(a.severity) < rank(b.severity);
                     });
    return std::move(out_);
  }

 private:
  static int rank(Severity severity) {
    return severity == Severity::error ? 0 : severity == Severity::warning ? 1 : 2;
  }

  void files() {
    const Loaded loaded = loaded_files(facts_, tree_);
    tree_.each_file([&](const std::string& path, const facts::ImageTree::Node& node) {
      ++out_.files;
      out_.file_bytes += node.file.size_bytes;
      const std::string file = path.substr(path.rfind('/') + 1);
      if (file.find(".so") == std::string::npos) return;
      const std::string stem = stem_of(file);
      const bool cuda = is_cuda(stem), driver = is_one_of(k_driver, stem);
      if (!cuda && !driver) return;
      if (is_stub_or_compat(path)) return;
      ImageFile one;
      one.path = path;
      one.size_bytes = node.file.size_bytes;
      one.layer = node.layer;
      split_name(file, one.name, one.version);
      if (cuda) {
        name_owner(facts_, loaded, one);
        out_.libraries.push_back(std::move(one));
      } else if (one.name != stem + ".so") {  // the name for linking is no driver
        out_.driver.push_back(std::move(one));
      }
    });
    std::stable_sort(out_.libraries.begin(), out_.libraries.end(),
                     [](const ImageFile& a, const ImageFile& b) { return a.name < b.name; });
  }

  // Where a file lies: an environment's folders, or those of the system.
  static constexpr size_t k_system = SIZE_MAX, k_elsewhere = SIZE_MAX - 1;
  size_t place_of(const std::string& path) const {
    size_t place = k_elsewhere, longest = 0;
    const auto consider = [&](size_t env, std::string folder) {
      if (folder.empty() || tree_.find(folder) == nullptr) return;
      if (!starts_with(path, folder + "/") || folder.size() <= longest) return;
      place = env;
      longest = folder.size();
    };
    for (size_t i = 0; i < facts_.envs.size(); ++i) {
      const facts::PythonEnv& env = facts_.envs[i];
      // A Python of the system has "/usr" for a folder, with all that is in it.
      if (env.kind == "venv" || env.kind == "conda") consider(i, env.path);
      for (const std::string& site : env.site_packages)
        consider(i, starts_with(site, "/") ? site : env.path + "/" + site);
    }
    if (place != k_elsewhere) return place;
    for (const char* folder : {"/usr/", "/lib/", "/lib64/", "/opt/"})
      if (starts_with(path, folder)) return k_system;
    return k_elsewhere;
  }

  static bool same_library(const ImageFile& a, const ImageFile& b) {
    if (a.name != b.name) return false;
    if (a.version.empty() || b.version.empty()) return a.size_bytes == b.size_bytes;
    return equal_versions(a.version, b.version);
  }

  void copies() {
    std::vector<bool> done(out_.libraries.size());
    for (size_t i = 0; i < out_.libraries.size(); ++i) {
      if (done[i]) continue;
      std::map<size_t, std::vector<const ImageFile*>> places;
      for (size_t k = i; k < out_.libraries.size(); ++k) {
        const ImageFile& file = out_.libraries[k];
        if (done[k] || !same_library(out_.libraries[i], file)) continue;
        done[k] = true;
        const size_t place = place_of(file.path);
        if (place != k_elsewhere) places[place].push_back(&file);
      }
      ImageCopies group{out_.libraries[i].name, {}, 0, places.count(k_system) > 0};
      if (group.in_base && places.size() == 1) continue;  // nothing of an environment
      for (const auto& [place, files] : places) {
        // An environment keeps its own file; the system's is one more beside an environment's.
        const bool none_stays = place == k_system;
        if (files.size() < 2 && !group.in_base) continue;
        uint64_t largest = 0;
        for (const ImageFile* file : files) {
          group.files.push_back(*file);
          group.extra_bytes += file->size_bytes;
          largest = std::max(largest, file->size_bytes);
        }
        if (!none_stays) group.extra_bytes -= largest;
      }
      if (group.files.size() > 1) out_.copies.push_back(std::move(group));
    }
    std::stable_sort(
        out_.copies.begin(), out_.copies.end(),
        [](const ImageCopies& a, const ImageCopies& b) { return a.extra_bytes > b.extra_bytes; });
  }

  void hidden() {
    out_.hidden = tree_.hidden();
    for (const facts::HiddenFile& file : out_.hidden) out_.hidden_bytes += file.size_bytes;
    std::stable_sort(out_.hidden.begin(), out_.hidden.end(),
                     [](const facts::HiddenFile& a, const facts::HiddenFile& b) {
                       return a.size_bytes > b.size_bytes;
                     });
  }

  void torches() {
    for (size_t i = 0; i < facts_.envs.size(); ++i) {
      const facts::PythonEnv& env = facts_.envs[i];
      if (!checks::has_torch(env)) continue;
      ImageTorch torch;
      torch.env = i;
      torch.wheel = installed_wheel(facts_, env, knowledge_);
      const facts::Binary* main = checks::torch_main_library(env);
      torch.code_known = main != nullptr && main->unreadable.empty();
      for (const Target& target : out_.targets) {
        // The C library is the image's, the rest the machine's.
        Target inside = target;
        inside.libc = facts_.system.libc.value_or("glibc");
        inside.glibc = facts_.system.glibc ? parse_version(*facts_.system.glibc) : std::nullopt;
        inside.python.clear();
        Verdict verdict = judge(torch.wheel, inside, knowledge_);
        // A choice rather than physics: torch with CUDA runs on a processor as well.
        const bool only_idle = verdict.reasons.size() == 1 && verdict.reasons[0].id == "no_gpu";
        if (only_idle) verdict = {Fit::works, {}};
        torch.by_own_compat.push_back(verdict.fit == Fit::needs_compat &&
                                      has_compat(torch.wheel, target));
        torch.verdicts.push_back(std::move(verdict));
        block(env, target, torch);
      }
      out_.torches.push_back(std::move(torch));
    }
    label_torches();
  }

  // By version where that tells them apart, else by the last part of the folder, else by all of it.
  void label_torches() {
    const auto all_differ = [&](auto text) {
      std::set<std::string> seen;
      for (const ImageTorch& torch : out_.torches) seen.insert(text(torch));
      return seen.size() == out_.torches.size();
    };
    const auto version = [](const ImageTorch& torch) { return "torch " + torch.wheel.torch; };
    const auto folder = [&](const ImageTorch& torch) { return facts_.envs[torch.env].path; };
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
    if (std::string link = dangling_python(env); !link.empty()) {
      why = {"no_python", {{"link", link}}};
    } else if (!target.gpus.empty() || !target.unknown_gpus.empty()) {
      const std::string refused = refused_by_require(image_.config.variables, target);
      if (!refused.empty())
        why = {
            "require_cuda",
            {{"variable",
              refused.size() > 90 ? refused.substr(0, refused.rfind(' ', 80)) + " ..." : refused}}};
      else if (leaves_out_compute())
        why = {"capabilities", {{"value", variable("NVIDIA_DRIVER_CAPABILITIES")}}};
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

  // A build in stages that copies an environment without its Python: "bin/python -> /usr/bin/..."
  std::string dangling_python(const facts::PythonEnv& env) const {
    if (env.interpreter || env.kind == "folder") return {};
    for (const char* name : {"/bin/python", "/bin/python3"}) {
      std::string link = env.path + name, end = link;
      const facts::ImageTree::Node* node = tree_.find(link, false);
      if (node != nullptr && node->type == formats::TarType::symlink && tree_.find(end) == nullptr)
        return link + " -> " + last_link(link, *node);
    }
    return {};
  }

  // Where a chain of links ends: bin/python -> python3 -> /usr/bin/python3.
  std::string last_link(std::string link, const facts::ImageTree::Node& first) const {
    std::string to = first.file.link;
    for (int i = 0; i < 8 && !starts_with(to, "/"); ++i) {
      link = link.substr(0, link.rfind('/') + 1) + to;
      const facts::ImageTree::Node* node = tree_.find(link, false);
      if (node == nullptr || node->type != formats::TarType::symlink) break;
      to = node->file.link;
    }
    return to;
  }

  // A cuda-compat in the image that knows torch's CUDA and may be put on the target's driver.
  bool has_compat(const Wheel& wheel, const Target& target) const {
    if (!wheel.cuda || !target.driver) return false;
    const std::string branch = std::to_string(target.driver->part(0));
    for (const facts::DriverLibrary& one : facts_.driver_libraries) {
      const std::optional<Version> cuda = parse_version(one.compat_cuda);
      if (one.origin != "compat" || !cuda || *cuda < *wheel.cuda) continue;
      for (const std::string& driver : one.compat_drivers)
        if (driver == branch) return true;
    }
    return false;
  }

  // What the engine says of the environments; what it says of a machine is not about an image.
  void findings() {
    const checks::Report report = checks::examine(facts_, knowledge_);
    for (const checks::Finding& finding : report.findings) {
      const bool about_env = starts_with(finding.subject, "env ") || contains(finding.subject, "/");
      if (!about_env || finding.severity == Severity::unknown ||
          finding.id == "torch_not_installed")
        continue;
      for (ImageTorch& torch : out_.torches)
        if (finding.severity == Severity::error && torch.broken_by == ImageTorch::npos &&
            finding.subject == "env " + facts_.envs[torch.env].path)
          torch.broken_by = out_.findings.size();
      out_.findings.push_back(finding);
    }
  }

  void defects() {
    driver_defect();
    for (const ImageTorch& torch : out_.torches)
      if (const std::string link = dangling_python(facts_.envs[torch.env]); !link.empty())
        defect("no_python", Severity::error,
               {{"path", facts_.envs[torch.env].path},
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

  std::string variable(std::string_view name) const {
    for (const auto& [key, value] : image_.config.variables)
      if (key == name) return value;
    return {};
  }

  // "cuda>=12.6 brand=tesla,driver>=535 ...": the container runtime starts nothing on a driver of
  // an older CUDA, though every minor of torch's CUDA family would do.
  void require_cuda() {
    const std::string said = variable("NVIDIA_REQUIRE_CUDA");
    const size_t at = said.find("cuda>=");
    if (at == std::string::npos || !variable("NVIDIA_DISABLE_REQUIRE").empty()) return;
    const size_t end = said.find_first_of(" ,", at);
    const std::optional<Version> wanted = parse_version(said.substr(at + 6, end - at - 6));
    if (!wanted) return;
    for (const ImageTorch& torch : out_.torches) {
      if (!torch.wheel.cuda) continue;
      const Version family{{torch.wheel.cuda->part(0), 0}};
      const std::optional<Version> floor = knowledge_.family_floor(torch.wheel.cuda->part(0));
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

  bool leaves_out_compute() const {
    const std::string said = variable("NVIDIA_DRIVER_CAPABILITIES");
    if (said.empty()) return false;
    for (const std::string_view one : split(said, ','))
      if (trim(one) == "all" || trim(one) == "compute") return false;
    return true;
  }

  void capabilities() {
    if (leaves_out_compute() && !out_.torches.empty())
      defect("capabilities", Severity::error, {{"value", variable("NVIDIA_DRIVER_CAPABILITIES")}});
  }

  const facts::OpenedImage& image_;
  const facts::ImageTree& tree_;
  const facts::Facts& facts_;
  const knowledge::Knowledge& knowledge_;
  ImageAudit out_;
};

}  // namespace

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

std::vector<size_t> ImageAudit::served_by(size_t target) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < torches.size(); ++i)
    if (torches[i].broken_by == ImageTorch::npos &&
        (usable(torches[i].verdicts[target].fit) || torches[i].by_own_compat[target]))
      out.push_back(i);
  return out;
}

bool ImageAudit::keeps_rules() const {
  return !rules.empty() && std::all_of(rules.begin(), rules.end(), [](const ImageRule& rule) {
    return rule.state == RuleState::kept || rule.state == RuleState::absent ||
           (rule.state == RuleState::broken && rule.severity == Severity::note);
  });
}

void add_rules(ImageRules rules, ImageAudit& audit) {
  audit.rules = std::move(rules.rules);
  // At the end: torches name findings by their place.
  for (checks::Finding& finding : rules.findings) audit.findings.push_back(std::move(finding));
}

bool ImageAudit::serves(size_t target) const { return !served_by(target).empty(); }

bool ImageAudit::has_defects() const {
  for (const ImageDefect& defect : defects)
    if (defect.severity != Severity::note) return true;
  for (const checks::Finding& finding : findings)
    if (finding.severity == Severity::error || finding.severity == Severity::warning) return true;
  for (size_t i = 0; i < targets.size(); ++i)
    if (!serves(i)) return true;
  return false;
}

ImageAudit audit_image(const facts::OpenedImage& image, const facts::ImageTree& tree,
                       const facts::Facts& facts, std::vector<Target> targets,
                       const knowledge::Knowledge& knowledge) {
  return Auditor(image, tree, facts, knowledge).audit(std::move(targets));
}

}  // namespace cufit::resolve
