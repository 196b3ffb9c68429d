// SPDX-License-Identifier: Apache-2.0
// The JSON files that describe a container image: docker's manifest.json in a saved archive, the
// index, manifest and configuration of the Open Container Initiative's image layout (image-spec
// 1.1). Readers of texts only; where the blobs lie is host/image/image_store.h's matter.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace cufit::formats {

// One image of manifest.json: names of members of the archive.
struct DockerImage {
  std::string config;
  std::vector<std::string> layers;  // the base first
  std::vector<std::string> tags;
};
Result<std::vector<DockerImage>> parse_docker_manifest(std::string_view text,
                                                       const std::string& name);

// What an index or manifest points to.
struct ImageBlob {
  std::string media_type;
  std::string digest;  // "sha256:..."
  uint64_t size_bytes = 0;
  std::string os, architecture, variant;  // of an index's entry; empty = not said
  std::string tag;                        // annotation org.opencontainers.image.ref.name
  bool is_index() const;
  bool is_attestation = false;  // of buildkit: no image
};
Result<std::vector<ImageBlob>> parse_image_index(std::string_view text, const std::string& name);

struct ImageManifest {
  ImageBlob config;
  std::vector<ImageBlob> layers;  // the base first
};
Result<ImageManifest> parse_image_manifest(std::string_view text, const std::string& name);

struct ImageConfig {
  std::string os, architecture, variant;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> entrypoint, command;
  std::string user, folder;        // WorkingDir
  std::vector<std::string> ports;  // of EXPOSE: "8888/tcp"
  std::vector<std::pair<std::string, std::string>> labels;
  bool healthcheck = false;  // a command is there, and is not NONE
  // What made each layer ("RUN pip install ..."), layers only; empty where the image does not say.
  std::vector<std::string> made_by;
  std::vector<std::string> steps;  // the same of all steps, with those that made no layer
  // "sha256:..." of each layer's bytes when expanded, the base first.
  std::vector<std::string> diff_ids;
};
Result<ImageConfig> parse_image_config(std::string_view text, const std::string& name);

// "blobs/sha256/abc" of "sha256:abc"; empty where it is no such digest.
std::string blob_path(std::string_view digest);

}  // namespace cufit::formats
