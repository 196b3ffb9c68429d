// SPDX-License-Identifier: Apache-2.0
#include "resolve/bench/measured_rank.h"

#include <array>

#include <gtest/gtest.h>

namespace cufit::resolve {
namespace measured_rank_test {

Choice choice(const std::string& torch, const std::string& tag, Fit fit = Fit::works) {
  Choice out;
  out.wheel.torch = torch;
  out.wheel.tag = tag;
  out.verdict.fit = fit;
  return out;
}

Answer answer(std::vector<Choice> usable, const std::string& gpu = "NVIDIA H200") {
  Answer out;
  TargetGpu one;
  one.name = gpu;
  out.target.gpus = {one};
  out.usable = std::move(usable);
  return out;
}

// Of two torches: the second runs at these ratios of the first.
formats::BenchFile file(std::vector<std::array<double, 3>> ratios) {
  formats::BenchFile out;
  out.gpu = "NVIDIA H200";
  out.torches = {{"2.8.0", "cu128"}, {"2.8.0", "cu126"}, {"2.7.1", "cu126"}};
  for (const auto& [low, middle, high] : ratios)
    out.pairs.push_back({0, 1, middle, low, high, "resnet50", "bf16"});
  return out;
}

std::string order(const Answer& one) {
  std::string out;
  for (const Choice& choice : one.usable) out += choice.wheel.torch + "+" + choice.wheel.tag + " ";
  return out;
}

const std::vector<Choice> k_two = {choice("2.8.0", "cu128"), choice("2.8.0", "cu126")};

TEST(MeasuredRank, TheFasterOneComesFirstWithItsEvidence) {
  Answer one = answer(k_two);
  EXPECT_TRUE(rank_by(file({{1.02, 1.03, 1.04}}), "m.json", one));
  EXPECT_EQ(order(one), "2.8.0+cu126 2.8.0+cu128 ");
  ASSERT_EQ(one.usable[0].faster.size(), 1u);
  EXPECT_EQ(one.usable[0].faster[0].than, "2.8.0+cu128");
  EXPECT_EQ(one.usable[0].faster[0].file, "m.json");
  EXPECT_TRUE(one.usable[1].faster.empty());
}

TEST(MeasuredRank, InsideTheNoiseNothingMoves) {
  Answer one = answer(k_two);
  EXPECT_TRUE(rank_by(file({{0.99, 1.03, 1.04}}), "m.json", one));
  EXPECT_EQ(order(one), "2.8.0+cu128 2.8.0+cu126 ");
  EXPECT_TRUE(one.usable[0].faster.empty());
}

TEST(MeasuredRank, WorkloadsThatDisagreeRankNothing) {
  Answer one = answer(k_two);
  rank_by(file({{1.02, 1.03, 1.04}, {0.9, 0.91, 0.92}}), "m.json", one);
  EXPECT_EQ(order(one), "2.8.0+cu128 2.8.0+cu126 ");
}

TEST(MeasuredRank, WhatWasNotMeasuredKeepsItsPlace) {
  Answer one = answer({choice("2.9.0", "cu130"), k_two[0], choice("2.8.0", "cu129"), k_two[1]});
  rank_by(file({{1.02, 1.03, 1.04}}), "m.json", one);
  EXPECT_EQ(order(one), "2.9.0+cu130 2.8.0+cu126 2.8.0+cu129 2.8.0+cu128 ");
}

TEST(MeasuredRank, AnotherGpuSaysNothing) {
  Answer one = answer(k_two, "NVIDIA H100");
  EXPECT_FALSE(rank_by(file({{1.02, 1.03, 1.04}}), "m.json", one));
  EXPECT_EQ(order(one), "2.8.0+cu128 2.8.0+cu126 ");
  TargetGpu other;
  other.name = "NVIDIA H100";
  one = answer(k_two);
  one.target.gpus.push_back(other);
  EXPECT_FALSE(rank_by(file({{1.02, 1.03, 1.04}}), "m.json", one));
}

TEST(MeasuredRank, CudaCompatStaysBehind) {
  Answer one = answer({choice("2.8.0", "cu128"), choice("2.8.0", "cu126", Fit::needs_compat)});
  rank_by(file({{1.02, 1.03, 1.04}}), "m.json", one);
  EXPECT_EQ(order(one), "2.8.0+cu128 2.8.0+cu126 ");
}

// Three that beat each other in a circle, as noise may have it: the order stays, and it ends.
TEST(MeasuredRank, ACircleEnds) {
  formats::BenchFile circle = file({});
  for (size_t i = 0; i < 3; ++i)
    circle.pairs.push_back({i, (i + 1) % 3, 1.1, 1.05, 1.15, "matmul", ""});
  Answer one = answer({k_two[0], k_two[1], choice("2.7.1", "cu126")});
  EXPECT_TRUE(rank_by(circle, "m.json", one));
  EXPECT_EQ(one.usable.size(), 3u);
  EXPECT_EQ(one.usable[0].wheel.tag, "cu128");
}

}  // namespace measured_rank_test
}  // namespace cufit::resolve
