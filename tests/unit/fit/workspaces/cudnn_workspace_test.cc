// SPDX-License-Identifier: Apache-2.0
#include "fit/workspaces/cudnn_workspace.h"

#include <gtest/gtest.h>

#include "fit/workspaces/conv_choice.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace cudnn_workspace_test {

const knowledge::Knowledge& builtin() { return knowledge::Knowledge::builtin(); }

std::vector<uint64_t> conv(uint64_t bits, uint64_t batch, uint64_t channels, uint64_t outputs,
                           uint64_t pixels, uint64_t kernel, bool last = false) {
  const uint64_t padding = kernel / 2;
  return {bits,   batch,  channels, outputs, 1, 0, last ? 1u : 0u, 2,       pixels, pixels,
          pixels, pixels, kernel,   kernel,  1, 1, padding,        padding, 1,      1};
}

SizeAt bytes_of(const std::vector<uint64_t>& numbers, ConvPass pass, const CudnnAnswer& answer) {
  return cudnn_workspace(conv_shape(numbers).value(), pass, answer, {}, builtin());
}

// A cluster of `down` times `across` thread blocks.
CudnnAnswer answer(uint64_t bytes, uint32_t tile = 0, uint32_t down = 0, uint32_t across = 0,
                   bool divides = false, uint32_t engine = 0) {
  return {bytes, bytes, 0, tile, down * across, across, engine, divides};
}

struct Row {
  std::vector<uint64_t> numbers;
  ConvPass pass;
  CudnnAnswer answer;
  uint64_t real;
};

void expect_measured(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const SizeAt got = bytes_of(row.numbers, row.pass, row.answer);
    EXPECT_NEAR(static_cast<double>(got.point), static_cast<double>(row.real), 1024)
        << row.real << " pass " << static_cast<int>(row.pass);
    EXPECT_GE(got.upper, row.real);
    EXPECT_GE(got.upper, got.point);
  }
}

// What cuDNN 9.19 answers without a GPU for compute capability 9.0, and what torch 2.11 took on an
// H100.
TEST(CudnnWorkspace, IsThatOfAnH100) {
  expect_measured({
      {conv(32, 16, 64, 64, 56, 3), ConvPass::forward, answer(12992528, 2), 12992528},
      {conv(32, 16, 64, 64, 56, 3), ConvPass::data_gradient, answer(25837584, 5), 25837584},
      {conv(32, 16, 64, 64, 56, 3), ConvPass::weight_gradient, answer(26132691, 6, 1, 1, true),
       27902631},
      {conv(16, 16, 64, 64, 56, 3), ConvPass::forward, answer(12918931, 5, 1, 7), 12918800},
      {conv(16, 16, 64, 64, 56, 3), ConvPass::weight_gradient, answer(13213907, 6, 1, 3, true),
       14836391},
      {conv(16, 64, 64, 64, 56, 3), ConvPass::data_gradient, answer(51454099, 2, 7, 1, true),
       51454099},
      {conv(16, 64, 64, 64, 56, 3), ConvPass::weight_gradient, answer(51749075, 6, 1, 3, true),
       53371559},
      // By cuBLAS.
      {conv(32, 64, 128, 512, 28, 1),
       ConvPass::forward,
       {25952272, 25952272, 0, 1, 0, 0, 38, false},
       400},
      {conv(32, 64, 128, 512, 28, 1),
       ConvPass::data_gradient,
       {128450707, 128450707, 0, 1, 1, 1, 71, false},
       0},
      {conv(32, 64, 128, 512, 28, 1),
       ConvPass::weight_gradient,
       {128975055, 128975055, 0, 2, 2, 2, 68, true},
       16777216},
      {conv(16, 64, 512, 2048, 7, 1),
       ConvPass::forward,
       {16056467, 16056467, 0, 1, 2, 2, 62, false},
       16056467},
  });
}

std::vector<uint64_t> conv_of(uint64_t bits, uint64_t batch, uint64_t channels, uint64_t outputs,
                              uint64_t groups, bool last, uint64_t in, uint64_t out,
                              uint64_t kernel, uint64_t stride, uint64_t padding) {
  return {bits, batch, channels, outputs, groups, 0,      last ? 1u : 0u, 2,       in, in,
          out,  out,   kernel,   kernel,  stride, stride, padding,        padding, 1,  1};
}

// Random ones, measured on an H100 (tests/gpu/conv_choices.py).
TEST(CudnnWorkspace, SumsThatAreDividedLeaveTilesOfWhatIsOverAfterWholeTurns) {
  using Pass = ConvPass;
  expect_measured({
      {conv_of(32, 4, 128, 128, 1, false, 192, 192, 3, 1, 1), Pass::weight_gradient,
       answer(152764627, 1, 1, 1, true, 68), 159842983},
      {conv_of(32, 10, 256, 144, 1, false, 150, 75, 3, 2, 1), Pass::forward,
       answer(264127251, 1, 8, 1, true, 67), 271992083},
      {conv_of(32, 6, 288, 512, 1, true, 14, 14, 5, 1, 2), Pass::weight_gradient,
       answer(131, 1, 1, 1, true, 68), 7078483},
      {conv_of(16, 96, 320, 320, 1, false, 40, 20, 3, 2, 1), Pass::weight_gradient,
       answer(124723347, 2, 1, 8, true, 65), 128656111},
      {conv_of(16, 8, 448, 448, 4, true, 56, 56, 3, 1, 1), Pass::weight_gradient,
       answer(52559888, 1, 1, 3, true, 65), 59638367},
  });
}

TEST(CudnnWorkspace, GradientsOfWeightsMayGoWinogradsWay) {
  const std::vector<uint64_t> numbers = conv(32, 4, 64, 64, 56, 3);
  expect_measured(
      {{numbers, ConvPass::weight_gradient, answer(8487056, 6, 0, 0, false, 50), 15040512}});
  EXPECT_EQ(bytes_of(numbers, ConvPass::data_gradient, answer(8487056, 6, 0, 0, false, 50)).point,
            8487056u);
  EXPECT_EQ(bytes_of(conv(16, 4, 64, 64, 56, 3), ConvPass::weight_gradient,
                     answer(8487056, 6, 0, 0, false, 50))
                .point,
            8487056u);
}

TEST(CudnnWorkspace, OnlyEnginesThatDivideTheirSumsAskForMore) {
  const std::vector<uint64_t> numbers = conv(16, 16, 64, 64, 56, 3);
  constexpr uint64_t k_said = 13213907;
  const auto point = [&](const CudnnAnswer& said) {
    return bytes_of(numbers, ConvPass::weight_gradient, said).point;
  };
  EXPECT_EQ(point(answer(k_said, 6, 1, 3, false)), k_said);
  EXPECT_EQ(point(answer(k_said, 0, 1, 3, true)), k_said);
  EXPECT_EQ(point(answer(k_said, 99, 1, 3, true)), k_said);
  EXPECT_EQ(point(answer(k_said, 6, 1, 0, true)), k_said);
  EXPECT_GT(point(answer(k_said, 6, 1, 3, true)), k_said);
  // Less than what the tiles alone would take without a GPU: another engine than it seems.
  EXPECT_EQ(point(answer(1000, 6, 1, 3, true)), 1000u);
}

// Of random convolutions measured on an H100 some that the choice of data/conv_choice.toml was
// learned from.
TEST(CudnnWorkspace, OfPointwiseConvolutionsIsThatOfTheEngineThatRuns) {
  expect_measured({
      {conv(16, 100, 72, 1024, 9, 1),
       ConvPass::forward,
       {17755216, 17755216, 0, 5, 0, 0, 45, false},
       0},
      {conv(32, 96, 160, 416, 24, 1),
       ConvPass::forward,
       {35655696, 35655696, 0, 1, 0, 0, 38, false},
       400},
      {conv(16, 56, 224, 224, 7, 1),
       ConvPass::forward,
       {2458640, 2458640, 0, 6, 0, 0, 45, false},
       2458640},
      {conv(16, 8, 896, 1280, 7, 1),
       ConvPass::forward,
       {1706000, 1706000, 0, 6, 0, 0, 45, false},
       1706000},
      {conv(16, 4, 1536, 416, 32, 1),
       ConvPass::data_gradient,
       {15990931, 15990931, 0, 1, 16, 16, 67, false},
       272},
      {conv(32, 100, 576, 16, 18, 1),
       ConvPass::data_gradient,
       {76760080, 76760080, 0, 1, 0, 0, 58, false},
       0},
      {conv(16, 32, 1792, 320, 7, 1),
       ConvPass::data_gradient,
       {6623248, 6623248, 0, 1, 0, 0, 57, false},
       6623248},
      {conv(32, 6, 640, 32, 7, 1), ConvPass::weight_gradient, {0, 0, 0, 7, 0, 0, 20, false}, 0},
      {conv(16, 24, 128, 80, 32, 1),
       ConvPass::weight_gradient,
       {10748111, 10748111, 0, 2, 8, 8, 65, true},
       983040},
      {conv(32, 96, 40, 112, 17, 1),
       ConvPass::weight_gradient,
       {17458439, 17458439, 0, 2, 2, 2, 68, true},
       1720320},
      {conv(32, 20, 896, 144, 7, 1),
       ConvPass::weight_gradient,
       {7173520, 7173520, 0, 6, 0, 0, 50, false},
       10321920},
      {conv(16, 36, 768, 192, 7, 1),
       ConvPass::weight_gradient,
       {3386896, 3386896, 0, 8, 2, 2, 65, false},
       3386896},
  });
}

// The rows below were measured on an H200, of convolutions of real programs and random ones.
TEST(CudnnWorkspace, FewChannelsArePaddedToEight) {
  const auto three = [](uint64_t batch, uint64_t pixels, uint64_t kernel) {
    return conv_of(16, batch, 3, 64, 1, false, pixels, pixels / 2, kernel, 2, kernel / 2);
  };
  const auto said = [](uint64_t bytes) { return answer(bytes, 0, 0, 0, false, 63); };
  expect_measured({
      {three(24, 224, 7), ConvPass::forward, said(48194064), 57852944},
      {three(128, 160, 7), ConvPass::forward, said(131097104), 157336592},
      // A picture of one channel takes nothing.
      {conv_of(16, 16, 1, 32, 1, false, 128, 3, 128, 1, 1), ConvPass::forward,
       answer(1057808, 3, 0, 0, false, 47), 0},
  });
  const Row gradients[] = {
      {three(6, 224, 3), ConvPass::weight_gradient, said(12083967), 16837776},
      {three(48, 224, 7), ConvPass::weight_gradient, said(96564111), 121676944},
      {three(128, 160, 7), ConvPass::weight_gradient, said(131499119), 163458192},
  };
  for (const Row& row : gradients) {
    const SizeAt got = bytes_of(row.numbers, row.pass, row.answer);
    EXPECT_NEAR(static_cast<double>(got.point), static_cast<double>(row.real), 0.7 * (1 << 20));
    EXPECT_GE(got.upper, row.real);
  }
  // In fp32, channels last and of more channels it is as cuDNN says.
  const auto point = [&](const std::vector<uint64_t>& numbers) {
    return bytes_of(numbers, ConvPass::forward, said(48194064)).point;
  };
  EXPECT_EQ(point(conv_of(32, 24, 3, 64, 1, false, 224, 112, 7, 2, 3)), 48194064u);
  EXPECT_EQ(point(conv_of(16, 24, 3, 64, 1, true, 224, 112, 7, 2, 3)), 48194064u);
  EXPECT_EQ(point(conv_of(16, 24, 8, 64, 1, false, 224, 112, 7, 2, 3)), 48194064u);
}

TEST(CudnnWorkspace, OfDepthwiseConvolutionsChannelsLast) {
  expect_measured({
      {conv_of(16, 10, 664, 664, 664, true, 14, 14, 7, 1, 3), ConvPass::data_gradient,
       answer(21864208, 6, 0, 0, false, 40), 0},
      {conv_of(16, 8, 768, 768, 768, true, 7, 7, 7, 1, 3), ConvPass::weight_gradient, answer(0), 0},
      {conv_of(16, 4, 128, 128, 128, true, 128, 128, 3, 1, 1), ConvPass::weight_gradient, answer(0),
       147456},
  });
}

TEST(CudnnWorkspace, SumsOfPointwiseGradientsChannelsLastAreKeptInParts) {
  const auto last = [](uint64_t bits, uint64_t batch, uint64_t channels, uint64_t outputs,
                       uint64_t pixels) {
    return conv(bits, batch, channels, outputs, pixels, 1, true);
  };
  expect_measured({
      {last(16, 24, 1024, 16, 28), ConvPass::weight_gradient, answer(983168, 6, 0, 0, false, 49),
       917776},
      {last(16, 16, 640, 1280, 64), ConvPass::weight_gradient, answer(524483, 2, 2, 2, true, 65),
       42598688},
      {last(32, 8, 144, 128, 56), ConvPass::weight_gradient, answer(295143, 6, 1, 1, true, 68),
       4866304},
      {last(32, 12, 240, 240, 112), ConvPass::weight_gradient, answer(0, 6, 1, 1, true, 68),
       15206656},
      {last(16, 20, 128, 512, 14), ConvPass::weight_gradient, answer(0, 9, 0, 0, false, 9), 0},
  });
}

TEST(CudnnWorkspace, GroupsNeverGoWinogradsWay) {
  std::vector<uint64_t> numbers = conv(32, 4, 64, 64, 56, 3);
  const CudnnAnswer said = answer(8487056, 6, 0, 0, false, 50);
  EXPECT_NE(bytes_of(numbers, ConvPass::weight_gradient, said).point, said.bytes);
  numbers[4] = 2;
  EXPECT_EQ(bytes_of(numbers, ConvPass::weight_gradient, said).point, said.bytes);
}

TEST(CudnnWorkspace, TheChoiceEndsWhateverTheTableSays) {
  const knowledge::ConvChoiceRow circle[] = {{"forward", "batch", 8, 0, ""},
                                             {"forward", "batch", 1, 0, ""}};
  knowledge::Knowledge table = builtin();
  table.conv_choices = circle;
  const ConvShape shape = conv_shape(conv(32, 16, 64, 64, 56, 1)).value();
  EXPECT_EQ(pointwise_choice(shape, ConvPass::forward, {}, table), ConvChoice::own);
  EXPECT_EQ(pointwise_choice(shape, ConvPass::weight_gradient, {}, table), ConvChoice::own);
  const knowledge::ConvChoiceRow parts[] = {{"parts_16", "", 0, 0, "no number"},
                                            {"parts_32", "", 0, 0, "99999999"}};
  table.conv_choices = parts;
  EXPECT_EQ(parts_of_sums(conv_shape(conv(16, 16, 64, 64, 56, 1, true)).value(), table), 0u);
  EXPECT_LE(parts_of_sums(conv_shape(conv(32, 16, 64, 64, 56, 1, true)).value(), table), 4096u);
  for (const knowledge::ConvChoiceRow& row : builtin().conv_choices) {
    if (row.pass.substr(0, 5) != "parts" || row.takes.empty()) continue;
    EXPECT_LT(std::stoul(std::string(row.takes)), 4096u);  // none is cut
  }
}

TEST(CudnnWorkspace, StaysWithinBoundsAtAnySize) {
  const uint64_t most = uint64_t{1} << 48;
  for (const uint64_t batch : {uint64_t{1}, uint64_t{1} << 20, uint64_t{1} << 44})
    for (const ConvPass pass :
         {ConvPass::forward, ConvPass::data_gradient, ConvPass::weight_gradient})
      for (const uint64_t kernel : {1u, 3u}) {
        const SizeAt got =
            bytes_of(conv(16, batch, 1, 1, 1, kernel), pass, answer(most, 6, 1, 3, true));
        EXPECT_LT(got.upper, uint64_t{1} << 56);
      }
  // No channels, so that nothing bounds outputs and kernel together: the engine that pads channels.
  const uint64_t outputs = uint64_t{1} << 28, pixels = 1 << 20, kernel = 1 << 15;
  const std::vector<uint64_t> none = {16, 1, 0,      outputs, 1, 0, 0, 2, pixels, pixels,
                                      1,  1, kernel, kernel,  1, 1, 0, 0, 1,      1};
  for (const ConvPass pass : {ConvPass::forward, ConvPass::weight_gradient}) {
    const auto shape = conv_shape(none);
    ASSERT_TRUE(shape.has_value());
    const CudnnAnswer said = answer(0, 0, 0, 0, false, 63);
    EXPECT_LT(cudnn_workspace(*shape, pass, said, {}, builtin()).upper, uint64_t{1} << 56);
  }
}

TraceWriter with_answers() {
  TraceWriter out(8);
  std::vector<uint64_t> key = conv(16, 0, 64, 64, 56, 3);
  out.convolution(90, 0, key, {{32, 400, 0, 0, 0, 0, 1}, {8, 100, 0, 5, 7, 0, 1}});
  out.convolution(86, 0, key, {{8, 77, 0, 0, 0, 0, 1}});
  return out;
}

TEST(CudnnAnswers, AreFoundByCardPassAndShape) {
  CudnnAnswers answers;
  EXPECT_TRUE(answers.empty());
  answers.add(with_answers().read());
  answers.add(with_answers().read());  // the same twice is once
  const auto bytes = [&](ComputeCapability cc, ConvPass pass, uint64_t batch) -> int64_t {
    const auto got = answers.at(cc, pass, conv(16, batch, 64, 64, 56, 3));
    return got ? static_cast<int64_t>(got->bytes) : -1;
  };
  const ComputeCapability hopper{9, 0};
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 8), 100);
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 32), 400);
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 20), 250);  // between the two
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 2), 100);   // below: the first
  EXPECT_EQ(bytes(hopper, ConvPass::forward, 64), 800);  // above: in proportion
  EXPECT_EQ(bytes({8, 6}, ConvPass::forward, 8), 77);
  EXPECT_EQ(bytes({8, 9}, ConvPass::forward, 8), -1);
  EXPECT_EQ(bytes(hopper, ConvPass::weight_gradient, 8), -1);
  EXPECT_FALSE(answers.at(hopper, ConvPass::forward, conv(32, 8, 64, 64, 56, 3)));
  const auto between = answers.at(hopper, ConvPass::forward, conv(16, 20, 64, 64, 56, 3));
  EXPECT_EQ(between->upper, 400u);
}

TEST(CudnnAnswers, ThatItNamesNoEngineIsOne) {
  const std::vector<uint64_t> numbers = conv(16, 8, 64, 64, 56, 3);
  std::vector<uint64_t> key = numbers;
  key[1] = 0;
  TraceWriter out(8);
  out.convolution(90, 0, key, {});
  out.convolution(90, 2, key, {});
  const uint32_t made = out.site("convolution", TracePhase::forward);
  for (const char* name : {"conv", "conv_dgrad", "conv_wgrad"}) {
    out.call(out.site(name, TracePhase::forward), numbers);
    out.alloc(512, made);
  }
  const StepProgram program = aligned({out}).value();
  EXPECT_TRUE(program.cudnn.refused({9, 0}, ConvPass::forward, numbers));
  EXPECT_FALSE(program.cudnn.refused({9, 0}, ConvPass::data_gradient, numbers));  // not asked
  EXPECT_FALSE(program.cudnn.refused({8, 6}, ConvPass::forward, numbers));
  EXPECT_FALSE(program.cudnn.at({9, 0}, ConvPass::forward, numbers));
  const auto sizes = sizes_at(program, 8).value();
  std::vector<uint64_t> points;
  for (const Workspace& each : workspaces_at(program, sizes, {}, builtin()))
    points.push_back(each.point);
  ASSERT_FALSE(points.empty());
  // PyTorch falls back: nothing forward, and the weights in fp32 for their gradient.
  EXPECT_EQ(points.front(), 0u);
  EXPECT_EQ(points.back(), 64u * 64 * 9 * 4);
}

TEST(Workspaces, OfAConvolutionAreWhatCudnnSaid) {
  TraceWriter out(8);
  const std::vector<uint64_t> numbers = conv(16, 8, 64, 64, 56, 3);
  std::vector<uint64_t> key = numbers;
  key[1] = 0;
  const uint32_t site = out.site("conv", TracePhase::forward);
  const uint32_t made = out.site("convolution", TracePhase::forward);
  for (int i = 0; i < 2; ++i) {
    out.call(site, numbers);
    out.alloc(512, made);
  }
  out.convolution(90, 0, key, {{8, 123456, 9000000, 0, 0, 0, 1}});
  const StepProgram program = aligned({out}).value();
  const auto sizes = sizes_at(program, 8).value();
  LibrarySetup setup;
  const auto plain = workspaces_at(program, sizes, setup, builtin());
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].point, 123456u);
  EXPECT_EQ(plain[1].point, 123456u);
  // torch.backends.cudnn.benchmark: the first time all engines are tried.
  setup.cudnn_benchmark = true;
  const auto tried = workspaces_at(program, sizes, setup, builtin());
  EXPECT_EQ(tried[0].point, 9000000u);
  EXPECT_EQ(tried[1].point, 123456u);
  EXPECT_GE(tried[1].upper, 9000000u);
  // Another card: the rows of the table.
  setup = {};
  setup.cc = {8, 0};
  EXPECT_NE(workspaces_at(program, sizes, setup, builtin())[0].point, 123456u);
}

}  // namespace cudnn_workspace_test
}  // namespace cufit::fit
