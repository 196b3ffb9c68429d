// SPDX-License-Identifier: Apache-2.0
#include "facts/collect_env_facts.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "base/version.h"
#include "formats/prose/collect_env_dump.h"

namespace cufit::facts {
namespace {

using formats::CollectEnvDump;
using formats::DumpField;
using formats::DumpPackage;

constexpr const char* k_collect_env_facts_claimed = "(claimed)";

// PEP 503: "Torch_Vision" -> "torch-vision".
std::string normalised_name(std::string_view name) {
  std::string out;
  for (char c : lower(name)) {
    bool separator = c == '-' || c == '_' || c == '.';
    if (separator && ends_with(out, "-")) continue;
    out += separator ? '-' : c;
  }
  return out;
}

std::string first_line(std::string_view text) {
  return std::string(trim(text.substr(0, text.find('\n'))));
}

bool has_digit_first(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0]));
}

class Claims {
 public:
  Claims(const CollectEnvDump& dump, const std::string& name) : dump_(dump), name_(name) {}

  Facts facts() {
    facts_.cufit_version = CUFIT_VERSION;
    facts_.origin = "dump";
    system();
    platform();
    cpu();
    tools();
    driver();
    toolkit();
    environment();
    for (const DumpField& variable : dump_.variables)
      facts_.variables.push_back({variable.name, variable.value});
    loading();
    std::sort(facts_.variables.begin(), facts_.variables.end(),
              [](const EnvVariable& a, const EnvVariable& b) { return a.name < b.name; });
    for (const formats::Damage& damage : dump_.damage) {
      facts_.problems.push_back(format("`{}`: line {}: {}", name_, damage.offset, damage.what));
    }
    return std::move(facts_);
  }

 private:
  std::string at(uint64_t line) const { return format("{}:{}", name_, line); }
  template <class T>
  Fact<T> claim(T value, uint64_t line) const {
    return known<T>(std::move(value), SourceKind::claimed, at(line));
  }
  template <class T>
  Fact<T> unsaid(const DumpField* field, WhyNot why = WhyNot::not_asked) const {
    if (!field)
      return missing<T>(WhyNot::not_asked, SourceKind::claimed, name_, "the text does not say it");
    return missing<T>(why, SourceKind::claimed, at(field->line),
                      format("the text says `{}`", first_line(field->value)));
  }
  Fact<std::string> text_of(std::string_view field_name) const {
    const DumpField* field = dump_.find(field_name);
    if (!field || formats::dump_says_nothing(field->value)) return unsaid<std::string>(field);
    return claim<std::string>(first_line(field->value), field->line);
  }

  void system() {
    SystemFacts& system = facts_.system;
    system.distribution = text_of("os");
    if (system.distribution) {
      std::string& os = *system.distribution.value;
      uint64_t line = dump_.find("os")->line;
      size_t open = os.rfind(" (");
      if (open != std::string::npos && ends_with(os, ")")) {  // "Ubuntu 22.04.3 LTS (x86_64)"
        std::string machine = os.substr(open + 2, os.size() - open - 3);
        for (const char* known : {"x86_64", "aarch64", "AMD64", "arm64", "ppc64le"}) {
          if (machine != known) continue;
          system.architecture = claim<std::string>(machine == "AMD64" ? "x86_64" : machine, line);
          os.resize(open);
        }
      }
      distribution_id(os, line);
    }
    const DumpField* libc = dump_.find("libc_version");
    if (libc && starts_with(libc->value, "glibc-")) {
      system.libc = claim<std::string>("glibc", libc->line);
      system.glibc = claim<std::string>(first_line(libc->value.substr(6)), libc->line);
    } else {
      system.libc = unsaid<std::string>(libc);
      system.glibc = unsaid<std::string>(libc);
    }
    system.container = missing<std::string>(WhyNot::not_asked, SourceKind::claimed, name_,
                                            "the text does not say it");
  }

  // "Ubuntu 22.04.3 LTS" -> "ubuntu 22.04", as ID and VERSION_ID of os-release would read.
  void distribution_id(const std::string& os, uint64_t line) {
    std::string text = lower(os);
    for (const char* id : {"ubuntu", "debian", "fedora", "rocky", "almalinux", "centos"}) {
      if (!starts_with(text, id)) continue;
      size_t digit = text.find_first_of("0123456789");
      std::string version;
      if (digit != std::string::npos) {
        size_t end = std::min(text.find_first_not_of("0123456789.", digit), text.size());
        std::vector<std::string_view> parts =
            split(std::string_view(text).substr(digit, end - digit), '.');
        version = std::string(parts[0]);
        if (id == std::string_view("ubuntu") && parts.size() > 1)
          version += "." + std::string(parts[1]);
      }
      facts_.system.distribution_id =
          claim<std::string>(std::string(trim(std::string(id) + " " + version)), line);
      return;
    }
  }

  // "Linux-5.15.0-91-generic-x86_64-with-glibc2.35"
  void platform() {
    SystemFacts& system = facts_.system;
    Fact<std::string> platform = text_of("python_platform");
    const DumpField* field = dump_.find("python_platform");
    system.kernel = unsaid<std::string>(field);
    if (!platform || !starts_with(*platform, "Linux-")) return;
    for (const char* machine : {"x86_64", "aarch64", "ppc64le"}) {
      size_t end = platform->find(std::string("-") + machine);
      if (end == std::string::npos || end < 6) continue;
      std::string kernel = platform->substr(6, end - 6);
      if (contains(lower(kernel), "microsoft")) {
        system.wsl = claim<std::string>(
            contains(kernel, "WSL2") || contains(kernel, "standard") ? "2" : "1", field->line);
      }
      system.kernel = claim<std::string>(std::move(kernel), field->line);
      if (!system.architecture) system.architecture = claim<std::string>(machine, field->line);
    }
  }

  void cpu() {
    // lscpu's labels in the languages that turned up in issues.
    for (const DumpField& field : dump_.cpu) {
      facts_.collect_env.cpu.push_back({field.name, field.value});
      for (const char* label : {"Model name", "Name", "型号名称", "Modellname", "Nom de modèle",
                                "モデル名", "Nombre del modelo"}) {
        if (field.name == label && !facts_.system.cpu_model && !field.value.empty()) {
          facts_.system.cpu_model = claim<std::string>(first_line(field.value), field.line);
        }
      }
      if ((field.name == "CPU(s)" || field.name == "CPU" || field.name == "Processeur(s)") &&
          !facts_.system.cpus && has_digit_first(field.value) && field.value.size() < 7) {
        if (auto count = parse_version(field.value))
          facts_.system.cpus = claim<uint64_t>(count->part(0), field.line);
      }
    }
  }

  void tools() {
    CollectEnvFacts& tools = facts_.collect_env;
    tools.gcc = text_of("gcc_version");
    tools.clang = text_of("clang_version");
    tools.cmake = text_of("cmake_version");
    const DumpField* cudnn = dump_.find("cudnn_version");
    std::vector<std::string> paths;
    const std::string_view text = cudnn ? std::string_view(cudnn->value) : std::string_view();
    for (std::string_view line : split_lines(text))
      if (starts_with(trim(line), "/")) paths.emplace_back(trim(line));
    tools.cudnn = paths.empty() ? unsaid<std::vector<std::string>>(cudnn)
                                : claim(std::move(paths), cudnn->line);
  }

  void driver() {
    const DumpField* version = dump_.find("nvidia_driver_version");
    if (version && has_digit_first(version->value)) {
      // nvidia-smi printed it, so NVML answered; several GPUs repeat it line by line.
      facts_.nvml.driver_version = claim<std::string>(first_line(version->value), version->line);
      facts_.nvml.init_result = claim<int>(0, version->line);
    } else {
      facts_.nvml.driver_version = unsaid<std::string>(version);
      facts_.nvml.init_result = unsaid<int>(version);
    }
    for (const formats::DumpGpu& gpu : dump_.gpus) {
      NvmlGpu out;
      out.index = gpu.index;
      out.name = claim<std::string>(gpu.name, gpu.line);
      if (!gpu.mig.empty()) {
        out.mig_current = claim<bool>(true, gpu.line);
        for (const std::string& profile : gpu.mig) out.mig_instances.push_back({profile, {}, {}});
      }
      facts_.nvml.gpus.push_back(std::move(out));
    }
    const DumpField* available = dump_.find("is_cuda_available");
    if (available && formats::dump_says_yes(available->value)) {
      facts_.cuda.init_result = claim<int>(0, available->line);
    } else {
      facts_.cuda.init_result = unsaid<int>(available);
    }
  }

  void toolkit() {
    const DumpField* runtime = dump_.find("cuda_runtime_version");
    if (!runtime || !has_digit_first(runtime->value)) return;
    Toolkit toolkit;
    toolkit.path = k_collect_env_facts_claimed;
    toolkit.version = claim<std::string>(first_line(runtime->value), runtime->line);
    toolkit.nvcc = unsaid<std::string>(nullptr);
    toolkit.nvcc_version = toolkit.version;  // the tool asks nvcc
    toolkit.found_by = "claimed";
    facts_.toolkits.push_back(std::move(toolkit));
  }

  void environment() {
    PythonEnv env;
    env.path = k_collect_env_facts_claimed;
    env.kind = "claimed";
    env.active = true;
    env.found_by = "claimed";
    Fact<std::string> python = text_of("python_version");
    if (python) {
      python.value = python->substr(
          0, python->find(' '));  // "3.12.3 (main, ...) [GCC 13.3.0] (64-bit runtime)"
    }
    env.python = std::move(python);
    env.interpreter = unsaid<std::string>(nullptr);
    torch(env);
    packages(env);
    env.installer = conda_torch_ ? "conda" : "pip";
    cudnn(env);
    facts_.envs.push_back(std::move(env));
  }

  void torch(PythonEnv& env) {
    TorchFacts& torch = env.torch;
    const DumpField* version = dump_.find("torch_version");
    if (version && has_digit_first(version->value)) {
      torch.version = claim<std::string>(first_line(version->value), version->line);
      size_t plus = torch.version->find('+');
      if (plus != std::string::npos) torch.variant = torch.version->substr(plus + 1);
    } else {
      // "N/A": the tool ran where torch could not be imported.
      torch.version = unsaid<std::string>(version);
    }
    const DumpField* cuda = dump_.find("cuda_compiled_version");
    if (cuda && has_digit_first(cuda->value)) {
      torch.cuda = claim<std::string>(first_line(cuda->value), cuda->line);
    } else {
      // The tool prints torch.version.cuda: with torch imported, "None", "Could not collect" (its
      // word for None) and "N/A" (a ROCm build) all mean that this torch was built without CUDA.
      torch.cuda = unsaid<std::string>(
          cuda, torch.version && cuda ? WhyNot::not_present : WhyNot::not_asked);
    }
    const DumpField* hip = dump_.find("hip_compiled_version");
    if (hip && has_digit_first(hip->value)) {
      torch.hip = claim<std::string>(first_line(hip->value), hip->line);
    } else {
      torch.hip =
          unsaid<std::string>(hip, torch.version && hip ? WhyNot::not_present : WhyNot::not_asked);
    }
    const DumpField* debug = dump_.find("is_debug_build");
    if (debug && (formats::dump_says_yes(debug->value) || formats::dump_says_no(debug->value))) {
      torch.debug = claim<bool>(formats::dump_says_yes(debug->value), debug->line);
    } else {
      torch.debug = unsaid<bool>(debug);
    }
    const DumpField* xnnpack = dump_.find("is_xnnpack_available");
    if (xnnpack &&
        (formats::dump_says_yes(xnnpack->value) || formats::dump_says_no(xnnpack->value))) {
      torch.xnnpack = claim<bool>(formats::dump_says_yes(xnnpack->value), xnnpack->line);
    } else {
      torch.xnnpack = unsaid<bool>(xnnpack);
    }
    const DumpField* available = dump_.find("is_cuda_available");
    if (torch.version && available && formats::dump_says_no(available->value)) {
      env.torch_run = claim<std::string>("torch.cuda.is_available() is False", available->line);
    }
  }

  void packages(PythonEnv& env) {
    std::vector<Distribution> all;
    for (const DumpPackage& package : dump_.packages) {
      Distribution out;
      bool conda = package.manager == "conda";
      out.name = normalised_name(package.name);
      if (package.name != out.name) out.display_name = package.name;
      out.version = package.version;
      out.location = at(package.line);
      out.kind = conda ? "conda-meta" : "dist-info";
      out.installer = package.manager == "pip3" ? "pip" : package.manager;
      if (conda) out.tag = package.build;
      conda_torch_ |= conda && (package.name == "pytorch" || package.name == "libtorch");
      all.push_back(std::move(out));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Distribution& a, const Distribution& b) { return a.name < b.name; });
    env.distributions = known(std::move(all), SourceKind::claimed, name_);
  }

  // The copies of cuDNN that collect_env found by ldconfig; nothing says that torch loads them.
  void cudnn(PythonEnv& env) {
    const DumpField* field = dump_.find("cudnn_version");
    if (!field) return;
    for (std::string_view line : split_lines(field->value)) {
      std::string path(trim(line));
      size_t slash = path.rfind('/');
      if (path.empty() || path[0] != '/' || slash + 1 == path.size()) continue;
      LoadedLibrary library;
      library.path = path;
      library.name = path.substr(slash + 1);
      size_t so = library.name.find(".so.");
      if (so != std::string::npos) {
        library.version = library.name.substr(so + 4);
        size_t dot = library.version.find('.');
        if (dot != std::string::npos)
          library.name.resize(so + 4 + dot);  // the soname: "libcudnn.so.9"
      }
      library.by = "claimed";
      library.asked_by = at(field->line);
      env.shadowed.push_back(std::move(library));
    }
  }

  void loading() {
    const DumpField* field = dump_.find("cuda_module_loading");
    if (!field || formats::dump_says_nothing(field->value)) return;
    for (const EnvVariable& variable : facts_.variables)
      if (variable.name == "CUDA_MODULE_LOADING") return;
    facts_.variables.push_back({"CUDA_MODULE_LOADING", first_line(field->value)});
  }

  const CollectEnvDump& dump_;
  const std::string& name_;
  Facts facts_;
  bool conda_torch_ = false;
};

}  // namespace

Result<Facts> facts_from_dump(std::string_view text, const std::string& name) {
  CollectEnvDump dump = formats::parse_collect_env_dump(text);
  if (!dump.recognised()) {
    return fail(Code::malformed,
                format("`{}`: neither a recording nor a dump of torch.utils.collect_env", name));
  }
  return facts_from_dump(dump, name);
}

Facts facts_from_dump(const CollectEnvDump& dump, const std::string& name) {
  return Claims(dump, name).facts();
}

}  // namespace cufit::facts
