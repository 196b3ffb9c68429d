// SPDX-License-Identifier: Apache-2.0
#include "fit/plans.h"
#include "fit/trace_parts.h"

#include <gtest/gtest.h>

#include "unit/fit/fit_fixture.h"

namespace cufit::fit {
namespace plans_test {

// What is traced for plans: per sample `kept` MiB of activations, then 64 MiB of gradients that the
// next step begins by dropping; in the second step a product of matrices and 800 MiB moved.
struct Shape {
  uint64_t kept = 8;
  uint64_t bits = 32;
  bool tail = true;
  std::string switches;
};

void passes(TraceWriter& out, const Sites& s, const Shape& shape, uint64_t batch, uint32_t moved,
            std::vector<uint32_t>& gradients) {
  const uint32_t kept = out.alloc(shape.kept * batch * k_mib, s.act);
  out.call(s.matmul, {shape.bits, 0, 1, 1024 * batch, 1024, 1024});
  out.call(moved, {100 * batch * k_mib, 1});
  const uint32_t gradient = out.alloc(64 * k_mib, s.grad);
  out.category(gradient, StorageCategory::gradient);
  out.free(kept);
  if (gradients.empty())
    gradients.push_back(gradient);
  else
    out.free(gradient);  // added to the one that is there
}

TraceWriter planned(uint64_t batch, const Shape& shape = {}) {
  TraceWriter out(batch);
  const Sites s = write_sites(out);
  const uint32_t moved = out.site("moved", TracePhase::forward);
  const uint32_t updated = out.site("moved", TracePhase::optimizer);
  out.category(out.alloc(64 * k_mib, s.weight), StorageCategory::parameter);
  std::vector<uint32_t> gradients;
  const auto drop = [&] {
    for (const uint32_t gradient : gradients) out.free(gradient);
    gradients.clear();
  };
  for (int step = 0; step < 3; ++step) {
    out.mark(TraceMark::step_begins);
    drop();
    passes(out, s, shape, batch, moved, gradients);
    out.call(updated, {400 * k_mib, 4});
    out.mark(TraceMark::step_ends);
  }
  out.fact("micro_batches", "1");
  out.fact("variant", shape.switches);
  if (shape.tail) {
    out.mark(TraceMark::micro_batch);
    out.mark(TraceMark::step_begins);
    drop();
    passes(out, s, shape, batch, moved, gradients);
    passes(out, s, shape, batch, moved, gradients);
    out.mark(TraceMark::step_ends);
    out.fact("accumulated", "1");
  }
  out.end();
  return out;
}

PlanProgram program(const Shape& shape, std::vector<std::string> switches = {}) {
  PlanProgram out;
  out.switches = std::move(switches);
  const formats::TraceEvents whole[] = {planned(8, shape).read(), planned(16, shape).read()};
  const formats::TraceEvents plain[] = {without_micro_batches(whole[0]),
                                        without_micro_batches(whole[1])};
  out.steps = align(plain).value();
  if (has_micro_batches(whole[0])) out.accumulating = align(whole).value();
  return out;
}

PlanQuestion question() {
  PlanQuestion out;
  out.batch = 8;
  out.speed = {"test", 100e12, 50e12, 10e12, 1, 1e12, 0, 0};
  return out;
}

const TrainingPlan* find(const Plans& plans, size_t program, uint64_t accumulation,
                         bool expandable = false) {
  for (const TrainingPlan& plan : plans.plans)
    if (plan.program == program && plan.accumulation == accumulation &&
        plan.expandable_segments == expandable)
      return &plan;
  return nullptr;
}

TEST(MicroBatches, AreCutOff) {
  Shape without;
  without.tail = false;
  const formats::TraceEvents cut = without_micro_batches(planned(8).read());
  const formats::TraceEvents plain = planned(8, without).read();
  ASSERT_EQ(cut.events.size(), plain.events.size());
  EXPECT_EQ(cut.storage_count(), plain.storage_count());
  EXPECT_EQ(cut.calls.size(), plain.calls.size());
  EXPECT_FALSE(has_micro_batches(cut));
  EXPECT_TRUE(has_micro_batches(planned(8).read()));
  EXPECT_FALSE(has_micro_batches(plain));
}

TEST(StepTime, SumsKernelsOfTheSecondStep) {
  const PlanProgram as_it_is = program({});
  // 2 x 8192 x 1024 x 1024 operations at 10 T/s, and 800 MiB at 1 TB/s; 400 MiB in the optimizer.
  const std::optional<StepTime> time = step_time(as_it_is.steps, 8, question().speed);
  ASSERT_TRUE(time.has_value());
  EXPECT_NEAR(time->pass, 17.179869e9 / 10e12 + 838860800 / 1e12, 1e-9);
  EXPECT_NEAR(time->optimizer, 419430400 / 1e12, 1e-9);
  // The same at another batch size, in half precision: only the product is faster.
  Shape half;
  half.bits = 16;
  const std::optional<StepTime> other = step_time(program(half).steps, 4, question().speed);
  EXPECT_NEAR(other->pass, 8.589934592e9 / 100e12 + 419430400 / 1e12, 1e-9);
  // Where launching takes longer than computing, it counts.
  CardSpeed slow = question().speed;
  slow.launch = 1;
  EXPECT_NEAR(step_time(as_it_is.steps, 8, slow)->pass, 2, 1e-9);
  EXPECT_NEAR(step_time(as_it_is.steps, 8, slow)->optimizer, 4, 1e-9);
}

TEST(StepTime, IsNotKnownWithoutATraceForPlans) {
  const StepProgram old = aligned({small_program(2), small_program(4)}).value();
  EXPECT_FALSE(step_time(old, 2, question().speed).has_value());
}

// Eight samples for each of four ranks: two that share each layer take sixteen together.
TEST(Plans, OfOtherGroupsTrainTheSameInAll) {
  std::vector<PlanProgram> programs = {program({}), program({}, {"tp:2"})};
  programs[0].dealing = {"ddp", 4, 4, 1, false, 64 * k_mib, 64 * k_mib};
  programs[1].dealing = {"tp", 4, 4, 2, false, 64 * k_mib, 64 * k_mib};
  PlanQuestion asked = question();
  asked.links = {1e9, 1e9, 1e9, 1e9, false};
  const Plans got = plans_of(programs, asked, {});
  EXPECT_EQ(find(got, 0, 1)->micro_batch, 8u);
  EXPECT_EQ(find(got, 1, 1)->micro_batch, 16u);
  EXPECT_EQ(find(got, 1, 2)->micro_batch, 8u);
  EXPECT_DOUBLE_EQ(find(got, 0, 1)->sent, 1.5 * 64 * k_mib);
  // What NCCL takes more for them is not there for the allocator.
  PlanCard card{"card", {}};
  card.setup.capacity = find(got, 0, 1)->peak_reserved_upper;
  const auto as_it_is_fits = [&] {
    const Plans on = plans_of(programs, asked, std::vector{card});
    return std::any_of(on.on_cards.begin(), on.on_cards.end(), [&](const PlanOnCard& one) {
      return one.plan == on.as_it_is && one.fits && one.retries == 0;
    });
  };
  EXPECT_TRUE(as_it_is_fits());
  programs[0].more_outside = 64 * k_mib;
  EXPECT_FALSE(as_it_is_fits());
}

TEST(Plans, CountGradientsThatLiveBetweenMicroBatches) {
  const std::vector<PlanProgram> programs = {program({})};
  const Plans got = plans_of(programs, question(), {});
  EXPECT_EQ(got.samples, 8u);
  // cuBLAS's workspace of one thread; weights, activations and the gradient that is made.
  const uint64_t fixed = 33554432 + 64 * k_mib;
  EXPECT_EQ(find(got, 0, 1)->peak_allocated, fixed + 8 * 8 * k_mib + 64 * k_mib);
  EXPECT_EQ(find(got, 0, 2)->micro_batch, 4u);
  EXPECT_EQ(find(got, 0, 2)->peak_allocated, fixed + 4 * 8 * k_mib + 128 * k_mib);
  EXPECT_EQ(find(got, 0, 8)->peak_allocated, fixed + 1 * 8 * k_mib + 128 * k_mib);
  EXPECT_EQ(find(got, 0, 3), nullptr);
  EXPECT_GT(find(got, 0, 8)->relative_time, 0.99);
  EXPECT_EQ(got.plans[got.as_it_is].relative_time, 1);
  // Two micro-batches of 4 need more than one of 8 here: nobody would take that plan.
  EXPECT_FALSE(find(got, 0, 2)->frontier);
}

TEST(Plans, WithoutMicroBatchesOffersNone) {
  Shape shape;
  shape.tail = false;
  const std::vector<PlanProgram> programs = {program(shape)};
  const Plans got = plans_of(programs, question(), {});
  EXPECT_NE(find(got, 0, 1), nullptr);
  EXPECT_EQ(find(got, 0, 2), nullptr);
}

TEST(Plans, KeepTheFrontierAndFindTheCheapestForEachCard) {
  Shape half;
  half.bits = 16;
  half.kept = 64;
  Shape large;
  large.kept = 64;
  const std::vector<PlanProgram> programs = {program(large), program(half, {"bf16"})};
  std::vector<PlanCard> cards(3);
  cards[0].setup.capacity = uint64_t{4} << 30;
  cards[1].setup.capacity = 640 * k_mib;
  cards[2].setup.capacity = 100 * k_mib;
  PlanQuestion asked = question();
  asked.speed.launch = 4e-4;  // so that many small micro-batches take longer
  const Plans got = plans_of(programs, asked, cards);
  EXPECT_FALSE(got.plans[got.as_it_is].frontier);  // bf16 is faster in as much memory
  EXPECT_TRUE(find(got, 1, 1)->frontier);
  EXPECT_EQ(&got.plans[*got.cheapest[0]], find(got, 1, 1));
  const TrainingPlan& tight = got.plans[got.cheapest[1].value()];
  EXPECT_EQ(tight.program, 1u);
  EXPECT_GT(tight.accumulation, 1u);
  EXPECT_FALSE(got.cheapest[2].has_value());
  for (const size_t number : got.shown())
    EXPECT_TRUE(number == got.as_it_is || got.plans[number].frontier ||
                got.cheapest[0] == std::optional(number) ||
                got.cheapest[1] == std::optional(number));
  for (const PlanOnCard& on : got.on_cards)
    if (on.card == 2) {
      EXPECT_FALSE(on.fits);
    }
}

TEST(Plans, OfAProgramThatAccumulatesBeginThere) {
  const std::vector<PlanProgram> programs = {program({})};
  PlanQuestion asked = question();
  asked.accumulation = 4;
  const Plans got = plans_of(programs, asked, {});
  EXPECT_EQ(got.samples, 32u);
  EXPECT_EQ(got.plans[got.as_it_is].accumulation, 4u);
  EXPECT_EQ(find(got, 0, 1), nullptr);
  EXPECT_EQ(find(got, 0, 2)->micro_batch, 16u);
}

TEST(CardSpeed, FallsBackToACardOfTheSameKind) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  EXPECT_EQ(card_speed("GeForce RTX 3090", "8.6", knowledge).card, "GeForce RTX 3090");
  const std::string other = card_speed("GeForce RTX 3050 8GB", "8.6", knowledge).card;
  EXPECT_EQ(knowledge.find_gpu(other)->cc, "8.6");
  EXPECT_EQ(card_speed("", "", knowledge).card, "H100 SXM5 80GB");
  for (const knowledge::GpuComputeRow& row : knowledge.gpu_compute)
    EXPECT_EQ(card_speed(row.gpu, "", knowledge).card, row.gpu);
}

}  // namespace plans_test
}  // namespace cufit::fit
