// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/image_manifest.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace image_manifest_test {

const std::string k_digest = "sha256:" + std::string(64, 'a');

TEST(ImageManifest, ReadsDockersList) {
  auto images = parse_docker_manifest(
      R"([{"Config":"c.json","RepoTags":["a:1","a:2"],"Layers":["x/layer.tar"]},
          {"Config":"d.json","RepoTags":null,"Layers":null}])",
      "m");
  ASSERT_TRUE(images);
  ASSERT_EQ(images->size(), 2u);
  EXPECT_EQ((*images)[0].tags, (std::vector<std::string>{"a:1", "a:2"}));
  EXPECT_EQ((*images)[0].layers, std::vector<std::string>{"x/layer.tar"});
  EXPECT_TRUE((*images)[1].layers.empty());
}

TEST(ImageManifest, ReadsIndexesAndManifests) {
  auto index = parse_image_index(
      R"({"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":")" +
          k_digest +
          R"(","size":7,"platform":{"os":"linux","architecture":"arm64"},
              "annotations":{"org.opencontainers.image.ref.name":"1.0"}},
             {"mediaType":"application/vnd.oci.image.index.v1+json","digest":")" +
          k_digest + R"(","annotations":{"vnd.docker.reference.type":"attestation-manifest"}}]})",
      "i");
  ASSERT_TRUE(index) << index.error().what;
  ASSERT_EQ(index->size(), 2u);
  EXPECT_EQ((*index)[0].architecture, "arm64");
  EXPECT_EQ((*index)[0].tag, "1.0");
  EXPECT_FALSE((*index)[0].is_index());
  EXPECT_TRUE((*index)[1].is_index());
  EXPECT_TRUE((*index)[1].is_attestation);
  auto manifest = parse_image_manifest(
      R"({"config":{"digest":")" + k_digest + R"("},"layers":[{"digest":")" + k_digest + R"("}]})",
      "m");
  ASSERT_TRUE(manifest);
  EXPECT_EQ(blob_path(manifest->layers.at(0).digest), "blobs/sha256/" + std::string(64, 'a'));
}

TEST(ImageManifest, ReadsTheConfiguration) {
  auto config = parse_image_config(
      R"({"architecture":"amd64","os":"linux","config":{"Env":["A=1=2","=x","B"],
          "Entrypoint":["/e"],"Cmd":null},
          "history":[{"created_by":"FROM","empty_layer":true},{"created_by":"RUN x"}]})",
      "c");
  ASSERT_TRUE(config);
  ASSERT_EQ(config->variables.size(), 1u);
  EXPECT_EQ(config->variables[0].second, "1=2");
  EXPECT_EQ(config->entrypoint, std::vector<std::string>{"/e"});
  EXPECT_EQ(config->made_by, std::vector<std::string>{"RUN x"});
}

TEST(ImageManifest, NamesTheFileOfWhatIsNoImage) {
  for (const char* text :
       {"", "{", "[]", "{}", "[{}]", "[1]", R"([{"Config":"c","Layers":[1]}])"}) {
    auto images = parse_docker_manifest(text, "m.json");
    ASSERT_FALSE(images) << text;
    EXPECT_EQ(images.error().what.substr(0, 7), "m.json:");
  }
  for (const char* text : {"[]", R"({"manifests":{}})", R"({"manifests":[{"digest":"../x"}]})",
                           R"({"manifests":[{"digest":"sha256:AA"}]})"})
    EXPECT_FALSE(parse_image_index(text, "i")) << text;
  EXPECT_FALSE(parse_image_manifest("{}", "m"));
  EXPECT_FALSE(parse_image_config("[]", "c"));
  EXPECT_EQ(blob_path("sha256:" + std::string(63, 'a') + "/"), "");
}

}  // namespace image_manifest_test
}  // namespace cufit::formats
