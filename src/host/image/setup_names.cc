// SPDX-License-Identifier: Apache-2.0
#include "host/image/setup_names.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"

namespace cufit::host {

bool is_jupyter_config(std::string_view name) {
  for (const char* stem :
       {"jupyter_server_config", "jupyter_notebook_config", "jupyter_lab_config", "jupyter_config"})
    if (starts_with(name, stem)) {
      const std::string_view end = name.substr(std::string_view(stem).size());
      return end == ".py" || end == ".json";
    }
  return false;
}

bool is_credential(const std::string& path) {
  if (is_of_package(path)) return false;
  for (const char* end :
       {"/.ssh/id_rsa", "/.ssh/id_dsa", "/.ssh/id_ecdsa", "/.ssh/id_ed25519", "/.netrc", "/.pypirc",
        "/.git-credentials", "/.docker/config.json", "/.aws/credentials", "/.kaggle/kaggle.json",
        "/.huggingface/token", "/.cache/huggingface/token",
        "/.config/gcloud/application_default_credentials.json"})
    if (ends_with(path, end)) return true;
  return starts_with(path, "/run/secrets/");
}

bool is_host_key(const std::string& path) {
  return starts_with(path, "/etc/ssh/ssh_host_") && ends_with(path, "_key");
}

bool is_authorized_keys(const std::string& path) {
  const std::string_view name = file_name(path);
  return !is_of_package(path) && (name == "authorized_keys" || name == "authorized_keys2");
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, tried = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == text[t] && pattern[p] != '*'))) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      tried = t;
    } else if (star != std::string_view::npos) {  // the last star takes one more
      p = star + 1;
      t = ++tried;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool is_of_package(const std::string& path) {
  return contains(path, "/site-packages/") || contains(path, "/dist-packages/") ||
         starts_with(path, "/usr/share/doc/");
}

bool is_script_name(const std::string& path) {
  const std::string name(file_name(path));
  if (std::count(path.begin(), path.end(), '/') > 5 || is_of_package(path)) return false;
  return ends_with(name, ".sh") || contains(name, "entrypoint") || contains(name, "start") ||
         name == "services" || name == "run" || name == "init";
}

bool is_setup_text(const std::string& path) {
  const std::string_view name = file_name(path);
  return (starts_with(path, k_sshd_folder) && !is_host_key(path)) || path == "/etc/passwd" ||
         path == "/etc/shadow" || ends_with(path, k_docker_logins) || name == "cufit.lock" ||
         is_authorized_keys(path) || (is_jupyter_config(name) && !is_of_package(path)) ||
         is_script_name(path);
}

}  // namespace cufit::host
