// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_setup.h"

#include <algorithm>
#include <tuple>

#include "base/format.h"
#include "base/path.h"
#include "base/sha256.h"
#include "host/image/image_start.h"
#include "host/image/setup_names.h"

namespace cufit::host {
namespace {

using formats::TarType;

constexpr uint64_t k_most_setup_text = 1u << 20;
constexpr size_t k_most_setup_files = 64;
constexpr int k_most_includes = 8;

class SetupReader {
 public:
  SetupReader(const facts::OpenedImage& image, const facts::ImageTree& tree)
      : image_(image), tree_(tree) {}

  facts::ImageSetup read() {
    programs();
    layers();
    scripts_ = start_scripts(image_, tree_,
                             [this](const facts::LayerFile& file) { return content_of(file); });
    ssh();
    accounts();
    jupyter();
    lock();
    return std::move(out_);
  }

 private:
  using Node = facts::ImageTree::Node;

  const Node* find_file(std::string& path) const {
    const Node* node = tree_.find(path);
    return node != nullptr && node->type == TarType::file ? node : nullptr;
  }

  // Nothing where it is not there or cannot be read; the latter is told.
  std::optional<std::string> text_of(std::string& path, facts::SetupFile& place) {
    const Node* node = find_file(path);
    if (node == nullptr) return std::nullopt;
    place = {path, node->layer, false};
    return content_of(node->file);
  }

  std::optional<std::string> content_of(const facts::LayerFile& file) {
    if (file.size_bytes == 0) return std::string();
    if (file.content != nullptr && file.size_bytes <= k_most_setup_text)
      if (Result<std::string> text =
              file.content->read_exact(0, file.size_bytes, k_most_setup_text))
        return std::move(*text);
    if (out_.unread.size() < k_most_setup_files) out_.unread.push_back(file.path);
    return std::nullopt;
  }

  void programs() {
    tree_.each_file([&](const std::string& path, const Node& node) {
      const std::string_view name = file_name(path);
      if (!out_.sshd && name == "sshd" && ends_with(path, "/sbin/sshd"))
        out_.sshd = {path, node.layer, false};
      if (!out_.jupyter && starts_with(name, "jupyter") && contains(path, "/bin/") &&
          (name == "jupyter" || name == "jupyter-lab" || name == "jupyter-notebook" ||
           name == "jupyter-server"))
        out_.jupyter = {path, node.layer, false};
      if (!out_.sbom &&
          (ends_with(name, ".cdx.json") || ends_with(name, ".spdx.json") || name == "bom.json"))
        if (!is_of_package(path)) out_.sbom = {path, node.layer, false};
    });
  }

  // Files of all layers: what a later layer deletes can still be taken out of the image.
  void layers() {
    for (size_t layer = 0; layer < image_.layers.size(); ++layer)
      for (const facts::LayerFile& file : image_.layers[layer].files) {
        if (file.type != TarType::file || file.size_bytes == 0) continue;
        std::string path = file.path;
        const Node* seen = tree_.find(path, false);
        const facts::SetupFile one{file.path, layer,
                                   seen == nullptr || path != file.path || seen->layer != layer};
        if (is_host_key(file.path)) add(out_.host_keys, one);
        if (is_authorized_keys(file.path) && holds_a_key(file)) add(out_.authorized_keys, one);
        if (is_credential(file.path) && holds_a_login(file)) add(out_.credentials, one);
      }
  }

  static void add(std::vector<facts::SetupFile>& list, const facts::SetupFile& one) {
    if (list.size() < k_most_setup_files) list.push_back(one);
  }

  // A file of comments lets nobody in.
  bool holds_a_key(const facts::LayerFile& file) {
    const std::optional<std::string> text = content_of(file);
    if (!text) return true;
    for (const std::string_view line : split(*text, '\n'))
      if (!trim(line).empty() && trim(line)[0] != '#') return true;
    return false;
  }

  // Docker's file may name a helper that keeps the logins.
  bool holds_a_login(const facts::LayerFile& file) {
    if (!ends_with(file.path, k_docker_logins) || file.content == nullptr) return true;
    const std::optional<std::string> text = content_of(file);
    return !text || contains(*text, "\"auth\"") || contains(*text, "\"identitytoken\"") ||
           contains(*text, "\"registrytoken\"");
  }

  void ssh() {
    if (!out_.sshd) return;
    std::string file = std::string(k_sshd_folder) + "sshd_config";
    for (const StartScript& script : scripts_)
      for (const formats::ShellCommand& command : script.commands) {
        const formats::SshdStart start = formats::parse_sshd_start(command);
        out_.starts_sshd = out_.starts_sshd || start.starts;
        if (!start.file.empty()) file = start.file;
        // What the command says goes before the file.
        for (const formats::SshdSetting& one : start.settings)
          out_.ssh.push_back({one, script.place.path, script.place.layer, !script.in_file, true});
      }
    read_sshd(file, "", 0);
  }

  // `match`: of the block in which the Include stands.
  void read_sshd(std::string path, const std::string& match, int depth) {
    facts::SetupFile place;
    const std::optional<std::string> text = text_of(path, place);
    if (!text) {
      // One that is not there says nothing; one that cannot be read may say anything.
      out_.sshd_unread = out_.sshd_unread || find_file(path) != nullptr;
      return;
    }
    for (formats::SshdSetting& one : formats::parse_sshd_config(*text)) {
      if (one.match.empty()) one.match = match;
      if (one.keyword == "include" && depth < k_most_includes) {
        for (const std::string_view word : split(one.value, ' '))
          if (!word.empty()) include(std::string(word), one.match, depth);
        continue;
      }
      if (out_.ssh.size() < 20000)
        out_.ssh.push_back({std::move(one), place.path, place.layer, false, false});
    }
  }

  void include(std::string pattern, const std::string& match, int depth) {
    if (!starts_with(pattern, "/")) pattern = k_sshd_folder + pattern;
    const size_t slash = pattern.rfind('/');
    std::string folder = slash == 0 ? "/" : pattern.substr(0, slash);
    const std::string name = pattern.substr(slash + 1);
    const Node* node = tree_.find(folder);
    if (node == nullptr || node->type != TarType::directory || name.size() > 256) return;
    size_t taken = 0;
    for (const auto& [child, index] : node->children)  // a map: in the order of sshd's glob
      if (tree_.node(index).exists && matches_pattern(name, child) && ++taken <= k_most_setup_files)
        read_sshd(folder + "/" + child, match, depth + 1);
  }

  void accounts() {
    facts::SetupFile place;
    std::string path = "/etc/passwd";
    if (const auto text = text_of(path, place)) {
      out_.accounts = formats::parse_passwd(*text);
      out_.passwd_file = place;
    }
    path = "/etc/shadow";
    if (const auto text = text_of(path, place)) {
      out_.passwords = formats::parse_shadow(*text);
      out_.shadow_file = place;
    }
  }

  // The order in which Jupyter lets one file go before another (jupyter_core, paths.py): the
  // system's, the environment's, the user's; JSON goes before Python.
  std::tuple<int, bool, std::string> jupyter_rank(const std::string& path) const {
    const bool root = image_.config.user.empty() || starts_with(image_.config.user, "root") ||
                      starts_with(image_.config.user, "0");
    const bool user = contains(path, "/.jupyter/");
    const int place = starts_with(path, "/etc/jupyter/")             ? 0
                      : starts_with(path, "/usr/local/etc/jupyter/") ? 1
                      : !user                                        ? 2
                      : starts_with(path, "/root/") == root          ? 4
                                                                     : 3;
    return {place, ends_with(path, ".json"), path};
  }

  void jupyter() {
    std::vector<std::string> paths;
    tree_.each_file([&](const std::string& path, const Node&) {
      if (is_jupyter_config(file_name(path)) && !is_of_package(path) &&
          paths.size() < k_most_setup_files)
        paths.push_back(path);
    });
    std::sort(paths.begin(), paths.end(), [&](const std::string& a, const std::string& b) {
      return jupyter_rank(a) < jupyter_rank(b);
    });
    for (std::string path : paths) {
      facts::SetupFile place;
      const std::optional<std::string> text = text_of(path, place);
      if (!text) continue;
      add_jupyter(ends_with(path, ".json") ? formats::parse_jupyter_json(*text)
                                           : formats::parse_jupyter_python(*text),
                  place, true);
    }
    for (const StartScript& script : scripts_) {
      const bool starts =
          std::any_of(script.commands.begin(), script.commands.end(), formats::starts_jupyter);
      if (!starts) continue;
      out_.starts_jupyter = true;
      add_jupyter(formats::parse_jupyter_options(script.commands), script.place, script.in_file);
    }
  }

  void add_jupyter(std::vector<formats::JupyterSetting> settings, const facts::SetupFile& place,
                   bool in_file) {
    for (formats::JupyterSetting& one : settings)
      if (out_.jupyter_settings.size() < 10000)
        out_.jupyter_settings.push_back({std::move(one), place.path, place.layer, in_file});
  }

  void lock() {
    std::string folder = "/opt/cufit";
    for (const auto& [name, value] : image_.config.variables)
      if (name == "CUFIT_LOCK" && starts_with(value, "/")) folder = value;
    for (std::string path : {folder + "/cufit.lock", folder}) {
      facts::SetupFile place;
      const auto text = text_of(path, place);
      if (!text) continue;
      out_.lock = place;
      out_.lock_sha256 = sha256(*text);
      return;
    }
  }

  const facts::OpenedImage& image_;
  const facts::ImageTree& tree_;
  std::vector<StartScript> scripts_;
  facts::ImageSetup out_;
};

}  // namespace

facts::ImageSetup read_image_setup(const facts::OpenedImage& image, const facts::ImageTree& tree) {
  return SetupReader(image, tree).read();
}

}  // namespace cufit::host
