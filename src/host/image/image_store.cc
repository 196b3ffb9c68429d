// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_store.h"

#include <new>
#include <set>

#include "base/format.h"
#include "base/sha256.h"

namespace cufit::host {
namespace {

using formats::ImageBlob;

constexpr int k_most_indexes = 4;  // an index may point to an index

class Opener {
 public:
  Opener(const Host& host, const std::string& path, const ImageOptions& options)
      : options_(options), store_(host, path, options.progress) {
    image_.path = path;
  }

  Result<facts::OpenedImage> open() {
    CUFIT_TRY(opened, store_.open());
    (void)opened;
    Result<bool> described = store_.has("manifest.json") && !store_.is_folder() ? docker() : oci();
    if (!described) return described.error();
    image_.compressed = store_.is_compressed();
    CUFIT_TRY(layers, store_.layers(names_, image_.problems));
    image_.layers = std::move(layers);
    if (Result<bool> same = check_plain(); !same) return same.error();
    return std::move(image_);
  }

 private:
  // Of "blobs/sha256/DIGEST" and of docker's "DIGEST.json"; empty for another name.
  static std::string digest_in(const std::string& name) {
    constexpr std::string_view k_blobs = "blobs/sha256/", k_json = ".json";
    constexpr size_t k_digits = 64;
    if (starts_with(name, k_blobs)) return name.substr(k_blobs.size());
    if (name.size() != k_digits + k_json.size() || !ends_with(name, k_json)) return {};
    const std::string digits = name.substr(0, k_digits);
    return digits.find_first_not_of("0123456789abcdef") == std::string::npos ? digits : "";
  }

  // Docker's own layout names layers by anything; the configuration has the sums of their contents.
  Result<bool> check_plain() {
    const std::vector<std::string>& sums = image_.config.diff_ids;
    if (sums.size() != image_.layers.size()) return true;
    for (size_t i = 0; i < sums.size(); ++i) {
      facts::ImageLayer& layer = image_.layers[i];
      if (!layer.plain || layer.sha256.empty() || !starts_with(sums[i], "sha256:")) continue;
      if (sums[i] != "sha256:" + layer.sha256)
        return fail(Code::malformed,
                    format("{}: its bytes do not have the digest that the image's configuration "
                           "has for them: the image is damaged",
                           store_.inside(names_[i])));
      layer.verified = true;
    }
    return true;
  }

  // A blob is called by the sum of its bytes.
  Result<std::string> description(const std::string& name) {
    CUFIT_TRY(text, store_.text(name));
    const std::string named = digest_in(name);
    if (named.empty()) return text;
    if (sha256(text) != named)
      return fail(Code::malformed, format("{}: its bytes do not have the digest that names it: the "
                                          "image is damaged",
                                          store_.inside(name)));
    return text;
  }

  Result<bool> docker() {
    image_.layout = "docker archive";
    CUFIT_TRY(text, description("manifest.json"));
    CUFIT_TRY(images, formats::parse_docker_manifest(text, store_.inside("manifest.json")));
    // Several images: the first that fits, as an archive of one platform has one.
    image_.other_images = images.size() - 1;
    image_.tags = images[0].tags;
    image_.digest = images[0].config;
    names_ = images[0].layers;
    return config(images[0].config);
  }

  Result<bool> config(const std::string& name) {
    CUFIT_TRY(text, description(name));
    CUFIT_TRY(parsed, formats::parse_image_config(text, store_.inside(name)));
    image_.config = std::move(parsed);
    return true;
  }

  Result<bool> oci() {
    image_.layout = store_.is_folder() ? "OCI layout" : "OCI archive";
    if (!store_.has("index.json"))
      return fail(Code::malformed, format("`{}`: neither manifest.json nor index.json is in it: no "
                                          "saved image",
                                          image_.path));
    CUFIT_TRY(text, description("index.json"));
    CUFIT_TRY(blobs, formats::parse_image_index(text, store_.inside("index.json")));
    std::string tag;
    for (int depth = 0; depth < k_most_indexes; ++depth) {
      CUFIT_TRY(chosen, choose(blobs));
      if (!chosen.tag.empty()) tag = chosen.tag;
      const std::string name = formats::blob_path(chosen.digest);
      CUFIT_TRY(inner, description(name));
      // The media type may be left out; an index has `manifests`.
      if (!chosen.is_index() && !contains(inner, "\"manifests\"")) {
        image_.digest = chosen.digest;
        if (!tag.empty()) image_.tags.push_back(tag);
        return manifest(inner, name);
      }
      CUFIT_TRY(next, formats::parse_image_index(inner, store_.inside(name)));
      blobs = std::move(next);
    }
    return fail(Code::malformed, format("`{}`: an index in an index in an index", image_.path));
  }

  Result<bool> manifest(const std::string& text, const std::string& name) {
    CUFIT_TRY(parsed, formats::parse_image_manifest(text, store_.inside(name)));
    for (const ImageBlob& layer : parsed.layers) {
      if (ends_with(layer.media_type, "+encrypted"))
        return fail(Code::unsupported, format("{}: encrypted, which cufit does not read",
                                              store_.inside(formats::blob_path(layer.digest))));
    }
    for (const ImageBlob& layer : parsed.layers) names_.push_back(formats::blob_path(layer.digest));
    return config(formats::blob_path(parsed.config.digest));
  }

  Result<ImageBlob> choose(const std::vector<ImageBlob>& blobs) {
    std::vector<const ImageBlob*> images;
    for (const ImageBlob& blob : blobs)
      if (!blob.is_attestation && blob.os != "unknown") images.push_back(&blob);
    if (images.empty())
      return fail(Code::malformed, format("`{}`: its index names no image", image_.path));
    std::set<std::string> platforms;
    for (const ImageBlob* blob : images)
      if (!blob->architecture.empty()) platforms.insert(blob->os + "/" + blob->architecture);
    if (platforms.size() > 1) image_.platforms.assign(platforms.begin(), platforms.end());
    const auto fits = [&](const ImageBlob& blob, std::string_view architecture) {
      return blob.architecture == architecture && (blob.os.empty() || blob.os == options_.os);
    };
    const std::string wanted = options_.architecture.empty() ? "amd64" : options_.architecture;
    for (const ImageBlob* blob : images) {
      if (!fits(*blob, wanted)) continue;
      if (platforms.size() < 2) image_.other_images = images.size() - 1;
      return *blob;
    }
    if (platforms.size() < 2 && options_.architecture.empty()) {
      image_.other_images = images.size() - 1;
      return *images[0];
    }
    return fail(Code::usage, format("`{}`: no image for {}/{}; it has {}", image_.path, options_.os,
                                    wanted, join({platforms.begin(), platforms.end()}, ", ")));
  }

  const ImageOptions& options_;
  facts::OpenedImage image_;
  ImageArchive store_;
  std::vector<std::string> names_;
};

}  // namespace

Result<facts::OpenedImage> open_image(const Host& host, const std::string& path,
                                      const ImageOptions& options) {
  try {
    return Opener(host, path, options).open();
  } catch (const std::bad_alloc&) {  // an archive may claim much; no exception crosses the folder
    return fail(Code::io, format("`{}`: memory does not suffice to read it", path));
  }
}

}  // namespace cufit::host
