// SPDX-License-Identifier: Apache-2.0
#include "formats/model/pack_jobs.h"

namespace cufit::formats {
namespace {

std::vector<JobEntry> read(const std::string& text) {
  const Result<std::vector<JobEntry>> jobs = parse_pack_jobs(text, "jobs.toml");
  EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
  return jobs ? *jobs : std::vector<JobEntry>{};
}
std::string wrong(const std::string& text) {
  const Result<std::vector<JobEntry>> jobs = parse_pack_jobs(text, "jobs.toml");
  return jobs ? "" : jobs.error().text();
}

TEST(PackJobs, EachWayToSayASize) {
  const std::vector<JobEntry> jobs = read(
      "[[job]]\nname = \"a\"\nsize = \"20G\"\ncount = 3\n[[job]]\ntotal = 12.5\n"
      "[[job]]\nsize = 8\n[[job]]\nprediction = \"p.json\"\n[[job]]\nsnapshot = \"s.pickle\"\n"
      "[[job]]\nfit = true\ncommand = \"python t.py\"\n");
  ASSERT_EQ(jobs.size(), 6u);
  EXPECT_EQ(jobs[0].name, "a");
  EXPECT_EQ(jobs[0].size, uint64_t{20} << 30);
  EXPECT_EQ(jobs[0].count, 3u);
  EXPECT_EQ(jobs[1].total, uint64_t{25} << 29);
  EXPECT_EQ(jobs[2].size, uint64_t{8} << 30);
  EXPECT_EQ(jobs[3].prediction, "p.json");
  EXPECT_EQ(jobs[4].snapshot, "s.pickle");
  EXPECT_TRUE(jobs[5].fit);
  EXPECT_EQ(jobs[5].command, (std::vector<std::string>{"python", "t.py"}));
}

TEST(PackJobs, ANameIsOneLine) {
  const std::vector<JobEntry> jobs =
      read("[[job]]\nname = \"a\\n      sbatch b\\t\\u001bc\"\nsize = 1\n");
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_EQ(jobs[0].name, "a       sbatch b  c");
}

TEST(PackJobs, WhatIsWrongNamesFileAndLine) {
  EXPECT_EQ(wrong("[[job]]\nname = \"a\"\n"),
            "jobs.toml, line 1: the job has no size: `size`, `total`, `prediction`, `snapshot`, or "
            "`fit = true`");
  EXPECT_EQ(wrong("[[job]]\nsize = 1\ntotal = 2\n"),
            "jobs.toml, line 1: the job has more than one of `size`, `total`, `prediction`, "
            "`snapshot` and `fit`");
  EXPECT_EQ(wrong("[[job]]\nsize = 1\nvram = 2\n"), "jobs.toml, line 3: a job has no `vram`");
  EXPECT_EQ(wrong("[[job]]\nsize = \"20 bananas\"\n"),
            "jobs.toml, line 2: `size` is a size in GiB such as 22.5, or \"800MiB\"");
  EXPECT_EQ(wrong("[[job]]\nsize = -3\n"),
            "jobs.toml, line 2: `size` is a size in GiB such as 22.5, or \"800MiB\"");
  EXPECT_EQ(wrong("[[job]]\nsize = 1\ncount = 0\n"),
            "jobs.toml, line 3: `count` is a number from 1 to 256");
  EXPECT_EQ(wrong("[[job]]\nfit = true\n"),
            "jobs.toml, line 1: `fit = true` needs the `command` that is traced");
  EXPECT_EQ(wrong("job = 3\n"), "jobs.toml: no [[job]] in it");
  EXPECT_EQ(wrong(""), "jobs.toml: no [[job]] in it");
  EXPECT_EQ(wrong("x = 1\n"), "jobs.toml, line 1: `x` is not known: jobs are written [[job]]");
  EXPECT_NE(wrong("[[job]\n"), "");
}

TEST(PackJobs, NoMoreThanCanBePlanned) {
  std::string many;
  for (int i = 0; i < 3; ++i) many += "[[job]]\nsize = 1\ncount = 100\n";
  EXPECT_EQ(wrong(many), "jobs.toml, line 7: more than 256 jobs");
  EXPECT_EQ(wrong(std::string(k_pack_jobs_most_bytes + 1, '#')), "jobs.toml: larger than 1 MiB");
  EXPECT_NE(wrong("[[job]]\nsize = 1\nname = \"" + std::string(201, 'x') + "\"\n"), "");
}

TEST(PackJobs, ACommandIsWordsAndNothingThatAShellReads) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(command_words("python a.py --x=1"), (Words{"python", "a.py", "--x=1"}));
  EXPECT_EQ(command_words("python 'a b.py' \"c d\" '' e\\ f"),
            (Words{"python", "a b.py", "c d", "", "e f"}));
  EXPECT_EQ(command_words("a'b'\"c\""), (Words{"abc"}));
  EXPECT_EQ(command_words(R"(echo "say \"x\"")"), (Words{"echo", "say \"x\""}));
  for (const char* text : {"a | b", "a; b", "a && b", "a > f", "$(x)", "a $HOME", "`x`", "a *.py",
                           "\"$x\"", "\"`x`\"", "'open", "\"open", "a\\", "a\nb", "(a)", "~/a"})
    EXPECT_FALSE(command_words(text)) << text;
  EXPECT_EQ(wrong("[[job]]\nsize = 1\ncommand = \"a | b\"\n"),
            "jobs.toml, line 3: `command` is one program with its arguments; what needs a shell is "
            "written [\"sh\", \"-c\", \"...\"]");
}

constexpr const char* k_answer =
    R"({"schema":"cufit.fit/1","program":"python a.py","peak_reserved_upper_bytes":5000,)"
    R"("gpus":[{"name":"A30","outside_allocator_bytes":7,"peak_reserved_upper_bytes":4000,"oom":null},)"
    R"({"name":"T4","outside_allocator_bytes":8,"peak_reserved_upper_bytes":null,"oom":{"step":1}}]})";

TEST(FitAnswerJson, WhatPackingNeeds) {
  const Result<FitAnswerFacts> answer = parse_fit_answer(k_answer, "a.json");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->program, "python a.py");
  EXPECT_EQ(answer->peak_reserved_upper, 5000u);
  ASSERT_EQ(answer->gpus.size(), 2u);
  EXPECT_EQ(answer->gpus[0].peak_reserved_upper, 4000u);
  EXPECT_EQ(answer->gpus[0].outside, 7u);
  EXPECT_FALSE(answer->gpus[0].runs_out);
  EXPECT_TRUE(answer->gpus[1].runs_out);
}

TEST(FitAnswerJson, WhatIsNoAnswer) {
  const auto says = [](const std::string& text) {
    const Result<FitAnswerFacts> answer = parse_fit_answer(text, "a.json");
    return answer ? std::string() : answer.error().text();
  };
  EXPECT_EQ(says("{\"schema\""), "a.json: no JSON (byte 10)");
  EXPECT_EQ(says("{}"), "a.json: not an answer of `cufit fit --json`");
  EXPECT_EQ(says("[1]"), "a.json: not an answer of `cufit fit --json`");
  EXPECT_EQ(says(R"({"schema":"cufit.fit/2"})"), "a.json: not an answer of `cufit fit --json`");
  EXPECT_EQ(says(R"({"schema":"cufit.fit/1","error":{}})"),
            "a.json: `cufit fit` had no answer; run it again to see why");
  for (const char* upper : {"-1", "\"5\"", "1.5", "0", "99999999999999999999"})
    EXPECT_EQ(
        says(std::string(R"({"schema":"cufit.fit/1","peak_reserved_upper_bytes":)") + upper + "}"),
        "a.json: no `peak_reserved_upper_bytes`")
        << upper;
  EXPECT_EQ(says(R"({"schema":"cufit.fit/1","peak_reserved_upper_bytes":5,"gpus":[3]})"),
            "a.json: `gpus` has one without name or sizes");
}

}  // namespace
}  // namespace cufit::formats
