// SPDX-License-Identifier: Apache-2.0
#include "formats/model/gguf.h"

#include <gtest/gtest.h>

#include "formats/model/decoder_config.h"
#include "support/gguf_bytes.h"

namespace cufit::formats {
namespace gguf_test {

using test::le;
using test::text;

std::string number(const std::string& key, uint64_t value) {
  return text(key) + le(4, 4) + le(value, 4);
}
std::string words(const std::string& key, const std::string& value) {
  return text(key) + le(8, 4) + text(value);
}
std::string tensor(const std::string& name, std::vector<uint64_t> shape, uint32_t type,
                   uint64_t offset) {
  std::string out = text(name) + le(shape.size(), 4);
  for (const uint64_t size : shape) out += le(size, 8);
  return out + le(type, 4) + le(offset, 8);
}
std::string file(uint64_t tensors, uint64_t entries, const std::string& rest,
                 uint32_t version = 3) {
  return "GGUF" + le(version, 4) + le(tensors, 8) + le(entries, 8) + rest;
}

Result<Gguf> read(std::string bytes) { return read_gguf(MemorySource("m.gguf", std::move(bytes))); }
std::string why(std::string bytes) {
  const Result<Gguf> got = read(std::move(bytes));
  return got ? "read" : got.error().what;
}

std::string small() {
  const std::string header =
      file(2, 5,
           words("general.architecture", "llama") + number("llama.block_count", 2) +
               text("llama.attention.head_count_kv") + le(9, 4) + le(5, 4) + le(2, 8) + le(4, 4) +
               le(8, 4) + text("tokenizer.ggml.tokens") + le(9, 4) + le(8, 4) + le(2, 8) +
               text("a") + text("bc") + text("x") + le(6, 4) + le(0x3f000000, 4) +
               tensor("token_embd.weight", {256, 10}, 12, 0) +
               tensor("output.weight", {256, 10}, 14, 1440));
  return header + std::string((header.size() + 31) / 32 * 32 - header.size(), '\0') +
         std::string(1440 + 2100, '\1');
}

TEST(Gguf, MetadataAndTensorsAreRead) {
  const auto got = read(small());
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_EQ(got->text("general.architecture"), "llama");
  EXPECT_EQ(got->number("llama.block_count"), 2u);
  EXPECT_EQ(got->find("llama.attention.head_count_kv")->numbers, (std::vector<uint64_t>{4, 8}));
  EXPECT_EQ(got->find("tokenizer.ggml.tokens")->count, 2u);
  EXPECT_DOUBLE_EQ(got->find("x")->real, 0.5);
  ASSERT_EQ(got->tensors.size(), 2u);
  EXPECT_EQ(got->tensors[0].dtype, "Q4_K");
  EXPECT_EQ(got->tensors[0].bytes, 10u * 144);
  EXPECT_EQ(got->tensors[1].bytes, 10u * 210);
  EXPECT_EQ(got->missing_bytes, 0u);
  std::string cut = small();
  cut.resize(cut.size() - 7);
  EXPECT_EQ(read(cut)->missing_bytes, 7u);
}

TEST(Gguf, BlocksOfEveryType) {
  // Bits of a weight as llama.cpp's own table of quantisations has them.
  for (const auto& [name, bits] :
       {std::pair("Q4_0", 4.5), std::pair("Q5_1", 6.0), std::pair("Q8_0", 8.5),
        std::pair("Q2_K", 2.625), std::pair("Q3_K", 3.4375), std::pair("Q4_K", 4.5),
        std::pair("Q5_K", 5.5), std::pair("Q6_K", 6.5625), std::pair("IQ2_XXS", 2.0625),
        std::pair("IQ4_XS", 4.25), std::pair("IQ1_S", 1.5625), std::pair("IQ1_M", 1.75),
        std::pair("TQ1_0", 1.6875), std::pair("MXFP4", 4.25), std::pair("BF16", 16.0),
        std::pair("q4_k", 4.5)}) {
    const GgmlType* type = ggml_type(name);
    ASSERT_NE(type, nullptr) << name;
    EXPECT_DOUBLE_EQ(8.0 * type->block_bytes / type->block, bits) << name;
  }
  EXPECT_EQ(ggml_type(4), nullptr);  // Q4_2 is gone
}

TEST(Gguf, WhatIsNoneIsAnError) {
  EXPECT_EQ(why("GGML1234"), "m.gguf: byte 0: no GGUF file");
  EXPECT_EQ(why("GG"), "m.gguf: byte 0: the file ends within its header");
  EXPECT_EQ(why(file(0, 0, "", 1)), "m.gguf: byte 8: GGUF version 1; versions 2 and 3 are read");
  EXPECT_EQ(why(file(uint64_t{1} << 60, 0, "")),
            "m.gguf: byte 24: 1152921504606846976 tensors and 0 entries");
  EXPECT_EQ(why(file(0, 1, le(uint64_t{1} << 40, 8))),
            "m.gguf: byte 32: a key of 1099511627776 bytes");
  EXPECT_EQ(why(file(0, 1, text("k") + le(13, 4))), "m.gguf: byte 37: `k` has the unknown type 13");
  EXPECT_EQ(why(file(0, 1, text("k") + le(9, 4) + le(9, 4) + le(1, 8))),
            "m.gguf: byte 49: a list of elements of type 9");
  EXPECT_EQ(why(file(0, 1, text("k") + le(9, 4) + le(8, 4) + le(uint64_t{1} << 26, 8))),
            "m.gguf: byte 49: the file ends within its header");
  EXPECT_EQ(why(file(1, 0, tensor("t", {256}, 4, 0))),
            "m.gguf: byte 57: `t` has type 4 of ggml, which this cufit does not know");
  EXPECT_EQ(why(file(1, 0, tensor("t", {100}, 12, 0))),
            "m.gguf: byte 57: a row of `t` is no whole number of blocks");
  EXPECT_EQ(why(file(1, 0, tensor("t", {uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0))),
            "m.gguf: byte 53: `t` has a shape beyond any file");
}

// Whole numbers of every width; below zero is none.
TEST(Gguf, NumbersOfEveryWidth) {
  const auto value = [](uint32_t type, uint64_t number, size_t bytes) {
    return read(file(0, 1, text("k") + le(type, 4) + le(number, bytes)))->number("k", 77);
  };
  EXPECT_EQ(value(0, 200, 1), 200u);
  EXPECT_EQ(value(1, 100, 1), 100u);
  EXPECT_EQ(value(1, 200, 1), 0u);
  EXPECT_EQ(value(2, 60000, 2), 60000u);
  EXPECT_EQ(value(3, 60000, 2), 0u);
  EXPECT_EQ(value(4, 4000000000, 4), 4000000000u);
  EXPECT_EQ(value(5, 4000000000, 4), 0u);
  EXPECT_EQ(value(7, 5, 1), 1u);
  EXPECT_EQ(value(10, uint64_t{1} << 63, 8), uint64_t{1} << 63);
  EXPECT_EQ(value(11, uint64_t{1} << 63, 8), 0u);
  EXPECT_EQ(value(11, 9, 8), 9u);
  EXPECT_EQ(value(6, 9, 4), 77u);  // a real is no whole number
}

// Of one list 4096 numbers are kept, of all lists 1 << 20.
TEST(Gguf, SoManyNumbersAreKept) {
  const auto list = [](const std::string& key, uint64_t count) {
    return text(key) + le(9, 4) + le(0, 4) + le(count, 8) + std::string(count, '\1');
  };
  std::string lists;
  for (int i = 0; i < 257; ++i) lists += list("k" + std::to_string(i), 4096);
  const auto got = read(file(0, 258, list("long", 4097) + lists));
  ASSERT_TRUE(got) << got.error().what;
  EXPECT_TRUE(got->find("long")->numbers.empty());
  EXPECT_EQ(got->find("long")->count, 4097u);
  EXPECT_EQ(got->find("k255")->numbers.size(), 4096u);
  EXPECT_TRUE(got->find("k256")->numbers.empty());
  EXPECT_EQ(got->find("k256")->count, 4096u);
}

TEST(Gguf, SaysWhatConfigJsonSays) {
  const auto config = decoder_config_of(*read(small()), "m.gguf");
  ASSERT_TRUE(config) << config.error().what;
  EXPECT_EQ(config->model_type, "llama");
  EXPECT_EQ(config->layers, 2u);
  EXPECT_EQ(config->kv_heads_by_layer, (std::vector<uint64_t>{4, 8}));
  EXPECT_EQ(config->vocab, 10u);
  EXPECT_FALSE(config->tied);
  EXPECT_EQ(decoder_config_of(*read(file(0, 0, "")), "m.gguf").error().what,
            "m.gguf: no `general.architecture`");
}

// deepseek-coder-v2 of 2024 keeps 16 heads of 192 and 128, not the compressed vector.
TEST(Gguf, OlderFilesOfDeepSeekAreUnpacked) {
  const auto config = [](bool packed) {
    std::string entries = words("general.architecture", "deepseek2") +
                          number("deepseek2.attention.kv_lora_rank", 512) +
                          number("deepseek2.rope.dimension_count", 64);
    if (packed) entries += number("deepseek2.attention.key_length_mla", 192);
    return *decoder_config_of(*read(file(0, packed ? 4 : 3, entries)), "m.gguf");
  };
  EXPECT_EQ(config(false).kv_lora_rank, 0u);
  EXPECT_EQ(config(true).kv_lora_rank, 512u);
  EXPECT_EQ(config(true).rope_head_dim, 64u);
}

}  // namespace gguf_test
}  // namespace cufit::formats
