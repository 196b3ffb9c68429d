// SPDX-License-Identifier: Apache-2.0
#include "host/machine/collect_env_parts.h"
#include "host/probe.h"

#include <set>

#include "formats/binary/elf_symbols.h"
#include "host/files/file_facts.h"
#include "host/machine/loader.h"

namespace cufit::host {
namespace {

// What `ldconfig -p` lists for cuDNN, as the files behind the links. CUDNN_LIBRARY is the tool's
// second choice.
Fact<std::vector<std::string>> cudnn_of_system(const Host& host) {
  using Paths = std::vector<std::string>;
  const std::string k_cache = "/etc/ld.so.cache";
  const LoaderSettings settings = read_loader_settings(host);
  std::set<std::string> files;
  bool listed = false;
  auto add = [&](const std::string& path) {
    std::string real = host.real_path(path).value_or(path);
    Result<FileStatus> status = host.status(real);
    if (status && status->is_regular) files.insert(formats::printable(real, 4096));
  };
  if (settings.cache) {
    for (const formats::LdCacheEntry& entry : settings.cache->entries) {
      if (!contains(entry.name, "libcudnn") && !contains(entry.path, "libcudnn")) continue;
      listed = true;
      add(std::string(entry.path));
    }
  }
  std::string given = host.variable("CUDNN_LIBRARY").value_or("");
  if (!listed && !given.empty()) add(given);
  if (files.empty()) return missing<Paths>(WhyNot::not_present, SourceKind::file, k_cache);
  return known(Paths(files.begin(), files.end()), SourceKind::file,
               listed ? k_cache : "CUDNN_LIBRARY");
}

// XNNPACK is linked into libtorch_cpu.so, which exports its functions. That they are absent proves
// nothing: a build may hide them.
Fact<bool> xnnpack_of(const Host& host, const std::string& torch) {
  const std::string path = torch + "/lib/libtorch_cpu.so";
  Result<std::unique_ptr<ByteSource>> source = host.open(path);
  if (!source) return missing_file<bool>(source.error(), path);
  Result<formats::SymbolTable> symbols = formats::SymbolTable::open(std::move(*source));
  if (!symbols)
    return missing<bool>(WhyNot::malformed, SourceKind::file, path, symbols.error().what);
  if (symbols->defines("xnn_initialize")) return known(true, SourceKind::file, path);
  return missing<bool>(WhyNot::not_supported, SourceKind::file, path, "exports no xnn_initialize");
}

// torch 1.13 to 2.x set the variable in torch.cuda._lazy_init; later ones leave it to the driver,
// whose default it is.
Fact<std::string> module_loading_of(const Host& host, const std::string& torch) {
  const std::string path = torch + "/cuda/__init__.py";
  Result<std::string> text = host.read_file(path, 4u << 20);
  if (!text) return missing_file<std::string>(text.error(), path);
  constexpr std::string_view k_set = R"(os.environ["CUDA_MODULE_LOADING"] = ")";
  size_t at = text->find(k_set);
  if (at == std::string::npos)
    return missing<std::string>(WhyNot::not_present, SourceKind::file, path);
  std::string_view value = std::string_view(*text).substr(at + k_set.size());
  return known(formats::printable(value.substr(0, value.find('"')), 64), SourceKind::file, path);
}

}  // namespace

void read_collect_env(const Host& host, facts::Facts& facts) {
  facts.collect_env.cpu = read_lscpu(host, facts.system);
  facts.collect_env.cudnn = cudnn_of_system(host);
  read_tool_versions(host, facts);
  for (facts::PythonEnv& env : facts.envs) {
    if (env.torch.path.empty()) continue;
    env.torch.xnnpack = xnnpack_of(host, env.torch.path);
    env.torch.module_loading = module_loading_of(host, env.torch.path);
  }
}

}  // namespace cufit::host
