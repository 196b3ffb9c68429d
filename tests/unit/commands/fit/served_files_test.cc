// SPDX-License-Identifier: Apache-2.0
// Which files a model is that was named, and what its engine opens.
#include "commands/fit/served_files.h"

#include <gtest/gtest.h>

#include <map>

#include "support/fake_root.h"
#include "support/gguf_bytes.h"

namespace cufit::commands {
namespace served_files_test {

using test::le;
using test::text;

// One tensor of 64 elements in F32; of a part the metadata as well where `first`.
std::string gguf(const std::string& tensor, uint64_t parts, bool first = true) {
  std::string entries = text("split.count") + le(2, 4) + le(parts, 2);
  if (first) {
    entries += text("general.architecture") + le(8, 4) + text("llama");
    entries += text("llama.block_count") + le(4, 4) + le(7, 4);
  }
  return "GGUF" + le(3, 4) + le(1, 8) + le(first ? 3 : 1, 8) + entries + text(tensor) + le(1, 4) +
         le(64, 8) + le(0, 4) + le(0, 8);
}
std::string safetensors(const std::string& tensor) {
  const std::string header =
      "{\"" + tensor + R"(":{"dtype":"F32","shape":[64],"data_offsets":[0,256]}})";
  return le(header.size(), 8) + header + std::string(256, '\0');
}
const char* const k_config = R"({"model_type":"llama","num_hidden_layers":2})";

// Of `path` in a folder with these files: "<served>: <tensors>", or the error.
std::string served(const std::map<std::string, std::string>& files, const std::string& path) {
  test::FakeRoot root;
  for (const auto& [name, bytes] : files) root.file("/m/" + name, bytes);
  const auto got = read_served_files(root.host(), "/m" + path);
  if (!got) return got.error().what;
  std::string out = got->served + ":";
  for (const formats::Tensor& tensor : got->tensors) out += " " + tensor.name;
  return out;
}

TEST(ServedFiles, OfAFolderTheEngineOpensWhatItReads) {
  EXPECT_EQ(served({{"config.json", k_config}, {"model.safetensors", safetensors("a")}}, ""),
            "/m: a");
  // GGUF beside a config.json alone; weights of another kind are the model.
  EXPECT_EQ(served({{"config.json", k_config}, {"q4.gguf", gguf("t", 1)}}, ""), "/m/q4.gguf: t");
  EXPECT_EQ(
      served({{"config.json", k_config}, {"q4.gguf", gguf("t", 1)}, {"training_args.bin", "x"}},
             ""),
      "/m/q4.gguf: t");
  EXPECT_EQ(
      served({{"config.json", k_config}, {"q4.gguf", gguf("t", 1)}, {"pytorch_model.bin", "x"}},
             ""),
      "/m:");
  EXPECT_EQ(served({{"config.json", k_config},
                    {"q4.gguf", gguf("t", 1)},
                    {"model.safetensors", safetensors("a")}},
                   ""),
            "/m: a");
  EXPECT_EQ(served({{"q4.gguf", gguf("t", 1)}, {"q8.gguf", gguf("t", 1)}}, ""),
            "/m: 2 GGUF models; name one of the files, such as `q4.gguf`");
}

TEST(ServedFiles, PartsOfGgufAreOneModel) {
  const std::map<std::string, std::string> parts = {{"q-00001-of-00003.gguf", gguf("a", 3)},
                                                    {"q-00002-of-00003.gguf", gguf("b", 3, false)},
                                                    {"q-00003-of-00003.gguf", gguf("c", 3, false)}};
  EXPECT_EQ(served(parts, ""), "/m/q-00001-of-00003.gguf: a b c");
  EXPECT_EQ(served(parts, "/q-00001-of-00003.gguf"), "/m/q-00001-of-00003.gguf: a b c");
  // The metadata is that of the first part whichever is named.
  EXPECT_EQ(served(parts, "/q-00002-of-00003.gguf"), "/m/q-00001-of-00003.gguf: b a c");
  std::map<std::string, std::string> other = {{"q-00009-of-00003.gguf", gguf("a", 3)}};
  EXPECT_EQ(served(other, "/q-00009-of-00003.gguf"),
            "/m/q-00009-of-00003.gguf: one of 3 parts, and its name does not say which");
}

// A part of safetensors stands for its model: an engine opens the folder.
TEST(ServedFiles, AFileOfSafetensorsStandsForItsFolder) {
  const std::string index = R"({"weight_map":{"a":"model-00001-of-00002.safetensors",)"
                            R"("b":"model-00002-of-00002.safetensors"}})";
  std::map<std::string, std::string> parts = {
      {"config.json", k_config},
      {"model.safetensors.index.json", index},
      {"model-00001-of-00002.safetensors", safetensors("a")},
      {"model-00002-of-00002.safetensors", safetensors("b")}};
  EXPECT_EQ(served(parts, "/model-00001-of-00002.safetensors"), "/m: a b");
  EXPECT_EQ(served(parts, "/model-00002-of-00002.safetensors"), "/m: a b");
  parts.erase("model.safetensors.index.json");
  EXPECT_EQ(served(parts, "/model-00001-of-00002.safetensors"), "/m: a b");
  parts.erase("model-00002-of-00002.safetensors");
  EXPECT_EQ(served(parts, "/model-00001-of-00002.safetensors"),
            "/m: there are 1 of the 2 parts of the model");
  EXPECT_EQ(served(parts, ""), "/m: there are 1 of the 2 parts of the model");
  EXPECT_EQ(served({{"config.json", k_config},
                    {"model.safetensors", safetensors("a")},
                    {"model.fp16.safetensors", safetensors("a")}},
                   "/model.fp16.safetensors"),
            "/m/model.fp16.safetensors: engines load its folder, and it is none of the weights "
            "there");
}

}  // namespace served_files_test
}  // namespace cufit::commands
