// SPDX-License-Identifier: Apache-2.0
// The commands that `cufit pack` prints are taken by `cufit run`, by a shell and with every word as it was written.
#include <filesystem>

#include <nlohmann/json.hpp>

#include "guarded.h"

namespace cufit::test {
namespace {

using Json = nlohmann::json;

bool has_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class GuardPack : public Guarded {
 protected:
  // `cufit` in the commands is the program under test.
  Ran shell(const std::string& command) {
    return cufit(
        "mkdir -p \"$DIR/bin\"; ln -sf \"$CUFIT\" \"$DIR/bin/cufit\"\n"
        "PATH=\"$DIR/bin:$PATH\"; cd \"$DIR\"\n" +
        command);
  }
  Json pack(const std::string& jobs, const std::string& arguments = "") {
    write_bytes(path("jobs.toml"), jobs);
    const Ran ran = shell("cufit pack jobs.toml --json " + arguments);
    EXPECT_LE(ran.code(), 1) << ran.err;
    return Json::parse(ran.out, nullptr, false);
  }
};

// What needs a shell is refused, and nothing of it is run.
TEST_F(GuardPack, WhatNeedsAShell) {
  for (const char* command : {"/usr/bin/printf x > y", "echo ~", "echo $(touch pwned)", "a; b"}) {
    write_bytes(path("jobs.toml"), "[[job]]\nsize = 1\ncommand = '" + std::string(command) + "'\n");
    const Ran ran = shell("cufit pack jobs.toml");
    EXPECT_EQ(ran.code(), 3) << command << ran.err;
    EXPECT_TRUE(has_text(ran.err, "jobs.toml, line 3")) << ran.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("pwned")));
}

TEST_F(GuardPack, WordsArriveAsTheyWere) {
  const Json said = pack(R"toml(
[[job]]
name = "a'; touch pwned; '"
size = "0.9333G"
command = ["/usr/bin/printf", "<%s>", "it's $HOME `touch pwned` \"x\"", "--vram", "-", "", "*", "a\nb", "\u001b[31m", "\\", "$(touch pwned)"]
[[job]]
total = "17MiB"
command = ["/usr/bin/printf", "<%s>", "small"]
[[job]]
size = 0.4
command = "/usr/bin/printf '<%s>' 'two words'"
)toml");
  ASSERT_EQ(said["gpus"].size(), 1u) << said.dump(1);
  std::string out;
  uint64_t sum = 0;
  for (const Json& job : said["gpus"][0]["jobs"]) {
    const Ran ran = shell(job["command"].get<std::string>());
    EXPECT_EQ(ran.code(), 0) << job["command"] << ran.err;
    out += ran.out + "|";
    sum += job["bytes"].get<uint64_t>();
  }
  EXPECT_EQ(out,
            "<it's $HOME `touch pwned` \"x\"><--vram><-><><*><a\nb><\x1b[31m><\\><$(touch pwned)>|"
            "<two words>|<small>|");
  EXPECT_LE(sum, 4096 * k_mib);
  EXPECT_FALSE(std::filesystem::exists(path("pwned")));
}

// As much as the card has: the limit is not larger than it.
TEST_F(GuardPack, TheLastByteOfTheCard) {
  const Json said = pack("[[job]]\ntotal = \"4096MiB\"\ncommand = \"/bin/true\"\n");
  ASSERT_EQ(said["gpus"][0]["jobs"].size(), 1u) << said.dump(1);
  const Ran ran = shell(said["gpus"][0]["jobs"][0]["command"].get<std::string>());
  EXPECT_EQ(ran.code(), 0) << ran.err;
  EXPECT_EQ(pack("[[job]]\ntotal = \"4097MiB\"\n")["unplaced"].size(), 1u);
}

}  // namespace
}  // namespace cufit::test
