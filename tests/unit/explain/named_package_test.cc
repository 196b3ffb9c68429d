// SPDX-License-Identifier: Apache-2.0
#include "explain/named_package.h"

#include <gtest/gtest.h>

namespace cufit::explain {
namespace named_package_test {

// "PACKAGE REQUIREMENT MODULE" of a cause; '-' where nothing names it.
std::string named(const char* id, std::string_view text, uint64_t shown_line = 0) {
  const std::vector<formats::TextLine> lines = formats::plain_text_lines(text);
  Cause cause;
  cause.id = cause.finding.id = id;
  cause.finding.variant = "text";
  for (const formats::TextLine& line : lines) {
    if (line.number == shown_line) cause.evidence.push_back({line.number, line.text, {}});
  }
  std::vector<Cause> causes = {cause};
  name_packages(causes, lines, knowledge::Knowledge::builtin());
  std::string out;
  for (const char* key : {"PACKAGE", "REQUIREMENT", "MODULE"}) {
    const auto found = causes[0].finding.args.find(key);
    out += (out.empty() ? "" : " ") +
           (found == causes[0].finding.args.end() ? std::string("-") : found->second);
  }
  if (causes[0].finding.variant != "text") out += " " + causes[0].finding.variant;
  return out;
}
std::string built(std::string_view text, uint64_t line = 0) {
  return named("build_isolation_hides_torch", text, line);
}
std::string loaded(std::string_view text, uint64_t line = 0) {
  return named("ext_abi_mismatch", text, line);
}

TEST(NamedPackage, OfABuild) {
  EXPECT_EQ(built("ERROR: Failed building wheel for flash_attn"),
            "flash-attn flash-attn flash_attn");
  EXPECT_EQ(built("$ pip install flash-attn==2.5.8\nERROR: Failed building wheel for flash-attn"),
            "flash-attn flash-attn==2.5.8 flash_attn");
  EXPECT_EQ(built("$ pip install our-kernels\nno torch", 2), "our-kernels our-kernels -");
  EXPECT_EQ(built("$ pip install numpy flash-attn\nno torch", 2),
            "flash-attn flash-attn flash_attn");
  EXPECT_EQ(built("flash-attn does not build", 1), "flash-attn flash-attn flash_attn");
}

TEST(NamedPackage, NoneAndSeveralStay) {
  EXPECT_EQ(built("nvcc fatal", 1), "- - -");
  EXPECT_EQ(built("Failed building wheel for flash-attn\nFailed building wheel for mamba-ssm"),
            "- - -");
  EXPECT_EQ(built("$ pip install -r r.txt\nno torch", 2), "- - -");
  EXPECT_EQ(built("$ pip install a1 b2\nno torch", 2), "- - -");
  EXPECT_EQ(built("pip install fails", 1), "- - -");
  EXPECT_EQ(built("Failed to build extension"), "- - -");
  EXPECT_EQ(built("no torch\n$ pip install a1\n$ pip install b2", 1), "- - -");
}

TEST(NamedPackage, NeverTorchNorTheToolsOfABuild) {
  for (const char* name : {"torch", "torchvision", "triton", "pip", "setuptools", "wheel", "ninja"})
    EXPECT_EQ(built(std::string("ERROR: Failed building wheel for ") + name), "- - -") << name;
  EXPECT_EQ(loaded("ImportError: /v/site-packages/torch/lib/libtorch.so: undefined symbol: _Z"),
            "- - -");
}

TEST(NamedPackage, AProjectOfTheUsersOwnIsNoneOfTheIndex) {
  EXPECT_EQ(built("Processing /home/me/ours\nERROR: Failed building wheel for ours"), "- - -");
  EXPECT_EQ(built("Processing /home/me/fa\nERROR: Failed building wheel for flash-attn"),
            "flash-attn flash-attn flash_attn");
}

TEST(NamedPackage, WhatTheIndexDoesNotHave) {
  EXPECT_EQ(built("ERROR: Failed building wheel for detectron2"),
            "detectron2 git+https://github.com/facebookresearch/detectron2.git detectron2");
  EXPECT_EQ(loaded("ModuleNotFoundError: No module named 'amp_C'"), "- - apex");
  EXPECT_EQ(loaded("ImportError: /v/site-packages/bitsandbytes/lib.so: undefined symbol: _Z"),
            "bitsandbytes bitsandbytes bitsandbytes text.wheels");
}

TEST(NamedPackage, OfAnExtension) {
  EXPECT_EQ(loaded("ImportError: No module named 'flash_attn_2_cuda'"),
            "flash-attn flash-attn flash_attn");
  EXPECT_EQ(loaded("ImportError: /v/site-packages/mmcv/_ext.cpython-310.so: undefined symbol: _Z"),
            "mmcv mmcv mmcv");
  EXPECT_EQ(loaded("mmcv-full 1.7.2\nImportError: No module named 'mmcv._ext'"),
            "mmcv-full mmcv-full mmcv");
  EXPECT_EQ(loaded("ImportError: /v/site-packages/ourpkg/_C.so: undefined symbol: _Z"),
            "ourpkg ourpkg ourpkg");
  EXPECT_EQ(loaded("ImportError: /v/site-packages/cv2/cv2.abi3.so: undefined symbol: _Z"), "- - -");
  EXPECT_EQ(loaded("ImportError: No module named 'our_cuda'"), "- - -");
  EXPECT_EQ(loaded("ImportError: No module named 'our_cuda'\nNo module named 'flash_attn_2_cuda'"),
            "- - -");
  // The line that shows the cause speaks before others.
  EXPECT_EQ(loaded("No module named 'our_cuda'\nNo module named 'flash_attn_2_cuda'", 2),
            "flash-attn flash-attn flash_attn");
}

TEST(NamedPackage, OnlyCausesAboutPackages) {
  EXPECT_EQ(named("driver_too_old", "ERROR: Failed building wheel for flash-attn"), "- - -");
}

TEST(NamedPackage, TheTableMayBeWrittenIntoCommands) {
  for (const knowledge::ExtensionModuleRow& row :
       knowledge::Knowledge::builtin().extension_modules) {
    EXPECT_EQ(row.package.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789-_"),
              row.package.npos);
    EXPECT_EQ(row.origin.find_first_of(" ;&|$`'\"<>()"), row.origin.npos) << row.package;
    EXPECT_TRUE(row.origin.empty() || row.origin == "wheels" || row.origin == "none" ||
                row.origin.rfind("git+https://", 0) == 0)
        << row.package;
  }
}

}  // namespace named_package_test
}  // namespace cufit::explain
