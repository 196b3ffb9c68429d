// SPDX-License-Identifier: Apache-2.0
#include "explain/vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "explain/text_clues.h"

namespace cufit::explain {
namespace vocabulary_test {

using knowledge::Knowledge;

std::string words(std::string_view text) {
  std::string out;
  for (const std::string& word : vocabulary_words(text)) out += word + " ";
  return out;
}

// The same as words_of() of learn/learn.py says.
TEST(Vocabulary, TakesATextApart) {
  EXPECT_EQ(words("CUDA out of memory"), "cuda memory of out ");
  EXPECT_EQ(words("torch.cuda.is_available() 12GB 470.57.02 x"),
            "available cuda gb torch torch.cuda.is_available ");
  EXPECT_EQ(words("_my_var__ libcuda.so.1"), "libcuda libcuda.so.1 my_var var ");
  EXPECT_EQ(words("显存 full。"), "full 存 显 ");
  EXPECT_EQ(words(""), "");
}

TEST(Vocabulary, LeavesOutWhatAllReportsShare) {
  EXPECT_EQ(words("see https://pytorch.org/docs now"), "now see ");
  EXPECT_EQ(words("OOM. Tried to allocate 2 GiB of memory\nnext line"), "line next oom ");
}

constexpr knowledge::VocabularyCause k_causes[] = {{"a", 0.0}, {"b", 0.0}, {"none", -2.0}};
constexpr knowledge::VocabularyWeight k_weights[] = {{0, 8}, {1, -8}, {1, 16}, {2, 40}};
constexpr knowledge::VocabularyWord k_words[] = {
    {{0, 3}, 100, 0, 2}, {{3, 4}, 200, 3, 1}, {{7, 3}, 100, 2, 1}};

Knowledge world() {
  Knowledge out;
  out.pool = "busfineshm";
  out.vocabulary_causes = k_causes;
  out.vocabulary_weights = k_weights;
  out.vocabulary_words = k_words;
  out.weight_scale = 8;
  return out;
}

TEST(Vocabulary, WeighsWordsByRarity) {
  const Votes one = vote(formats::plain_text_lines("bus bus"), {}, world());
  ASSERT_EQ(one.causes.size(), 2u);
  EXPECT_EQ(one.causes[0].cause, "a");
  EXPECT_NEAR(one.causes[0].probability, 1 / (1 + std::exp(-2.0)), 1e-9);
  EXPECT_NEAR(one.needs_none, 1 / (1 + std::exp(2.0)), 1e-9);
  // Two words of equal rarity count 1/sqrt(2) each: a 0.707, b -0.707 + 1.414.
  const Votes two = vote(formats::plain_text_lines("bus\nshm"), {}, world());
  EXPECT_NEAR(two.causes[0].probability, 0.5, 1e-9);
  EXPECT_NEAR(vote(formats::plain_text_lines("fine"), {}, world()).needs_none,
              1 / (1 + std::exp(-3.0)), 1e-9);
}

// Causes of memory are weighed against each other only; which kind is asked for by itself.
TEST(Vocabulary, TellsTheKindFirst) {
  static constexpr knowledge::VocabularyCause k_two_kinds[] = {
      {"a", 0.0}, {"b", 0.0, true}, {"c", 1.0, true}, {"memory", 1.0}};
  Knowledge tables = world();
  tables.vocabulary_causes = k_two_kinds;
  tables.vocabulary_weights = {};
  static constexpr knowledge::VocabularyWord k_silent[] = {{{0, 3}, 100, 0, 0}};
  tables.vocabulary_words = k_silent;
  const Votes votes = vote(formats::plain_text_lines("bus"), {}, tables);
  ASSERT_EQ(votes.causes.size(), 3u);
  const double memory = 1 / (1 + std::exp(-1.0));
  EXPECT_EQ(votes.causes[0].cause, "c");
  EXPECT_NEAR(votes.causes[0].kind, memory, 1e-9);
  EXPECT_NEAR(votes.causes[0].of_kind, memory, 1e-9);  // e / (1 + e) as well
  EXPECT_NEAR(votes.causes[0].probability, memory * memory, 1e-9);
  EXPECT_EQ(votes.causes[1].cause, "a");
  EXPECT_NEAR(votes.causes[1].probability, 1 - memory, 1e-9);
}

// A clue counts as a word does, in a measure of its own.
TEST(Vocabulary, WeighsCluesBesideWords) {
  static constexpr knowledge::VocabularyWeight k_one[] = {{1, 16}, {0, 8}};
  static constexpr knowledge::VocabularyWord k_both[] = {{{10, 4}, 300, 0, 1}, {{0, 3}, 100, 1, 1}};
  Knowledge tables = world();
  tables.pool = "busfineshm@oom";
  tables.vocabulary_weights = k_one;
  tables.vocabulary_words = k_both;
  tables.clue_length = 0.5;
  const std::string_view clues[] = {"oom", "unknown"};
  const Votes votes = vote(formats::plain_text_lines("bus"), clues, tables);
  EXPECT_NEAR(votes.causes[0].probability, 0.5, 1e-9);  // 8/8 * 1 against 16/8 * 0.5
  EXPECT_GT(vote(formats::plain_text_lines("bus"), {}, tables).causes[0].probability, 0.7);
}

// A clue that was added after the table was learned: its vote goes to the causes that ask for it.
TEST(Vocabulary, HearsAClueThatTheTableDoesNotKnow) {
  static constexpr std::string_view k_with[] = {"oom", "brand_new"}, k_without[] = {"!brand_new"};
  static constexpr knowledge::SignRow k_asks[] = {{{}, k_with, 60, false}},
                                      k_excludes[] = {{{}, k_without, 60, false}};
  knowledge::FindingTexts findings[2] = {};
  findings[0].id = "a";
  findings[0].signs = k_excludes;
  findings[1].id = "b";
  findings[1].signs = k_asks;
  // "@", which any such clue counts as, has 32 for both causes and a rarity of 300.
  static constexpr knowledge::VocabularyWeight k_three[] = {{0, 32}, {1, 32}, {0, 8}, {1, -8}};
  static constexpr knowledge::VocabularyWord k_two[] = {{{10, 1}, 300, 0, 2}, {{0, 3}, 100, 2, 2}};
  Knowledge tables = world();
  tables.pool = "busfineshm@";
  tables.findings = findings;
  tables.vocabulary_weights = k_three;
  tables.vocabulary_words = k_two;
  tables.clue_length = 0.5;
  const auto odds = [&](std::span<const std::string_view> clues) {  // of b over a
    const Votes votes = vote(formats::plain_text_lines("bus"), clues, tables);
    const bool first = votes.causes[0].cause == "b";
    return std::log(votes.causes[first ? 0 : 1].probability /
                    votes.causes[first ? 1 : 0].probability);
  };
  const std::string_view one[] = {"brand_new"}, other[] = {"of_nobody"},
                         both[] = {"brand_new", "of_nobody"};
  EXPECT_NEAR(odds({}), -2.0, 1e-9);
  EXPECT_NEAR(odds(one), -2.0 + 32 / 8.0 * 0.5, 1e-9);
  EXPECT_NEAR(odds(other), -2.0, 1e-9);
  EXPECT_NEAR(odds(both), -2.0 + 32 / 8.0 * 0.5, 1e-9);  // what nobody asks for thins nothing out
}

TEST(Vocabulary, SaysWhatANewClueCounts) {
  const Knowledge& all = Knowledge::builtin();
  const auto any = std::find_if(all.vocabulary_words.begin(), all.vocabulary_words.end(),
                                [&](const auto& word) { return all.text(word.word) == "@"; });
  ASSERT_NE(any, all.vocabulary_words.end());
  EXPECT_GT(any->rarity, 0);
  EXPECT_EQ(any->count, all.vocabulary_causes.size() - 2);  // but "none" and "memory"
  for (const auto& weight : all.vocabulary_weights.subspan(any->begin, any->count))
    EXPECT_GT(weight.weight, 0) << all.vocabulary_causes[weight.cause].id;
}

TEST(Vocabulary, SaysNothingOfUnknownWords) {
  const Votes none = vote(formats::plain_text_lines("lorem ipsum"), {}, world());
  EXPECT_TRUE(none.causes.empty());
  EXPECT_EQ(none.needs_none, 0.0);
}

TEST(Vocabulary, ShowsTheLineThatTells) {
  const TellingLine line =
      telling_line(formats::plain_text_lines("fine\nthe bus\nshm bus\n"), world(), "b");
  EXPECT_EQ(line.number, 3u);
  EXPECT_EQ(line.text, "shm bus");
  EXPECT_EQ(telling_line(formats::plain_text_lines("fine"), world(), "b").number, 0u);
}

TEST(Vocabulary, NamesOnlyFindingsThatExist) {
  const Knowledge& all = Knowledge::builtin();
  ASSERT_GT(all.vocabulary_words.size(), 1000u);
  for (const knowledge::VocabularyCause& cause : all.vocabulary_causes)
    EXPECT_TRUE(cause.id == "none" || cause.id == "memory" || all.find_texts(cause.id)) << cause.id;
  for (size_t i = 1; i < all.vocabulary_words.size(); ++i)
    ASSERT_LT(all.text(all.vocabulary_words[i - 1].word), all.text(all.vocabulary_words[i].word));
}

std::string clues(const std::string& text) {
  std::string out;
  for (const ComputedClue& clue : text_clues(formats::plain_text_lines(text)))
    out += clue.id + "@" + std::to_string(clue.line) + " ";
  return out;
}

TEST(TextClues, CompareTheGpuWithTheWheelsList) {
  const std::string list =
      "The current PyTorch install supports CUDA capabilities sm_70 sm_80 sm_90.\n";
  EXPECT_EQ(clues("Tesla P100 with CUDA capability sm_60 is not compatible\n" + list),
            "arch_below_list@1 ");
  EXPECT_EQ(clues(list + "RTX 5090 with CUDA capability sm_120 is not compatible\n"),
            "arch_above_list@2 ");
  EXPECT_EQ(clues(list + "with CUDA capability sm_86 is not compatible\n"), "");
  EXPECT_EQ(clues("with CUDA capability sm_60 is not compatible"), "");
}

TEST(TextClues, SeeThatMostMemoryWasFree) {
  EXPECT_EQ(clues("free/total before: 23.31 / 23.65 GiB"), "memory_mostly_free@1 ");
  EXPECT_EQ(clues("(free, total) = (15.2 GiB, 15.8 GiB)"), "memory_mostly_free@1 ");
  EXPECT_EQ(clues("free/total: 0.3 / 23.65 GiB"), "");
  EXPECT_EQ(clues("free lunch in total"), "");
}

TEST(TextClues, CompareKvBlocksWithTheLongestSequence) {
  const std::string config = "engine with config: max_seq_len=32768, tensor_parallel_size=1\n";
  EXPECT_EQ(clues(config + "# GPU blocks: 2047, # CPU blocks: 655"), "kv_blocks_below_length@2 ");
  EXPECT_EQ(clues(config + "# GPU blocks: 2048, # CPU blocks: 655"), "");
  EXPECT_EQ(clues("block_size=32, max_seq_len=32768\n# GPU blocks: 1842"), "");
  EXPECT_EQ(clues("# GPU blocks: 12"), "");
}

TEST(TextClues, SeeTheFirstGpuOfOneProcessFuller) {
  const std::string first = "|    0       680      C   .../bin/python3.6  8743MiB |\n",
                    second = "|    1       680      C   .../bin/python3.6  2439MiB |\n",
                    third = "|    2   N/A  N/A       680      C   python3.6  2439MiB |\n";
  EXPECT_EQ(clues(first + second + third), "first_gpu_fuller@1 ");
  EXPECT_EQ(clues(first + second), "");
  EXPECT_EQ(clues(second + third + "|    3       680      C   python3.6  8743MiB |"), "");
  EXPECT_EQ(clues(first + "|    1       681      C   python  2439MiB |\n|    2       682      C   "
                          "python  2439MiB |"),
            "");
  EXPECT_EQ(clues("|   |\n| 0 C\n|    0       680      C   python  MiB |"), "");
}

TEST(TextClues, SeeMemoryInUseThatNoListedProcessHolds) {
  const std::string
      head = "|   0  Tesla V100-SXM2...  On   | 00000000:1A:00.0 Off |            0 |\n",
      full = "| N/A   36C    P0    43W / 300W |  15219MiB / 16160MiB |   0%  Default |\n",
      little = "| N/A   36C    P0    43W / 300W |    519MiB / 16160MiB |   0%  Default |\n",
      list = "| Processes:                                        GPU Memory |\n",
      elsewhere = "|    1      2214      C   python3                      9043MiB |\n",
      here = "|    0      2214      C   python3                     15209MiB |\n";
  EXPECT_EQ(clues(head + full + list + elsewhere), "smi_use_without_process@1 ");
  EXPECT_EQ(clues(head + little + list + elsewhere), "");
  EXPECT_EQ(clues(head + full + list + here), "");
  EXPECT_EQ(clues(head + full), "");  // the list is not there, or empty in a container
  EXPECT_EQ(clues(head + full + list + "|    0      2214      C   python3     N/A |\n"), "");
}

TEST(TextClues, SeeACommandThatAsksForNoGpu) {
  EXPECT_EQ(clues("$ docker run -it --rm pytorch/pytorch bash"), "docker_run_plain@1 ");
  EXPECT_EQ(clues("docker run -it --gpus all pytorch/pytorch bash"), "");
  EXPECT_EQ(clues("docker run -it \\\n  --runtime=nvidia \\\n  image"), "");
  EXPECT_EQ(clues("docker run -it \\\n  -v /data:/data \\\n  image"), "docker_run_plain@1 ");
  EXPECT_EQ(clues("with docker run it fails"), "");
}

}  // namespace vocabulary_test
}  // namespace cufit::explain
