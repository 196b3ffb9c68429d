// SPDX-License-Identifier: Apache-2.0
// The law: a program traced for some steps, which tells of the batches that come, is the program
// traced to its end.
#include "fit/later_batches.h"

#include <gtest/gtest.h>

#include "fit/size_regression.h"
#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace later_batches_test {

struct Batch {
  uint64_t length, edges;
};

// Of a text of `length` and a graph of `edges`: what a step makes is freed by it, by the next step
// or, where `untidy`, now by the one and now by the other.
class Program {
 public:
  explicit Program(bool untidy = false) : untidy_(untidy) {
    weight_ = out_.alloc(64 * k_mib, site("empty", TracePhase::setup));
  }

  void step(const Batch& batch, uint64_t more = 0) {
    out_.mark(TraceMark::step_begins);
    const uint64_t length = batch.length, edges = batch.edges;
    const uint32_t input = out_.alloc(8 * 32 * length, site("to", TracePhase::other));
    out_.call(site("matmul", TracePhase::forward), {32, 0, 1, 32 * length, 64, 64});
    const uint32_t hidden = out_.alloc(4 * 32 * length * 64, site("mm", TracePhase::forward));
    const uint32_t scores = out_.alloc(4 * 32 * length * length, site("bmm", TracePhase::forward));
    const uint32_t both =
        out_.alloc(2 * (64 * edges + 32 * length), site("cat", TracePhase::forward));
    if (last_loss_ != 0) out_.free(last_loss_);
    const uint32_t loss = out_.alloc(4 + more, site("loss", TracePhase::forward));
    if (late_ != 0) out_.free(late_);
    late_ = 0;
    const uint32_t rounded =
        out_.alloc(4 * 32 * ((length + 7) / 8 * 8), site("softmax", TracePhase::forward));
    if (first_) out_.alloc(64 * k_mib, site("zeros_like", TracePhase::optimizer));
    for (const uint32_t storage : {input, hidden, scores, rounded}) out_.free(storage);
    if (untidy_ && steps_ % 3 == 1) {
      late_ = both;
    } else {
      out_.free(both);
    }
    last_loss_ = loss;
    first_ = false;
    ++steps_;
    out_.mark(TraceMark::step_ends);
  }

  void tell(const char* op, const Batch& batch) {
    out_.call(site(op, TracePhase::other), {32, batch.length, 2, batch.edges});
  }

  // What follows the steps, and lets go of the last one's loss.
  formats::TraceEvents finished() {
    out_.mark(TraceMark::after_steps);
    const uint32_t validated = out_.alloc(3 * k_mib, site("mm", TracePhase::validation));
    out_.free(last_loss_);
    out_.free(validated);
    out_.end();
    return out_.read();
  }

 private:
  uint32_t site(const char* op, TracePhase phase) {
    const auto [place, is_new] = sites_.try_emplace(op + std::to_string(static_cast<int>(phase)));
    if (is_new) place->second = out_.site(op, phase, "", "train.py:3");
    return place->second;
  }

  TraceWriter out_{32};
  std::map<std::string, uint32_t> sites_;
  bool untidy_, first_ = true;
  int steps_ = 0;
  uint32_t weight_, last_loss_ = 0, late_ = 0;
};

std::vector<Batch> batches(size_t count) {
  std::vector<Batch> out;
  for (uint64_t i = 0; i < count; ++i) out.push_back({40 + i * 37 % 101, 300 + i * 53 % 211});
  return out;
}

formats::TraceEvents traced(const std::vector<Batch>& all, size_t steps, bool untidy = false) {
  Program program(untidy);
  for (size_t i = 0; i < steps; ++i) program.step(all[i]);
  for (size_t i = 0; i < all.size(); ++i)
    program.tell(i < steps ? "batch_given" : "batch_to_come", all[i]);
  return program.finished();
}

uint64_t reserved(const StepProgram& program) {
  Setup setup;
  setup.total_memory = uint64_t{80} << 30;
  return predict(program, 32, setup).value().peak_reserved;
}

TEST(LaterBatches, AreStepsAsIfTheyHadBeenTraced) {
  const std::vector<Batch> all = batches(40);
  const formats::TraceEvents some = traced(all, 12), whole = traced(all, 40);
  const StepProgram program = align({&some, 1}).value();
  const StepProgram wanted = align({&whole, 1}).value();
  EXPECT_EQ(program.later_steps, 28u);
  EXPECT_EQ(program.traced_steps(), 12u);
  EXPECT_EQ(program.steps, 40u);
  ASSERT_EQ(program.events.size(), wanted.events.size());
  ASSERT_EQ(program.storages.size(), wanted.storages.size());
  const std::vector<SizeAt> sizes = sizes_at(program, 32).value();
  const std::vector<SizeAt> wanted_sizes = sizes_at(wanted, 32).value();
  for (size_t i = 0; i < program.events.size(); ++i) {
    const StepEvent &one = program.events[i], &other = wanted.events[i];
    ASSERT_EQ(one.kind, other.kind) << i;
    if (one.kind == StepEventKind::call) {
      const StepCall &call = program.calls[one.index], &same = wanted.calls[other.index];
      ASSERT_EQ(call.count, same.count);
      for (uint32_t k = 0; k < call.count; ++k)
        EXPECT_EQ(sizes[program.call_numbers[call.first + k]].point,
                  wanted_sizes[wanted.call_numbers[same.first + k]].point)
            << i;
      continue;
    }
    ASSERT_EQ(one.index, other.index) << i;
    if (one.kind != StepEventKind::alloc) continue;
    const uint64_t bytes = sizes[one.size].point, should = wanted_sizes[other.size].point;
    // What is rounded up follows its line as near as that.
    if (program.text(program.sites[one.site].op) == std::string_view("softmax")) {
      EXPECT_NEAR(static_cast<double>(bytes), static_cast<double>(should), 0.2 * should) << i;
    } else {
      EXPECT_EQ(bytes, should) << i;
    }
  }
}

TEST(LaterBatches, MayFreeWhatTheyMadeNowAndThen) {
  const std::vector<Batch> all = batches(40);
  const formats::TraceEvents some = traced(all, 13, true), whole = traced(all, 40, true);
  const StepProgram program = align({&some, 1}).value();
  EXPECT_EQ(program.later_steps, 27u);
  const auto is = static_cast<double>(reserved(program));
  const auto should = static_cast<double>(reserved(align({&whole, 1}).value()));
  EXPECT_NEAR(is, should, 0.02 * should);
}

TEST(LaterBatches, AreNotReckonedWhereStepsDoNotFollowThem) {
  const std::vector<Batch> all = batches(40);
  Program program;
  for (size_t i = 0; i < 12; ++i) program.step(all[i], i * i * i % 7 * 40 * k_mib);
  for (size_t i = 0; i < 40; ++i) program.tell(i < 12 ? "batch_given" : "batch_to_come", all[i]);
  const formats::TraceEvents events = program.finished();
  const StepProgram found = align({&events, 1}).value();
  EXPECT_EQ(found.later_steps, 0u);
  EXPECT_EQ(found.steps, 12u);
  for (const StepCall& call : found.calls)
    EXPECT_NE(found.text(found.sites[call.site].op), "batch_given");
}

// Of a size that the traced steps had alike, or far beyond theirs: nobody knows.
TEST(LaterBatches, OfAnotherKindAreLeftOut) {
  std::vector<Batch> all = batches(12);
  all.push_back({100, 100000});
  all.push_back({100, 400});
  const formats::TraceEvents events = traced(all, 12);
  EXPECT_EQ(align({&events, 1}).value().later_steps, 1u);
  for (Batch& batch : all) batch.length = 77;
  all.push_back({78, 333});
  const formats::TraceEvents other = traced(all, 12);
  EXPECT_EQ(align({&other, 1}).value().later_steps, 1u);
}

// Storages that no step made, frees of what is not there: nothing is written outside of a table.
TEST(LaterBatches, OfAStrangeTraceDoNoHarm) {
  for (const int gap : {1, 5, 900}) {
    TraceWriter out(32);
    const uint32_t site = out.site("mm", TracePhase::forward, "", "train.py:1");
    const uint32_t told = out.site("batch_given", TracePhase::other, "", "");
    const uint32_t come = out.site("batch_to_come", TracePhase::other, "", "");
    std::vector<uint32_t> between;
    for (uint64_t i = 0; i < 12; ++i) {
      out.mark(TraceMark::step_begins);
      for (const uint32_t storage : between) out.free(storage);
      between.clear();
      out.free(out.alloc(1000 * (i + 1), site));
      out.mark(TraceMark::step_ends);
      for (int k = 0; k < gap; ++k) between.push_back(out.alloc(512, site));
    }
    for (uint64_t i = 0; i < 12; ++i) out.call(told, {i + 1});
    for (uint64_t i = 0; i < 30; ++i) out.call(come, {i % 20 + 1});
    out.end();
    const formats::TraceEvents events = out.read();
    const Result<StepProgram> program = align({&events, 1});
    ASSERT_TRUE(program);
    EXPECT_GT(reserved(*program), 0u) << gap;
  }
}

TEST(SizeByShape, FindsTheDimensionsThatASizeFollows) {
  std::vector<Shape> shapes;
  for (uint64_t i = 0; i < 9; ++i) shapes.push_back({8, 10 + i * 7 % 11, 50 + i * i % 13});
  const ShapeColumns columns(shapes, 3, 24);
  ASSERT_EQ(columns.count(), 2u);
  const Shape other{8, 33, 70};
  const auto found = [&](auto of, bool exact = false) {
    std::vector<uint64_t> samples;
    for (const Shape& shape : shapes) samples.push_back(of(shape));
    const ShapeRule rule =
        exact ? exact_shape_rule(columns, samples) : shape_rule(columns, samples);
    if (rule.kind == ShapeRule::Kind::constant) return samples.front();
    return rule.kind == ShapeRule::Kind::line ? rule.at(other) : 0;
  };
  EXPECT_EQ(found([](const Shape& s) { return 4 * s[1]; }), 4u * 33);
  EXPECT_EQ(found([](const Shape& s) { return 4 * s[1] * s[1] + 12; }), 4u * 33 * 33 + 12);
  EXPECT_EQ(found([](const Shape& s) { return 16 * s[1] * s[2]; }), 16u * 33 * 70);
  EXPECT_EQ(found([](const Shape& s) { return 4096 * s[1] + 9000 * s[2] + 77; }),
            4096u * 33 + 9000u * 70 + 77);
  EXPECT_EQ(found([](const Shape&) { return uint64_t{5}; }), 5u);
  EXPECT_EQ(found([](const Shape& s) { return s[1] * 100000 % 7919 * 10000000; }), 0u);
  // Flags and kinds of calls lie near every line.
  EXPECT_EQ(found([](const Shape& s) { return s[1] % 2; }, true), 0u);
  EXPECT_EQ(found([](const Shape& s) { return 3 * s[2]; }, true), 210u);
}

}  // namespace later_batches_test
}  // namespace cufit::fit
