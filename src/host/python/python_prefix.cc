// SPDX-License-Identifier: Apache-2.0
#include "host/python/python_prefix.h"

#include <algorithm>

#include "base/format.h"
#include "base/version.h"
#include "formats/python/conda_meta.h"
#include "formats/python/python_metadata.h"

namespace cufit::host {
namespace {

std::string parent(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string under(const std::string& folder, const std::string& name) {
  return folder == "/" ? "/" + name : folder + "/" + name;
}

bool is_host_folder(const Host& host, const std::string& path) {
  auto status = host.status(path);
  return status && status->is_directory;
}

// "python3.12" folders of a lib folder, newest first.
std::vector<std::string> python_folders(const Host& host, const std::string& lib) {
  std::vector<std::string> out;
  for (std::string& name : host.list(lib).value_or(std::vector<std::string>()))
    if (starts_with(name, "python3.") && parse_version(name.substr(6)))
      out.push_back(std::move(name));
  std::sort(out.begin(), out.end(), [](const std::string& a, const std::string& b) {
    return *parse_version(b.substr(6)) < *parse_version(a.substr(6));
  });
  return out;
}

// A folder with the standard library: a Python installation and not merely a place for packages.
std::optional<std::string> stdlib_folder(const Host& host, const std::string& prefix) {
  for (const char* lib : {"lib", "lib64"})
    for (const std::string& name : python_folders(host, under(prefix, lib)))
      if (host.exists(under(prefix, lib) + "/" + name + "/os.py")) return name;
  return std::nullopt;
}

std::string value_of(const std::vector<std::pair<std::string, std::string>>& config,
                     std::string_view key) {
  for (const auto& [name, value] : config)
    if (name == key) return value;
  return {};
}

using Config = std::vector<std::pair<std::string, std::string>>;

std::optional<Config> read_pyvenv(const Host& host, const std::string& prefix) {
  auto text = host.read_file(under(prefix, "pyvenv.cfg"), 1u << 20);
  if (!text) return std::nullopt;
  return formats::parse_pyvenv_cfg(*text);
}

constexpr size_t k_most_found = 16;       // environments in one report
constexpr size_t k_most_looked_at = 200;  // folders of one place
constexpr int k_most_levels = 5;          // folders above the current one

class Finder {
 public:
  Finder(const Host& host, const PythonSearch& search, std::vector<std::string>& problems)
      : host_(host), search_(search), problems_(problems) {}

  std::vector<PythonPrefix> given(const std::vector<std::string>& dirs) {
    for (const std::string& dir : dirs) {
      size_t before = found_.size();
      if (!is_host_folder(host_, dir)) {
        problems_.push_back(format("`{}`: no such folder", dir));
        continue;
      }
      const bool added = add_folder(dir, "--env");
      // ~/miniconda3 stands for its environments as well.
      if (is_host_folder(host_, under(dir, "envs")))
        add_each_with_torch(under(dir, "envs"), "--env");
      if (!added && found_.size() == before) {
        problems_.push_back(
            format("`{}`: neither a Python environment nor a folder of packages", dir));
      }
    }
    if (!found_.empty()) found_.front().active = true;
    return std::move(found_);
  }

  std::vector<PythonPrefix> search() {
    for (const char* name : {"python", "python3"})
      if (auto prefix = prefix_on_path(name)) add(*prefix, "PATH");
    if (!found_.empty()) found_.front().active = true;
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
      if (auto dir = host_.variable(name); dir && !dir->empty()) add(*dir, name);
    if (!found_.empty()) found_.front().active = true;
    for (const char* dir : {"./.venv", "/opt/venv", "/opt/conda", "/usr/local", "/usr"})
      add(dir, "default");
    if (search_.everywhere) search_everywhere();
    return std::move(found_);
  }

 private:
  // --env may name a prefix, a project with .venv inside, or a site-packages folder.
  bool add_folder(const std::string& dir, const char* found_by) {
    if (add(dir, found_by)) return true;
    for (const char* inner : {".venv", "venv", "env"})
      if (add(under(dir, inner), found_by)) return true;
    if (!holds_packages(dir)) return false;
    // lib/python3.12/site-packages of an environment stands for that environment.
    std::string above = parent(parent(parent(host_.real_path(dir).value_or(dir))));
    if (starts_with(dir.substr(dir.rfind('/') + 1), "site-packages") && add(above, found_by))
      return true;
    PythonPrefix prefix;
    prefix.path = dir;
    prefix.real_path = host_.real_path(dir).value_or(dir);
    prefix.kind = "folder";
    prefix.found_by = found_by;
    prefix.installer = "pip";
    prefix.python = missing<std::string>(WhyNot::not_present, SourceKind::file, dir,
                                         "a folder of packages without a Python");
    prefix.interpreter = missing<std::string>(WhyNot::not_present, SourceKind::file, dir);
    prefix.site_packages = {dir};
    push(std::move(prefix));
    return true;
  }

  bool has_torch(const PythonPrefix& prefix) const {
    return std::any_of(
        prefix.site_packages.begin(), prefix.site_packages.end(),
        [&](const std::string& site) { return host_.exists(site + "/torch/__init__.py"); });
  }

  // An environment that is only somewhere is worth a line where it has torch.
  void add_with_torch(const std::string& dir, const char* found_by) {
    const size_t before = found_.size();
    if (found_.size() >= k_most_found || !add(dir, found_by) || found_.size() == before) return;
    if (!has_torch(found_.back())) found_.pop_back();
  }

  void add_each_with_torch(const std::string& folder, const char* found_by) {
    size_t looked_at = 0;
    for (const std::string& name : host_.list(folder).value_or(std::vector<std::string>()))
      if (!starts_with(name, ".") && ++looked_at <= k_most_looked_at)
        add_with_torch(under(folder, name), found_by);
  }

  std::string variable_or(const char* name, const std::string& fallback) const {
    const auto value = host_.variable(name);
    return value && !value->empty() ? *value : fallback;
  }

  // Where the tools keep the environments that they make, by their own documentation.
  void search_everywhere() {
    for (const char* dir : {"./venv", "./env", "./python_embeded"}) add(dir, "default");
    search_project();
    search_beside();
    const std::string home = variable_or("HOME", "");
    if (home.empty()) return;
    const std::string data = variable_or("XDG_DATA_HOME", home + "/.local/share");
    const std::string cache = variable_or("XDG_CACHE_HOME", home + "/.cache");
    add_each_with_torch(variable_or("WORKON_HOME", home + "/.virtualenvs"), "default");
    const std::string listed =
        host_.read_file(home + "/.conda/environments.txt", 1u << 20).value_or("");
    for (std::string_view line : split_lines(listed))
      if (line = trim(line); starts_with(line, "/")) add_with_torch(std::string(line), "default");
    for (const std::string& root :
         {home + "/miniconda3", home + "/anaconda3", home + "/miniforge3", home + "/mambaforge",
          variable_or("MAMBA_ROOT_PREFIX", home + "/micromamba"), data + "/mamba",
          std::string("/opt/conda"), std::string("/opt/miniconda3")}) {
      add_with_torch(root, "default");
      add_each_with_torch(root + "/envs", "default");
    }
    add_each_with_torch(variable_or("POETRY_CACHE_DIR", cache + "/pypoetry") + "/virtualenvs",
                        "default");
    add_each_with_torch(variable_or("UV_CACHE_DIR", cache + "/uv") + "/environments-v2", "default");
    add_each_with_torch(variable_or("UV_TOOL_DIR", data + "/uv/tools"), "default");
    add_each_with_torch(variable_or("PIPX_HOME", data + "/pipx") + "/venvs", "default");
    add_each_with_torch(data + "/virtualenvs", "default");  // pipenv
    add_each_with_torch(variable_or("PYENV_ROOT", home + "/.pyenv") + "/versions", "default");
  }

  // A project's environments lie in its folder; the shell may stand below that.
  void search_project() {
    std::string up = ".";
    for (int depth = 0; depth < k_most_levels && host_.exists(up); ++depth, up += "/..") {
      const auto real = host_.real_path(up);
      if (!real || *real == "/" || *real == host_.variable("HOME").value_or("")) return;
      const std::string folder = depth == 0 ? "." : *real;
      for (const char* envs : {"/.pixi/envs", "/.cufit/envs"}) {
        const size_t before = found_.size();
        add_each_with_torch(folder + envs, "default");
        // One without torch is still the project's own; more than that are not worth a line.
        if (found_.size() == before) add(folder + envs + "/default", "default");
      }
      for (const char* inner : {"/.venv", "/venv"})
        if (depth > 0) add_with_torch(folder + inner, "default");
      if (host_.exists(folder + "/.git")) return;
    }
  }

  // Programs that people unpack beside their work bring an environment of their own.
  void search_beside() {
    for (const char* folder : {".", ".."}) {
      size_t looked_at = 0;
      for (const std::string& name : host_.list(folder).value_or(std::vector<std::string>())) {
        const std::string small = lower(name);
        bool known = false;
        for (const char* program :
             {"comfyui", "webui", "stable-diffusion", "invokeai", "swarmui", "kohya", "fooocus"})
          known = known || contains(small, program);
        if (!known || ++looked_at > k_most_looked_at) continue;
        for (const char* inner : {"venv", ".venv", "python_embeded"})
          add_with_torch(std::string(folder) + "/" + name + "/" + inner, "default");
      }
    }
  }

  bool holds_packages(const std::string& dir) const {
    for (const std::string& name : host_.list(dir).value_or(std::vector<std::string>()))
      if (formats::parse_metadata_folder(name) || name == "torch") return true;
    return false;
  }

  // False when `dir` is no Python prefix; true also when it is known already.
  bool add(const std::string& dir, const char* found_by) {
    std::optional<Config> config = read_pyvenv(host_, dir);
    bool conda = is_host_folder(host_, under(dir, "conda-meta"));
    std::optional<std::string> stdlib = stdlib_folder(host_, dir);
    if (!config && !conda && !stdlib) return false;
    PythonPrefix prefix;
    prefix.path = dir;
    prefix.real_path = host_.real_path(dir).value_or(dir);
    prefix.found_by = found_by;
    if (config) {
      prefix.kind = "venv";
      read_venv(*config, prefix);
    } else {
      prefix.kind = conda ? "conda" : in_image() ? "image" : "system";
      prefix.installer =
          conda ? (contains(prefix.real_path, "/.pixi/envs/") ? "pixi" : "conda") : "pip";
      read_version(prefix, stdlib.value_or(""), conda);
      find_interpreter(prefix);
      std::string minor = prefix.minor_version();
      add_user_site(minor, prefix.site_packages);
      add_site_folders(dir, minor, prefix.site_packages);
    }
    finish_path(prefix);
    push(std::move(prefix));
    return true;
  }

  void push(PythonPrefix prefix) {
    for (const PythonPrefix& known : found_)
      if (known.real_path == prefix.real_path) return;
    found_.push_back(std::move(prefix));
  }

  void read_venv(const Config& config, PythonPrefix& prefix) {
    bool uv = !value_of(config, "uv").empty();
    prefix.installer = uv                                                     ? "uv"
                       : contains(prefix.real_path, "/pypoetry/virtualenvs/") ? "poetry"
                                                                              : "pip";
    std::string text =
        value_of(config, "version_info");  // virtualenv and uv; venv writes "version"
    if (text.empty()) text = value_of(config, "version");
    std::string file = under(prefix.path, "pyvenv.cfg");
    std::vector<std::string> folders = python_folders(host_, under(prefix.path, "lib"));
    std::string minor = folders.empty() ? std::string() : folders.front().substr(6);
    auto version = parse_version(text);
    if (version && version->parts.size() > 3) version->parts.resize(3);
    std::string config_minor =
        version ? format("{}.{}", version->part(0), version->part(1)) : std::string();
    bool has_folder =
        std::find(folders.begin(), folders.end(), "python" + config_minor) != folders.end();
    if (version && (folders.empty() || has_folder)) {
      prefix.python = known(version->text(), SourceKind::file, file);
      minor = config_minor;
    } else if (!minor.empty()) {
      prefix.python = known(minor, SourceKind::file, under(prefix.path, "lib/python" + minor));
    } else {
      prefix.python =
          missing<std::string>(WhyNot::not_present, SourceKind::file, file, "no version in it");
    }
    find_interpreter(prefix);
    read_base(value_of(config, "home"), minor, prefix);
    bool with_system = lower(value_of(config, "include-system-site-packages")) == "true";
    if (with_system) add_user_site(minor, prefix.site_packages);
    add_site_folders(prefix.path, minor, prefix.site_packages);
    std::string home = value_of(config, "home");
    if (with_system && !home.empty()) add_site_folders(parent(home), minor, prefix.site_packages);
  }

  void read_version(PythonPrefix& prefix, const std::string& stdlib, bool conda) {
    if (conda) {
      for (const std::string& name :
           host_.list(under(prefix.path, "conda-meta")).value_or(std::vector<std::string>())) {
        if (!starts_with(name, "python-3")) continue;
        auto parsed = formats::parse_conda_file_name(name);
        if (!parsed || parsed->name != "python") continue;
        prefix.python =
            known(parsed->version, SourceKind::file, under(prefix.path, "conda-meta/" + name));
        return;
      }
    }
    if (stdlib.empty()) {
      prefix.python = missing<std::string>(WhyNot::not_present, SourceKind::file,
                                           under(prefix.path, "lib/python3.*"));
      return;
    }
    std::string header = under(prefix.path, "include/" + stdlib + "/patchlevel.h");
    auto text = host_.read_file(header, 1u << 20);
    size_t at = text ? text->find("PY_VERSION ") : std::string::npos;
    size_t quote = at == std::string::npos ? at : text->find('"', at);
    if (quote != std::string::npos) {
      auto version = parse_version(std::string_view(*text).substr(quote + 1, 32));
      if (version) {
        prefix.python = known(version->text(), SourceKind::file, header);
        return;
      }
    }
    prefix.python = known(stdlib.substr(6), SourceKind::file, under(prefix.path, "lib/" + stdlib));
  }

  void find_interpreter(PythonPrefix& prefix) const {
    std::string minor = prefix.minor_version();
    for (const std::string& name :
         {"python" + minor, std::string("python3"), std::string("python")}) {
      std::string path = under(prefix.path, "bin/" + name);
      if (!host_.exists(path)) continue;
      prefix.interpreter = known(path, SourceKind::file, path);
      return;
    }
    prefix.interpreter = missing<std::string>(WhyNot::not_present, SourceKind::file,
                                              under(prefix.path, "bin/python3"),
                                              "no interpreter, or a link to one that is gone");
  }

  // What the interpreter of a venv leads to. Of a copied one the base is the folder of its library.
  void read_base(const std::string& home, const std::string& minor, PythonPrefix& prefix) const {
    for (const std::string& name :
         {std::string("python3"), std::string("python"), "python" + minor}) {
      const std::string path = under(prefix.path, "bin/" + name);
      auto link = host_.read_link(path);
      if (!link) continue;
      if (auto real = host_.real_path(path)) {
        prefix.base = known(std::move(*real), SourceKind::file, path);
        return;
      }
      std::string target = path;
      for (int hops = 0; hops < 8 && link; ++hops) {
        target = starts_with(*link, "/") ? *link : under(parent(target), *link);
        link = host_.read_link(target);
      }
      prefix.base = missing<std::string>(WhyNot::not_present, SourceKind::file, path, target);
      return;
    }
    const std::string library = parent(home) + "/lib/python" + minor + "/os.py";
    if (!prefix.interpreter || home.empty() || minor.empty() || host_.exists(library)) return;
    prefix.base = missing<std::string>(WhyNot::not_present, SourceKind::file,
                                       under(prefix.path, "pyvenv.cfg"), home + "/python" + minor);
  }

  // site.getsitepackages(), with Debian's additions for its own Python.
  void add_site_folders(const std::string& prefix, const std::string& minor,
                        std::vector<std::string>& out) const {
    std::vector<std::string> candidates;
    if (prefix == "/usr") {
      candidates = {"/usr/local/lib/python" + minor + "/dist-packages",
                    "/usr/lib/python3/dist-packages", "/usr/lib/python" + minor + "/dist-packages",
                    "/usr/local/lib64/python" + minor + "/site-packages",
                    "/usr/local/lib/python" + minor + "/site-packages"};
      // A Python of its own in /usr/local does not share its site-packages with that of /usr.
      if (host_.exists("/usr/local/lib/python" + minor + "/os.py")) candidates.resize(3);
    }
    for (const char* lib : {"lib", "lib64"})
      candidates.push_back(under(prefix, lib) + ("/python" + minor + "/site-packages"));
    for (std::string& path : candidates) add_site(path, out);
  }

  void add_user_site(const std::string& minor, std::vector<std::string>& out) const {
    if (minor.empty() || !search_.user_site) return;
    if (auto off = host_.variable("PYTHONNOUSERSITE"); off && !off->empty()) return;
    auto base = host_.variable("PYTHONUSERBASE");
    if (!base || base->empty()) {
      auto home = host_.variable("HOME");
      if (!home || home->empty()) return;
      base = *home + "/.local";
    }
    add_site(*base + "/lib/python" + minor + "/site-packages", out);
  }

  void add_site(const std::string& path, std::vector<std::string>& out) const {
    if (!is_host_folder(host_, path)) return;
    std::string real = host_.real_path(path).value_or(path);
    for (const std::string& known_path : out)
      if (host_.real_path(known_path).value_or(known_path) == real) return;
    out.push_back(path);
  }

  // PYTHONPATH goes in front, the folders of .pth files behind.
  void finish_path(PythonPrefix& prefix) const {
    std::vector<std::string> all;
    if (auto path = host_.variable("PYTHONPATH"))
      for (std::string_view dir : split(*path, ':'))
        if (!dir.empty()) add_site(std::string(dir), all);
    for (const std::string& dir : prefix.site_packages) add_site(dir, all);
    for (const std::string& dir : prefix.site_packages) {
      for (const std::string& name : host_.list(dir).value_or(std::vector<std::string>())) {
        if (!ends_with(name, ".pth") || starts_with(name, ".")) continue;
        auto text = host_.read_file(dir + "/" + name, 1u << 20);
        if (!text) continue;
        for (const std::string& folder : formats::parse_pth(*text).folders)
          add_site(starts_with(folder, "/") ? folder : dir + "/" + folder, all);
      }
    }
    prefix.site_packages = std::move(all);
  }

  bool in_image() const {
    if (search_.in_image) return *search_.in_image;
    return host_.exists("/.dockerenv") || host_.exists("/run/.containerenv") ||
           host_.exists("/.singularity.d");
  }

  std::optional<std::string> prefix_on_path(const std::string& name) const {
    auto path = host_.variable("PATH");
    if (!path) return std::nullopt;
    for (std::string_view dir : split(*path, ':')) {
      if (dir.empty()) continue;
      std::string file = under(std::string(dir), name);
      auto status = host_.status(file);
      if (!status || status->is_directory || !(status->mode & 0111)) continue;
      if (ends_with(dir, "/shims")) {
        if (auto prefix = pyenv_prefix(parent(std::string(dir)))) return prefix;
        continue;  // pyenv's "system": the next one on PATH
      }
      if (host_.exists(under(parent(std::string(dir)), "pyvenv.cfg")))
        return parent(std::string(dir));
      std::string real = host_.real_path(file).value_or(file);
      return parent(parent(real));
    }
    return std::nullopt;
  }

  std::optional<std::string> pyenv_prefix(const std::string& root) const {
    std::string wanted = host_.variable("PYENV_VERSION").value_or("");
    for (const std::string& file : {std::string("./.python-version"), root + "/version"}) {
      if (!wanted.empty()) break;
      wanted = std::string(trim(host_.read_file(file, 4096).value_or("")));
    }
    wanted = wanted.substr(0, wanted.find_first_of(":\n \t"));
    if (wanted.empty() || wanted == "system") return std::nullopt;
    std::string exact = root + "/versions/" + wanted;
    if (is_host_folder(host_, exact)) return exact;
    std::optional<std::string> best;  // "3.12" means the newest 3.12.x
    for (const std::string& name :
         host_.list(root + "/versions").value_or(std::vector<std::string>())) {
      if (!starts_with(name, wanted + ".") || !parse_version(name)) continue;
      if (!best || *parse_version(*best) < *parse_version(name)) best = name;
    }
    if (!best) return std::nullopt;
    return root + "/versions/" + *best;
  }

  const Host& host_;
  const PythonSearch& search_;
  std::vector<std::string>& problems_;
  std::vector<PythonPrefix> found_;
};

}  // namespace

std::string PythonPrefix::minor_version() const {
  auto version = python ? parse_version(*python) : std::nullopt;
  return version ? format("{}.{}", version->part(0), version->part(1)) : std::string();
}

std::vector<PythonPrefix> find_python_prefixes(const Host& host, const PythonSearch& search,
                                               std::vector<std::string>& problems) {
  Finder finder(host, search, problems);
  return search.env_dirs.empty() ? finder.search() : finder.given(search.env_dirs);
}

}  // namespace cufit::host
