// SPDX-License-Identifier: Apache-2.0
#include "formats/python/requirement.h"

#include <gtest/gtest.h>

namespace cufit::formats {
namespace requirement_test {

// Sorted as PEP 440 orders them; every pair is compared both ways.
const char* const k_order[] = {"1.dev0",
                               "1.0.dev456",
                               "1.0a1",
                               "1.0a2.dev456",
                               "1.0a12.dev456",
                               "1.0a12",
                               "1.0b1.dev456",
                               "1.0b2",
                               "1.0b2.post345.dev456",
                               "1.0b2.post345",
                               "1.0rc1.dev456",
                               "1.0rc1",
                               "1.0",
                               "1.0+abc.5",
                               "1.0+abc.7",
                               "1.0+5",
                               "1.0.post456.dev34",
                               "1.0.post456",
                               "1.0.15",
                               "1.1.dev1",
                               "2.7.1",
                               "2.7.1+cu118",
                               "2.7.1+cu126",
                               "2.10.0",
                               "1!0.1"};

TEST(PythonVersion, OrderOfPep440) {
  for (size_t i = 0; i < std::size(k_order); ++i) {
    const auto a = parse_python_version(k_order[i]);
    ASSERT_TRUE(a) << k_order[i];
    for (size_t j = 0; j < std::size(k_order); ++j) {
      const auto b = parse_python_version(k_order[j]);
      ASSERT_TRUE(b) << k_order[j];
      EXPECT_EQ(compare(*a, *b), i <=> j) << k_order[i] << " " << k_order[j];
    }
  }
}

TEST(PythonVersion, EqualSpellings) {
  const std::pair<const char*, const char*> same[] = {
      {"1.0", "1.0.0"},       {"1.0a1", "1.0.alpha.1"}, {"1.0rc1", "1.0-c1"},
      {"1.0.post1", "1.0-1"}, {"v2.14.1", "2.14.1"},    {"1.0+ubuntu-1", "1.0+ubuntu.1"},
      {"1.0RC1", "1.0rc1"},   {"1.0.post1", "1.0.rev1"}};
  for (const auto& [x, y] : same) {
    const auto a = parse_python_version(x), b = parse_python_version(y);
    ASSERT_TRUE(a && b) << x << " " << y;
    EXPECT_EQ(compare(*a, *b), std::strong_ordering::equal) << x << " " << y;
  }
}

TEST(PythonVersion, NoVersions) {
  for (const char* text : {"", "cu126", "1.0.", "1..0", "1.0+", "1.0+a b", "1.0a1b2",
                           "1.0dev1post1", "99999999999999999999", "1.0 "})
    EXPECT_FALSE(parse_python_version(text)) << text;
}

TEST(Requirement, Clauses) {
  struct Case {
    const char *clauses, *version;
    bool holds;
  };
  const Case cases[] = {{">=2.4", "2.4.0", true},
                        {">=2.4,<3", "3.0", false},
                        {"==2.7.*", "2.7.1", true},
                        {"==2.7.*", "2.8.0", false},
                        {"!=2.6.0", "2.6.0", false},
                        {"~=2.7.1", "2.7.9", true},
                        {"~=2.7.1", "2.8.0", false},
                        {"~=2.7", "2.99", true},
                        {"~=2.7", "3.0", false},
                        {"==2.7.1", "2.7.1+cu126", true},
                        {"==2.7.1+cu126", "2.7.1+cu126", true},
                        {"==2.7.1+cu126", "2.7.1+cu118", false},
                        {"==2.7.1+cu126", "2.7.1", false},
                        {">2.7.0", "2.7.0.post1", false},
                        {"<2.7.0", "2.7.0rc1", false},
                        {"<2.7", "2.6.9", true},
                        {"<=2.7", "2.7.0+cu118", true},
                        {"===2.7.1", "2.7.1", true},
                        {"===2.7.1", "2.7.1+cu1", false},
                        {"", "anything", true}};
  for (const Case& one : cases) {
    const auto clauses = parse_clauses(one.clauses);
    ASSERT_TRUE(clauses) << one.clauses;
    EXPECT_EQ(satisfies(*clauses, one.version), one.holds) << one.clauses << " " << one.version;
  }
}

TEST(Requirement, Parts) {
  const auto full =
      parse_requirement(" Flash_Attn[a, B] (>=2.6.3, !=2.7) ; python_version < '3.13'  # why");
  ASSERT_TRUE(full) << full.error().what;
  EXPECT_EQ(full->name, "flash-attn");
  EXPECT_EQ(full->extras, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(full->clauses.size(), 2u);
  EXPECT_EQ(full->clauses[1].op + full->clauses[1].version, "!=2.7");
  EXPECT_EQ(full->marker, "python_version < '3.13'");
  const auto url = parse_requirement("torch @ file:///w/torch-2.9.1+cu126-cp312.whl#sha256=ab ; x");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->url, "file:///w/torch-2.9.1+cu126-cp312.whl#sha256=ab");
}

TEST(Requirement, WrongOnesNameTheColumn) {
  const std::pair<const char*, const char*> wrong[] = {{"", "column 1"},
                                                       {"torch=2.7", "column 6"},
                                                       {"torch>=", "a version is expected"},
                                                       {"torch>=2.*", "`.*` goes"},
                                                       {"torch[x", "`]`"},
                                                       {"torch ~=2", "two parts"},
                                                       {"==2.7", "package name"},
                                                       {"torch 2.7", "operator"},
                                                       {"torch>=2.7 numpy", "column 12"}};
  for (const auto& [text, part] : wrong) {
    const auto result = parse_requirement(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().what.find(part), std::string::npos) << result.error().what;
  }
}

TEST(RequirementsFile, LinesOptionsAndHashes) {
  const auto file = parse_requirements_file(
      "# comment\n--index-url http://127.0.0.1/simple\r\ntorch==2.7.1 \\\n  --hash=sha256:ab \\\n"
      "  --hash=sha256:cd\n\nnumpy>=1.26 # fast\n-r more.txt\n",
      "r.txt");
  ASSERT_TRUE(file) << file.error().text();
  ASSERT_EQ(file->requirements.size(), 2u);
  EXPECT_EQ(file->requirements[0].text, "torch==2.7.1");
  EXPECT_EQ(file->requirements[1].text, "numpy>=1.26");
  EXPECT_EQ(file->options,
            (std::vector<std::string>{"--index-url http://127.0.0.1/simple", "-r more.txt"}));
  const auto wrong = parse_requirements_file("numpy\n\ntorch=2\n", "r.txt");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text().find("r.txt, line 3"), std::string::npos) << wrong.error().text();
}

TEST(Requirement, MinorVersionsByTheirPatches) {
  const struct {
    const char *clauses, *minor;
    bool holds;
  } cases[] = {
      {">=3.10.4", "3.10", true},        {"==3.11.*", "3.11", true},  {"==3.11.7", "3.11", true},
      {">3.10.2,<3.10.4", "3.10", true}, {"<3.10", "3.10", false},    {"<=3.10", "3.10", true},
      {">3.10", "3.10", true},           {"!=3.10.*", "3.10", false}, {"!=3.10.0", "3.10", true},
      {"~=3.9", "3.13", true},           {"~=3.9.2", "3.10", false},  {"", "3.10", true}};
  for (const auto& one : cases) {
    const auto clauses = parse_clauses(one.clauses);
    if (*one.clauses != 0) {
      ASSERT_TRUE(clauses) << one.clauses;
    }
    EXPECT_EQ(some_patch_satisfies(clauses ? *clauses : std::vector<VersionClause>(), one.minor),
              one.holds)
        << one.clauses << " " << one.minor;
  }
}

}  // namespace requirement_test
}  // namespace cufit::formats
