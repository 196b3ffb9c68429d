// SPDX-License-Identifier: Apache-2.0
// Saved images that the test builds: every layout, whiteouts, links, damage.
#include <gtest/gtest.h>

#include <zlib.h>
#include <zstd.h>

#include "base/format.h"
#include "base/sha256.h"
#include "host/image/image_facts.h"
#include "host/image/image_host.h"
#include "host/image/image_store.h"
#include "support/elf_builder.h"
#include "support/tar_builder.h"
#include "unit/host/temporary_tree.h"

namespace cufit::host {
namespace image_test {

using test::build_tar;
using test::TarFile;

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, 0);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string zstd(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), 0);
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
  return out;
}

const std::string k_config =
    R"({"architecture":"amd64","os":"linux","config":{"Env":["PATH=/opt/venv/bin"]}})";
const std::string k_site = "opt/venv/lib/python3.12/site-packages";

// Large enough that only the pages that somebody reads are kept of it.
std::string cuda_library() {
  tests::ElfSpec spec;
  spec.soname = "libtorch_cuda.so";
  spec.needed = {"libcudart.so.12"};
  tests::EntrySpec first = tests::cubin(80);
  first.payload = std::string(600'000, 'k');
  spec.sections = {
      {".nv_fatbin", tests::build_container({first, tests::cubin(90, 'a'), tests::ptx(90, 8, 4)})}};
  return tests::build_elf(spec);
}

std::vector<TarFile> torch_layer() {
  return {{"opt/venv/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n"},
          {"opt/venv/bin/python", "", '2', "/usr/bin/python3"},
          {k_site + "/torch/__init__.py", "x = 1\n"},
          {k_site + "/torch/version.py",
           "__version__ = '2.6.0+cu124'\ndebug = False\ncuda = '12.4'\ngit_version = 'x'\n"
           "hip = None\n"},
          {k_site + "/torch/lib/libtorch_cuda.so", cuda_library()},
          {k_site + "/torch-2.6.0.dist-info/METADATA",
           "Metadata-Version: 2.1\nName: torch\nVersion: 2.6.0+cu124\n\n"},
          {k_site + "/torch-2.6.0.dist-info/RECORD",
           "torch/__init__.py,,\ntorch/lib/libtorch_cuda.so,,\n"}};
}

class SavedImage : public testing::Test {
 protected:
  void save_docker(const std::vector<std::string>& layers, bool compressed = false) {
    std::vector<TarFile> files;
    std::string names;
    for (size_t i = 0; i < layers.size(); ++i) {
      files.push_back({std::to_string(i) + "/layer.tar", layers[i]});
      names += (names.empty() ? "\"" : ",\"") + files.back().path + "\"";
    }
    files.push_back({"c.json", k_config});
    files.push_back(
        {"manifest.json", R"([{"Config":"c.json","RepoTags":["t:1"],"Layers":[)" + names + "]}]"});
    const std::string tar = build_tar(files);
    tree.write("/image.tar", compressed ? gzip(tar) : tar);
  }

  // A folder, or (archive) a tar of it; each blob under its sum.
  void save_oci(const std::vector<std::string>& layers, bool archive = false) {
    std::vector<TarFile> files;
    const auto blob = [&](const std::string& bytes) {
      files.push_back({"blobs/sha256/" + sha256(bytes), bytes});
      return R"({"digest":"sha256:)" + sha256(bytes) + R"(","size":)" +
             std::to_string(bytes.size());
    };
    std::string list;
    for (const std::string& layer : layers) list += (list.empty() ? "" : ",") + blob(layer) + "}";
    const std::string manifest = R"({"config":)" + blob(k_config) + R"(},"layers":[)" + list + "]}";
    const std::string other = R"({"config":)" + blob("{}") + R"(},"layers":[]})";
    const std::string index = R"({"manifests":[)" + blob(other) +
                              R"(,"platform":{"os":"linux","architecture":"arm64"}},)" +
                              blob(manifest) +
                              R"(,"platform":{"os":"linux","architecture":"amd64"}}]})";
    files.push_back({"index.json", index});
    files.push_back({"oci-layout", R"({"imageLayoutVersion":"1.0.0"})"});
    if (archive) return tree.write("/image.tar", build_tar(files));
    for (const TarFile& file : files) tree.write("/oci/" + file.path, file.content);
  }

  Result<facts::OpenedImage> open(const std::string& path, const ImageOptions& options = {}) {
    return open_image(machine, tree.at(path), options);
  }

  static void expect_torch(const facts::OpenedImage& image) {
    const facts::ImageTree files(image.layers);
    const facts::Facts facts = read_image_facts(files, image.config);
    ASSERT_EQ(facts.envs.size(), 1u);
    const facts::PythonEnv& env = facts.envs[0];
    EXPECT_EQ(env.path, "/opt/venv");
    EXPECT_EQ(env.torch.version.value_or(""), "2.6.0+cu124");
    ASSERT_EQ(env.binaries.size(), 1u);
    EXPECT_TRUE(env.binaries[0].damage.empty());
    EXPECT_EQ(env.binaries[0].needed, std::vector<std::string>{"libcudart.so.12"});
    std::string code;
    for (const formats::DeviceCode& one : env.binaries[0].device_code)
      code += std::string(formats::to_string(one.kind)) + one.arch + " ";
    EXPECT_EQ(code, "cubin80 cubin90a ptx90 ");
    EXPECT_EQ(facts.system.architecture.value_or(""), "x86_64");
    EXPECT_TRUE(facts.problems.empty());
  }

  TemporaryTree tree;
  RealHost machine;
};

TEST_F(SavedImage, FindsEnvironmentsThatNoVariablePointsTo) {
  const std::string envs = "opt/cufit/.cufit/envs/";
  std::vector<TarFile> files = torch_layer();
  for (const char* name : {"cu126", "cpu"}) {
    files.push_back({envs + name + "/pyvenv.cfg", "home = /usr/bin\nversion = 3.12.3\n"});
    files.push_back({envs + name + "/lib/python3.12/site-packages/torch/version.py",
                     "__version__ = '2.14.1+" + std::string(name) + "'\n"});
  }
  save_docker({build_tar(files)});
  const auto image = open("/image.tar");
  ASSERT_TRUE(image) << image.error().text();
  formats::ImageConfig config = image->config;
  config.variables.emplace_back("VIRTUAL_ENV", "/opt/venv");
  facts::Facts facts = read_image_facts(facts::ImageTree(image->layers), config);
  ASSERT_EQ(facts.envs.size(), 3u);
  EXPECT_EQ(facts.envs[0].path, "/opt/venv");
  EXPECT_TRUE(facts.envs[0].active);
  std::string found;
  for (const facts::PythonEnv& env : facts.envs) found += env.torch.version.value_or("-") + " ";
  EXPECT_EQ(found, "2.6.0+cu124 2.14.1+cpu 2.14.1+cu126 ");
  EXPECT_FALSE(facts.envs[1].active);
  // Where `cufit run` is the entry point it decides; nothing is active before.
  config.entrypoint = {"/usr/local/bin/cufit", "run", "--"};
  facts = read_image_facts(facts::ImageTree(image->layers), config);
  ASSERT_EQ(facts.envs.size(), 3u);
  EXPECT_FALSE(facts.envs[0].active);
}

TEST_F(SavedImage, SaysTheSameInEveryLayoutAndCompression) {
  const std::string layer = build_tar(torch_layer());
  for (const std::string& stored : {layer, gzip(layer), zstd(layer)}) {
    save_docker({stored});
    auto docker = open("/image.tar");
    ASSERT_TRUE(docker) << docker.error().text();
    EXPECT_EQ(docker->layout, "docker archive");
    EXPECT_EQ(docker->tags, std::vector<std::string>{"t:1"});
    EXPECT_EQ(docker->layers.at(0).stored_bytes, stored.size());
    expect_torch(*docker);
    save_docker({stored}, true);
    auto compressed = open("/image.tar");
    ASSERT_TRUE(compressed) << compressed.error().text();
    EXPECT_TRUE(compressed->compressed);
    expect_torch(*compressed);
    save_oci({stored});
    auto oci = open("/oci");
    ASSERT_TRUE(oci) << oci.error().text();
    EXPECT_EQ(oci->layout, "OCI layout");
    EXPECT_EQ(oci->platforms, (std::vector<std::string>{"linux/amd64", "linux/arm64"}));
    expect_torch(*oci);
    save_oci({stored}, true);
    auto archive = open("/image.tar");
    ASSERT_TRUE(archive) << archive.error().text();
    EXPECT_EQ(archive->layout, "OCI archive");
    expect_torch(*archive);
  }
}

TEST_F(SavedImage, LayersThatAreLinksOfOlderDocker) {
  const std::string layer = build_tar(torch_layer());
  tree.write("/image.tar",
             build_tar({{"a/layer.tar", layer},
                        {"b/layer.tar", "", '2', "../a/layer.tar"},
                        {"c.json", k_config},
                        {"manifest.json",
                         R"([{"Config":"c.json","Layers":["a/layer.tar","b/layer.tar"]}])"}}));
  auto image = open("/image.tar");
  ASSERT_TRUE(image) << image.error().text();
  ASSERT_EQ(image->layers.size(), 2u);
  EXPECT_EQ(image->layers[0].files.size(), image->layers[1].files.size());
  expect_torch(*image);
}

TEST_F(SavedImage, ErrorsNameFileAndPlace) {
  tree.write("/text", "no image at all\n");
  EXPECT_NE(open("/text").error().what.find("neither a tar archive nor a folder"),
            std::string::npos);
  tree.write("/other.tar", build_tar({{"a", "b"}}));
  EXPECT_NE(open("/other.tar").error().what.find("neither manifest.json nor index.json"),
            std::string::npos);
  std::filesystem::create_directories(tree.at("/empty"));
  EXPECT_NE(open("/empty").error().what.find("without index.json"), std::string::npos);
  tree.write(
      "/lost.tar",
      build_tar({{"c.json", k_config},
                 {"manifest.json", R"([{"Config":"c.json","Layers":["gone/layer.tar"]}])"}}));
  EXPECT_NE(open("/lost.tar").error().what.find("`gone/layer.tar` in"), std::string::npos);

  const std::string layer = build_tar(torch_layer());
  save_docker({gzip(layer).substr(0, 900)});
  auto cut = open("/image.tar");
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().text().find("`0/layer.tar` in"), 0u) << cut.error().text();
  EXPECT_EQ(cut.error().text().rfind("`0/layer.tar` in"), 0u) << cut.error().text();
  save_docker({layer});
  std::filesystem::resize_file(tree.at("/image.tar"), 200'000);
  EXPECT_EQ(open("/image.tar").error().code, Code::malformed);
}

TEST_F(SavedImage, ADescriptionWithAnotherDigestIsRefused) {
  save_oci({build_tar(torch_layer())});
  for (const auto& file : std::filesystem::directory_iterator(tree.at("/oci/blobs/sha256"))) {
    if (file.file_size() != k_config.size()) continue;
    std::string changed = k_config;
    changed.replace(changed.find("amd64"), 5, "arm64");
    tree.write("/oci/blobs/sha256/" + file.path().filename().string(), changed);
  }
  auto image = open("/oci");
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().what.find("do not have the digest"), std::string::npos);
}

TEST_F(SavedImage, APlatformThatIsNotThereIsAUsageError) {
  save_oci({build_tar(torch_layer())});
  ImageOptions options;
  options.architecture = "riscv64";
  auto image = open("/oci", options);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, Code::usage);
  EXPECT_NE(image.error().what.find("linux/amd64, linux/arm64"), std::string::npos);
}

facts::ImageLayer layer_of(const std::vector<TarFile>& files) {
  std::vector<std::string> problems;
  uint64_t held = 0;
  auto layer =
      read_layer(std::make_shared<MemorySource>("l", build_tar(files)), true, {}, problems, held);
  EXPECT_TRUE(layer);
  return layer ? std::move(*layer) : facts::ImageLayer{};
}

std::string listed(const facts::ImageTree& tree) {
  std::vector<std::string> out;
  tree.each_file([&](const std::string& path, const facts::ImageTree::Node& node) {
    out.push_back(path + ":" + std::to_string(node.layer));
  });
  return join(out, " ");
}

TEST(ImageTree, AppliesWhiteoutsToLayersBelowOnly) {
  const facts::ImageTree tree(
      {layer_of({{"a/x", "1"}, {"a/y", "22"}, {"b/z", "333"}, {"c", "4"}}),
       layer_of(
           {{"a/.wh.x", ""}, {"a/new", "5"}, {"b/.wh..wh..opq", ""}, {"b/w", "6"}, {"c", "77"}})});
  EXPECT_EQ(listed(tree), "/a/new:1 /a/y:0 /b/w:1 /c:1");
  uint64_t hidden = 0;
  for (const facts::HiddenFile& file : tree.hidden()) hidden += file.size_bytes;
  EXPECT_EQ(hidden, 1u + 3u + 1u);
}

TEST(ImageTree, AFileAndAFolderThatTakeEachOthersPlace) {
  const facts::ImageTree tree({layer_of({{"d/x", "1"}, {"e", "2"}}),
                               layer_of({{"d", "3"}, {"e/y", "4"}}), layer_of({{"d/z", "5"}})});
  EXPECT_EQ(listed(tree), "/d/z:2 /e/y:1");
}

TEST(ImageTree, AFolderThatIsDeletedAndMadeAgainIsNew) {
  const facts::ImageTree tree({layer_of({{"d/x", "1"}}), layer_of({{".wh.d", ""}}),
                               layer_of({{"d/", "", '5'}, {"d/y", "2"}})});
  EXPECT_EQ(listed(tree), "/d/y:2");
}

TEST(ImageTree, HardLinksHaveTheContentsOfTheirTarget) {
  const facts::ImageTree tree({layer_of({{"a", "text"},
                                         {"b", "", '1', "a"},
                                         {"c", "", '1', "./b"},
                                         {"lost", "", '1', "nowhere"}}),
                               layer_of({{".wh.a", ""}})});
  EXPECT_EQ(listed(tree), "/b:0 /c:0");
  ASSERT_EQ(tree.problems().size(), 1u);
  const ImageHost host(tree, {}, "x86_64");
  EXPECT_EQ(host.read_file("/c", 100).value_or(""), "text");
}

TEST(ImageTree, LinksStayInsideTheImage) {
  const facts::ImageTree tree({layer_of({{"usr/lib/x", "1"},
                                         {"lib", "", '2', "usr/lib"},
                                         {"up", "", '2', "../../../../usr"},
                                         {"abs", "", '2', "/lib/x"},
                                         {"loop", "", '2', "loop"},
                                         {"../outside", "2"},
                                         {"a/../../outside", "3"}})});
  EXPECT_EQ(listed(tree), "/usr/lib/x:0");
  const ImageHost host(tree, {{"PATH", "/bin"}}, "x86_64");
  EXPECT_EQ(host.real_path("/abs").value_or(""), "/usr/lib/x");
  EXPECT_EQ(host.real_path("/up/lib/x").value_or(""), "/usr/lib/x");
  EXPECT_EQ(host.read_file("/lib/../lib/x", 10).value_or(""), "1");
  EXPECT_FALSE(host.exists("/loop"));
  EXPECT_FALSE(host.exists("/outside"));
  EXPECT_EQ(host.list("/").value_or(std::vector<std::string>()),
            (std::vector<std::string>{"abs", "lib", "loop", "up", "usr"}));
  EXPECT_EQ(host.variable("PATH").value_or(""), "/bin");
}

TEST_F(SavedImage, ALayerThatIsDamagedBehindItsTarIsAnError) {
  const std::string layer = build_tar(torch_layer());
  std::string wrong_sum = gzip(layer), wrong_length = wrong_sum;
  wrong_sum[wrong_sum.size() - 8] ^= 1;
  wrong_length.back() ^= 1;
  const std::string whole = gzip(layer);
  std::vector<std::string> damaged = {wrong_sum, wrong_length, whole + "garbage", ""};
  for (size_t cut = 1; cut <= 9; ++cut) damaged.push_back(whole.substr(0, whole.size() - cut));
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  std::string summed(ZSTD_compressBound(layer.size()), 0);
  summed.resize(ZSTD_compress2(context, summed.data(), summed.size(), layer.data(), layer.size()));
  ZSTD_freeCCtx(context);
  save_docker({summed});
  EXPECT_TRUE(open("/image.tar"));
  summed.back() ^= 1;
  damaged.push_back(summed);
  for (const std::string& bytes : damaged) {
    for (const bool compressed : {false, true}) {
      save_docker({bytes}, compressed);
      auto image = open("/image.tar");
      ASSERT_FALSE(image) << bytes.size() << " of " << whole.size();
      EXPECT_NE(image.error().what.find("`0/layer.tar` in"), std::string::npos);
    }
  }
}

TEST_F(SavedImage, ACompressedBlobOfAnotherDigestIsAnError) {
  const std::string layer = gzip(build_tar(torch_layer()));
  save_oci({layer});
  EXPECT_TRUE(open("/oci"));
  tree.write("/oci/blobs/sha256/" + sha256(layer), gzip(build_tar({{"x", "other"}})));
  auto image = open("/oci");
  ASSERT_FALSE(image);
  EXPECT_NE(image.error().what.find("do not have the digest"), std::string::npos);
}

TEST_F(SavedImage, NamesCompressionsThatAreNotRead) {
  save_docker(
      {std::string("\xfd"
                   "7zXZ\0\0\4",
                   8)});
  EXPECT_NE(open("/image.tar").error().what.find("compressed by xz"), std::string::npos);
  save_docker({"BZh91AY&SY"});
  EXPECT_NE(open("/image.tar").error().what.find("compressed by bzip2"), std::string::npos);
  save_docker({std::string("\x50\x2a\x4d\x18\3\0\0\0abc", 11) + zstd(build_tar(torch_layer()))});
  auto image = open("/image.tar");
  ASSERT_TRUE(image) << image.error().text();
  expect_torch(*image);
}

TEST(ImageLayer, WhatIsTooLargeToHoldIsNamedAndNotRead) {
  std::vector<std::string> problems;
  uint64_t held = 0;
  LayerLimits limits;
  limits.held_bytes = 1u << 20;
  auto layer = read_layer(std::make_shared<MemorySource>(
                              "l", gzip(build_tar({{"lib/libbig.so", std::string(2u << 20, 0)},
                                                   {"lib/liba.so", std::string(200'000, 'a')}}))),
                          true, {}, problems, held, limits);
  ASSERT_TRUE(layer);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("l: `/lib/libbig.so`"), std::string::npos) << problems[0];
  EXPECT_EQ(layer->files[0].content, nullptr);
  EXPECT_NE(layer->files[1].content, nullptr);
  EXPECT_EQ(held, 200'000u);
}

TEST(ImageLayer, WhatWasNotKeptIsAnErrorAndNotZeros) {
  std::vector<std::string> problems;
  uint64_t held = 0;
  std::string bytes(4'000'000, 'z');
  tests::ElfSpec spec;
  spec.sections = {{".text", bytes}};
  const std::string library = tests::build_elf(spec);
  auto layer =
      read_layer(std::make_shared<MemorySource>(
                     "l", gzip(build_tar({{"lib/libx.so", library}, {"photo.jpg", bytes}}))),
                 true, {}, problems, held);
  ASSERT_TRUE(layer);
  const facts::ImageTree tree({*layer});
  const ImageHost host(tree, {}, "x86_64");
  auto source = host.open("/lib/libx.so");
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->size_bytes(), library.size());
  std::byte one[16];
  EXPECT_TRUE((*source)->read(0, one));
  EXPECT_FALSE((*source)->read(3'000'000, one));
  EXPECT_FALSE(host.open("/photo.jpg"));
  EXPECT_EQ(host.status("/photo.jpg")->size_bytes, bytes.size());
}

}  // namespace image_test
}  // namespace cufit::host
