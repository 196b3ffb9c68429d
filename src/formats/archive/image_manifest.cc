// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/image_manifest.h"

#include "base/format.h"
#include "base/json.h"

namespace cufit::formats {
namespace {

constexpr size_t k_image_manifest_most = 1024;  // layers, images; docker allows 127 layers

constexpr size_t k_most_texts = 65536;

Error wrong(const std::string& name, const std::string& what) {
  return fail(Code::malformed, format("{}: {}", name, what));
}

Result<Json> parse(std::string_view text, const std::string& name) {
  std::optional<Json> out = Json::parse(text);
  if (!out) return wrong(name, "not JSON");
  return std::move(*out);
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_of(const Json& object, const char* key) {
  const Json* found = member(object, key);
  return found != nullptr && found->is_string() ? found->text() : std::string();
}

Result<std::vector<std::string>> texts_of(const Json& object, const char* key,
                                          const std::string& name) {
  std::vector<std::string> out;
  const Json* found = member(object, key);
  if (found == nullptr) return out;
  if (!found->is_array() || found->size() > k_most_texts)
    return wrong(name, format("`{}` is no list, or has more than {} entries", key, k_most_texts));
  for (const Json& item : *found) {
    if (!item.is_string()) return wrong(name, format("`{}` holds what is no text", key));
    out.push_back(item.text());
  }
  return out;
}

Result<ImageBlob> blob_of(const Json& item, const std::string& name) {
  ImageBlob out;
  out.media_type = text_of(item, "mediaType");
  out.digest = text_of(item, "digest");
  if (blob_path(out.digest).empty())
    return wrong(name, format("`{}` is no digest that cufit knows (sha256:...)", out.digest));
  const Json* size = member(item, "size");
  if (size != nullptr && size->is_number_unsigned()) out.size_bytes = size->natural();
  if (const Json* platform = member(item, "platform")) {
    out.os = text_of(*platform, "os");
    out.architecture = text_of(*platform, "architecture");
    out.variant = text_of(*platform, "variant");
  }
  if (const Json* annotations = member(item, "annotations")) {
    out.tag = text_of(*annotations, "io.containerd.image.name");
    if (out.tag.empty()) out.tag = text_of(*annotations, "org.opencontainers.image.ref.name");
    out.is_attestation = !text_of(*annotations, "vnd.docker.reference.type").empty();
  }
  return out;
}

Result<std::vector<ImageBlob>> blobs_of(const Json& object, const char* key,
                                        const std::string& name) {
  const Json* list = member(object, key);
  if (list == nullptr || !list->is_array()) return wrong(name, format("no list `{}`", key));
  if (list->size() > k_image_manifest_most)
    return wrong(name, format("`{}` has {} entries", key, list->size()));
  std::vector<ImageBlob> out;
  for (const Json& item : *list) {
    CUFIT_TRY(blob, blob_of(item, name));
    out.push_back(std::move(blob));
  }
  return out;
}

// Ports, labels and health check of the member `config`.
void add_settings(const Json& config, ImageConfig& out) {
  const Json* ports = member(config, "ExposedPorts");
  if (ports != nullptr && ports->is_object())
    for (auto port = ports->begin(); port != ports->end(); ++port)
      if (out.ports.size() < k_image_manifest_most) out.ports.push_back(port.key());
  const Json* labels = member(config, "Labels");
  if (labels != nullptr && labels->is_object())
    for (auto label = labels->begin(); label != labels->end(); ++label)
      if (label->is_string() && out.labels.size() < k_image_manifest_most)
        out.labels.emplace_back(label.key(), label->text());
  const Json* health = member(config, "Healthcheck");
  const Json* test = health == nullptr ? nullptr : member(*health, "Test");
  if (test != nullptr && test->is_array() && test->size() > 0)
    out.healthcheck = test->begin()->is_string() && test->begin()->text() != "NONE";
}

}  // namespace

std::string blob_path(std::string_view digest) {
  constexpr std::string_view k_start = "sha256:";
  if (!starts_with(digest, k_start) || digest.size() != k_start.size() + 64) return {};
  const std::string_view hex = digest.substr(k_start.size());
  if (hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  return "blobs/sha256/" + std::string(hex);
}

bool ImageBlob::is_index() const {
  return contains(media_type, "image.index") || contains(media_type, "manifest.list");
}

Result<std::vector<DockerImage>> parse_docker_manifest(std::string_view text,
                                                       const std::string& name) {
  CUFIT_TRY(root, parse(text, name));
  if (!root.is_array() || root.empty() || root.size() > k_image_manifest_most)
    return wrong(name, "not the list of images that `docker save` writes");
  std::vector<DockerImage> out;
  for (const Json& item : root) {
    DockerImage image;
    image.config = text_of(item, "Config");
    CUFIT_TRY(layers, texts_of(item, "Layers", name));
    CUFIT_TRY(tags, texts_of(item, "RepoTags", name));
    image.layers = std::move(layers);
    image.tags = std::move(tags);
    if (image.config.empty()) return wrong(name, "an image without `Config`");
    if (image.layers.size() > k_image_manifest_most)
      return wrong(name, format("{} layers", image.layers.size()));
    out.push_back(std::move(image));
  }
  return out;
}

Result<std::vector<ImageBlob>> parse_image_index(std::string_view text, const std::string& name) {
  CUFIT_TRY(root, parse(text, name));
  return blobs_of(root, "manifests", name);
}

Result<ImageManifest> parse_image_manifest(std::string_view text, const std::string& name) {
  CUFIT_TRY(root, parse(text, name));
  const Json* config = member(root, "config");
  if (config == nullptr) return wrong(name, "a manifest without `config`");
  ImageManifest out;
  CUFIT_TRY(blob, blob_of(*config, name));
  out.config = std::move(blob);
  CUFIT_TRY(layers, blobs_of(root, "layers", name));
  out.layers = std::move(layers);
  return out;
}

Result<ImageConfig> parse_image_config(std::string_view text, const std::string& name) {
  CUFIT_TRY(root, parse(text, name));
  if (!root.is_object()) return wrong(name, "no image configuration");
  ImageConfig out;
  out.os = text_of(root, "os");
  out.architecture = text_of(root, "architecture");
  out.variant = text_of(root, "variant");
  if (const Json* config = member(root, "config")) {
    CUFIT_TRY(variables, texts_of(*config, "Env", name));
    for (const std::string& line : variables) {
      const size_t equals = line.find('=');
      if (equals == std::string::npos || equals == 0) continue;
      out.variables.emplace_back(line.substr(0, equals), line.substr(equals + 1));
    }
    CUFIT_TRY(entrypoint, texts_of(*config, "Entrypoint", name));
    CUFIT_TRY(command, texts_of(*config, "Cmd", name));
    out.entrypoint = std::move(entrypoint);
    out.command = std::move(command);
    out.user = text_of(*config, "User");
    out.folder = text_of(*config, "WorkingDir");
    add_settings(*config, out);
  }
  const Json* rootfs = member(root, "rootfs");
  const Json* sums = rootfs == nullptr ? nullptr : member(*rootfs, "diff_ids");
  if (sums != nullptr && sums->is_array())
    for (const Json& sum : *sums)
      if (out.diff_ids.size() < k_image_manifest_most)
        out.diff_ids.push_back(sum.is_string() ? sum.text() : std::string());
  const Json* history = member(root, "history");
  if (history != nullptr && history->is_array())
    for (const Json& step : *history) {
      if (out.steps.size() < k_image_manifest_most)
        out.steps.push_back(text_of(step, "created_by"));
      const Json* empty = member(step, "empty_layer");
      if (empty != nullptr && empty->is_boolean() && empty->boolean()) continue;
      if (out.made_by.size() < k_image_manifest_most)
        out.made_by.push_back(text_of(step, "created_by"));
    }
  return out;
}

}  // namespace cufit::formats
