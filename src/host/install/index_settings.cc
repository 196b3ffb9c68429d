// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"
#include "host/install/index_client.h"

namespace cufit::host {
namespace {

using formats::IndexUrl;

constexpr size_t k_most_config_bytes = 4u << 20;

std::string variable(const Host& host, const char* name) {
  return host.variable(name).value_or("");
}

bool has_default(const std::vector<IndexUrl>& indexes) {
  for (const IndexUrl& index : indexes)
    if (index.is_default) return true;
  return false;
}

// The first default wins; further ones of weaker sources are left out.
void append(std::vector<IndexUrl>& to, const std::vector<IndexUrl>& from) {
  for (const IndexUrl& index : from)
    if (!index.is_default || !has_default(to)) to.push_back(index);
}

void from_words(const Host& host, const char* name, bool is_default, std::vector<IndexUrl>& out) {
  std::vector<IndexUrl> found;
  const std::string words = variable(host, name);
  for (const std::string_view word : split(words, ' ')) {
    if (trim(word).empty()) continue;
    IndexUrl index = formats::parse_index_word(trim(word), name);
    index.is_default = is_default;
    found.push_back(std::move(index));
  }
  append(out, found);
}

class UvFiles {
 public:
  UvFiles(const Host& host, IndexSettings& out) : host_(host), out_(out) {}

  void read(const std::string& folder) {
    if (!variable(host_, "UV_NO_CONFIG").empty()) return;
    if (const std::string only = variable(host_, "UV_CONFIG_FILE"); !only.empty()) {
      take(only, false);
      return;
    }
    project(folder);
    const std::string home = variable(host_, "HOME");
    std::string config = variable(host_, "XDG_CONFIG_HOME");
    if (config.empty() && !home.empty()) config = home + "/.config";
    if (!config.empty()) take(config + "/uv/uv.toml", false);
    std::string system = variable(host_, "XDG_CONFIG_DIRS");
    if (system.empty()) system = "/etc/xdg";
    for (const std::string_view each : split(system, ':'))
      if (!each.empty() && take(std::string(each) + "/uv/uv.toml", false)) return;
    take("/etc/uv/uv.toml", false);
  }

 private:
  // The nearest folder with a uv.toml, or a pyproject.toml that has [tool.uv].
  void project(std::string folder) {
    while (!folder.empty()) {
      const std::string base = folder == "/" ? "" : folder;
      if (take(base + "/uv.toml", false)) return;
      if (const Result<std::string> text =
              host_.read_file(base + "/pyproject.toml", k_most_config_bytes);
          text && contains(*text, "tool.uv") && take(base + "/pyproject.toml", true))
        return;
      if (folder == "/") return;
      const size_t slash = folder.rfind('/');
      if (slash == std::string::npos) return;
      folder.resize(slash == 0 ? 1 : slash);
    }
  }

  bool take(const std::string& path, bool is_pyproject) {
    const Result<std::string> text = host_.read_file(path, k_most_config_bytes);
    if (!text) {
      if (text.error().code != Code::not_found) out_.problems.push_back(text.error().text());
      return false;
    }
    const Result<std::vector<IndexUrl>> found =
        formats::parse_uv_indexes(*text, path, is_pyproject);
    if (found)
      append(out_.indexes, *found);
    else
      out_.problems.push_back(found.error().text());
    return true;
  }

  const Host& host_;
  IndexSettings& out_;
};

void read_pip(const Host& host, IndexSettings& out) {
  from_words(host, "PIP_EXTRA_INDEX_URL", false, out.indexes);
  from_words(host, "PIP_INDEX_URL", true, out.indexes);
  std::vector<std::string> files;
  const auto below = [&](const char* name, const char* path) {
    if (const std::string base = variable(host, name); !base.empty()) files.push_back(base + path);
  };
  if (const std::string only = variable(host, "PIP_CONFIG_FILE"); !only.empty()) {
    files.push_back(only);
  } else {
    below("VIRTUAL_ENV", "/pip.conf");
    if (variable(host, "XDG_CONFIG_HOME").empty())
      below("HOME", "/.config/pip/pip.conf");
    else
      below("XDG_CONFIG_HOME", "/pip/pip.conf");
    below("HOME", "/.pip/pip.conf");
    files.push_back("/etc/xdg/pip/pip.conf");
    files.push_back("/etc/pip.conf");
  }
  for (const std::string& path : files)
    if (const Result<std::string> text = host.read_file(path, k_most_config_bytes))
      append(out.indexes, formats::parse_pip_indexes(*text, path));
}

void default_last(std::vector<IndexUrl>& indexes) {
  std::vector<IndexUrl> out;
  for (const bool last : {false, true})
    for (const IndexUrl& index : indexes)
      if (index.is_default == last) out.push_back(index);
  indexes = std::move(out);
}

}  // namespace

IndexSettings index_settings(const Host& host, const std::string& folder) {
  IndexSettings out;
  from_words(host, "UV_INDEX", false, out.indexes);
  from_words(host, "UV_EXTRA_INDEX_URL", false, out.indexes);
  from_words(host, "UV_DEFAULT_INDEX", true, out.indexes);
  if (!has_default(out.indexes)) from_words(host, "UV_INDEX_URL", true, out.indexes);
  UvFiles(host, out).read(folder);
  out.tool = "uv";
  if (out.indexes.empty()) {
    read_pip(host, out);
    out.tool = out.indexes.empty() ? "" : "pip";
  }
  default_last(out.indexes);
  return out;
}

}  // namespace cufit::host
