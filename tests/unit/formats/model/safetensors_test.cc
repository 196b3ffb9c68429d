// SPDX-License-Identifier: Apache-2.0
#include "formats/model/safetensors.h"

#include <gtest/gtest.h>

#include "formats/model/model_config.h"

namespace cufit::formats {
namespace safetensors_test {

std::string file_of(const std::string& header, size_t data = 0) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>((header.size() >> (8 * i)) & 0xff);
  return out + header + std::string(data, '\1');
}

Result<Safetensors> read(std::string bytes) {
  return read_safetensors(MemorySource("m.safetensors", std::move(bytes)));
}

std::string why(std::string bytes) {
  const Result<Safetensors> got = read(std::move(bytes));
  return got ? "read" : got.error().what;
}

TEST(Safetensors, HeaderIsRead) {
  const auto got = read(file_of(
      R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
      R"("s":{"shape":[],"data_offsets":[12,16],"dtype":"F32"},"q":{"dtype":"F4","shape":[3],"data_offsets":[16,18]}}  )",
      18));
  ASSERT_TRUE(got) << got.error().what;
  ASSERT_EQ(got->tensors.size(), 3u);
  EXPECT_EQ(got->tensors[0].name, "a.weight");
  EXPECT_EQ(got->tensors[0].dtype, "BF16");
  EXPECT_EQ(got->tensors[0].shape, (std::vector<uint64_t>{2, 3}));
  EXPECT_EQ(got->tensors[0].elements, 6u);
  EXPECT_EQ(got->tensors[1].elements, 1u);
  EXPECT_EQ(got->tensors[2].bytes, 2u);
  EXPECT_EQ(got->missing_bytes, 0u);
  ASSERT_EQ(got->metadata.size(), 1u);
  EXPECT_EQ(got->metadata[0].second, "pt");
}

TEST(Safetensors, FileThatEndsTooEarlyStillSaysWhatItIs) {
  const auto got = read(file_of(R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 10));
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->missing_bytes, 6u);
}

TEST(Safetensors, WhatIsNoneIsAnError) {
  EXPECT_EQ(why("abc"), "m.safetensors: 3 bytes are no safetensors file");
  EXPECT_EQ(
      why(std::string(8, '\xff')),
      "m.safetensors: byte 0: a header of 18446744073709551615 bytes; not a safetensors file, "
      "or cut off");
  EXPECT_EQ(why(file_of("{\"a\":")), "m.safetensors: byte 14: the header is no JSON");
  EXPECT_EQ(why(file_of("")), "m.safetensors: byte 9: the header is no JSON");
  EXPECT_NE(why("version https://git-lfs.github.com/spec/v1\noid sha256:0\n").find("git-lfs"),
            std::string::npos);
}

TEST(Safetensors, ContradictionsAreErrors) {
  const auto one = [](const std::string& fields) {
    return why(file_of("{\"a\":{" + fields + "}}", 64));
  };
  EXPECT_EQ(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), "read");
  for (const char* wrong : {
           R"("dtype":"F32","shape":[2],"data_offsets":[0,12])",  // another size
           R"("dtype":"F32","shape":[2],"data_offsets":[8,0])",   // backwards
           R"("dtype":"F32","shape":[2])",                        // no offsets
           R"("dtype":"F32","data_offsets":[0,4])",               // no shape
           R"("shape":[2],"data_offsets":[0,8])",                 // no type
           R"("dtype":"X9","shape":[2],"data_offsets":[0,8])",    // unknown type
           R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])",
           R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])",
           R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])",
           R"("dtype":"F32","shape":[2],"data_offsets":[0,8,9])",
           R"("dtype":"F32","shape":2,"data_offsets":[0,8])",
           R"("dtype":{"F32":1},"shape":[2],"data_offsets":[0,8])",
           // 2^64 elements: the product wraps to 0
           R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])",
           R"("dtype":"F32","shape":[2],"data_offsets":[18446744073709551615,8])",
       })
    EXPECT_NE(one(wrong).find("m.safetensors: the header has"), std::string::npos) << wrong;
  for (const char* root : {"[]", "5", "\"a\"", "null", "[{}]"})
    EXPECT_NE(why(file_of(root)), "read") << root;
}

TEST(Safetensors, IndexNamesFilesOfItsFolderAlone) {
  const auto files = parse_safetensors_index(
      R"({"metadata":{"total_size":8},"weight_map":{"a":"m-2.safetensors","b":"m-1.safetensors","c":"m-2.safetensors"}})",
      "index");
  ASSERT_TRUE(files) << files.error().what;
  EXPECT_EQ(*files, (std::vector<std::string>{"m-1.safetensors", "m-2.safetensors"}));
  for (const char* wrong :
       {"{}", "[]", R"({"weight_map":{"a":"../x"}})", R"({"weight_map":{"a":"/etc/x"}})",
        R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":7}})", R"({"weight_map":{"a":""}})"})
    EXPECT_FALSE(parse_safetensors_index(wrong, "index")) << wrong;
}

TEST(ModelConfig, IsRead) {
  const auto config = parse_model_config(
      R"({"architectures":["LlavaForConditionalGeneration"],"model_type":"llava","auto_map":{},
          "text_config":{"torch_dtype":"bfloat16"},"quantization_config":{"quant_method":"awq"}})",
      "config.json");
  ASSERT_TRUE(config) << config.error().what;
  EXPECT_EQ(config->architectures, std::vector<std::string>{"LlavaForConditionalGeneration"});
  EXPECT_EQ(config->dtype, "bfloat16");
  EXPECT_EQ(config->quantisation, "awq");
  EXPECT_TRUE(config->own_code);
  EXPECT_FALSE(config->adapter);
  EXPECT_TRUE(parse_model_config(R"({"peft_type":"LORA"})", "c")->adapter);
  EXPECT_FALSE(parse_model_config("7", "c"));
  const auto index = parse_model_index(
      R"({"_class_name":"P","unet":["diffusers","UNet2DConditionModel"],"x":[1,2]})", "i");
  ASSERT_TRUE(index);
  ASSERT_EQ(index->size(), 1u);
  EXPECT_EQ((*index)[0].second, "UNet2DConditionModel");
}

}  // namespace safetensors_test
}  // namespace cufit::formats
