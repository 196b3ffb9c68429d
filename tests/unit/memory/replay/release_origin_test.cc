// SPDX-License-Identifier: Apache-2.0
// Who gave segments back, by the stacks of the events.
#include "memory/replay/release_origin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "memory/replay/what_if.h"
#include "support/places.h"

namespace cufit::memory {
namespace release_origin_test {

constexpr uint64_t k_gib = uint64_t{1} << 30;

// Stacks by number: 1 and 2 of two requests, 3 of torch.cuda.empty_cache(), 4 of neither.
constexpr uint32_t k_first = 1, k_second = 2, k_empties = 3, k_other = 4;

class Story {
 public:
  explicit Story(bool has_native_stacks = false) {
    recording_.emptying_stacks = {k_empties};
    recording_.has_native_stacks = has_native_stacks;
    recording_.releases_have_stacks = true;
  }
  Story& alloc(uint64_t address, uint64_t size, uint32_t stack) {
    add(Action::segment_alloc, address, size, stack);
    return add(Action::alloc, address, size, stack);
  }
  Story& free(uint64_t address, uint64_t size) {
    return ask_to_free(address, size).complete(address, size);
  }
  Story& ask_to_free(uint64_t address, uint64_t size) {
    return add(Action::free_requested, address, size, k_other);
  }
  Story& complete(uint64_t address, uint64_t size) {
    return add(Action::free_completed, address, size, k_other);
  }
  void releases_have_stacks(bool they_do) { recording_.releases_have_stacks = they_do; }
  Story& release(uint64_t address, uint64_t size, uint32_t stack) {
    return add(Action::segment_free, address, size, stack);
  }
  Story& map(uint64_t address, uint64_t size, uint32_t stack) {
    add(Action::segment_map, address, size, stack);
    return add(Action::alloc, address, size, stack);
  }
  Story& unmap(uint64_t address, uint64_t size, uint32_t stack) {
    return add(Action::segment_unmap, address, size, stack);
  }
  Story& refuse(uint64_t size, uint32_t stack) { return add(Action::oom, 0, size, stack); }
  Program program() const { return compile_program(recording_); }
  // Of the program without a limit.
  uint64_t peak() const { return replay(program(), {}).stats.reserved_bytes.peak; }

 private:
  Story& add(Action action, uint64_t address, uint64_t size, uint32_t stack) {
    recording_.events.push_back({address, size, 0, 0, action, stack});
    return *this;
  }
  Recording recording_;
};

size_t emptied(const Program& program) {
  return static_cast<size_t>(
      std::count_if(program.ops.begin(), program.ops.end(),
                    [](const Op& op) { return op.kind == OpKind::empty_cache && !op.doubtful; }));
}

// 1 GiB goes back to whoever has `releaser`, then 1.5 GiB are asked for.
Story release_origin(uint32_t releaser, uint32_t requester = k_second) {
  Story run;
  run.alloc(8 * k_gib, k_gib, k_first).alloc(4 * k_gib, k_gib / 4, k_first);
  run.free(8 * k_gib, k_gib).release(8 * k_gib, k_gib, releaser);
  return run.alloc(16 * k_gib, k_gib + k_gib / 2, requester);
}

TEST(ReleaseOrigins, ByTheProgram) {
  for (const uint32_t releaser : {k_empties, k_other}) {
    const Story run = release_origin(releaser);
    EXPECT_FALSE(run.program().has_doubts);
    EXPECT_EQ(emptied(run.program()), 1u);
    EXPECT_EQ(run.peak(), 7 * k_gib / 4);
  }
}

TEST(ReleaseOrigins, ForTheRequest) {
  const Story run = release_origin(k_second);
  EXPECT_FALSE(run.program().has_doubts);
  EXPECT_EQ(emptied(run.program()), 0u);
  EXPECT_EQ(run.peak(), 11 * k_gib / 4);
}

// The segment's own stack, which an older torch writes for any release, or no stack at all.
TEST(ReleaseOrigins, NothingTells) {
  EXPECT_TRUE(release_origin(k_first).program().has_doubts);
  EXPECT_TRUE(release_origin(k_first, k_first).program().has_doubts);
  EXPECT_TRUE(release_origin(k_no_stack).program().has_doubts);
  EXPECT_TRUE(release_origin(k_second, k_no_stack).program().has_doubts);
  // empty_cache() names itself, whatever the request has.
  EXPECT_FALSE(release_origin(k_empties, k_no_stack).program().has_doubts);
}

// Before torch 2.3 a release has the stack of the segment or of the last block there.
TEST(ReleaseOrigins, OlderTorchesTellNothing) {
  for (const uint32_t releaser : {k_first, k_second, k_other}) {
    Story run;
    run.releases_have_stacks(false);
    run.alloc(8 * k_gib, k_gib, k_first).free(8 * k_gib, k_gib).release(8 * k_gib, k_gib, releaser);
    run.alloc(16 * k_gib, k_gib + k_gib / 2, k_second);
    EXPECT_TRUE(run.program().has_doubts);
  }
}

// The driver may give the address that came back to the request that it came back for.
TEST(ReleaseOrigins, TheSameAddressAgain) {
  Story run;
  run.alloc(8 * k_gib, k_gib, k_first).alloc(4 * k_gib, k_gib / 4, k_first);
  run.free(8 * k_gib, k_gib).release(8 * k_gib, k_gib, k_second);
  run.alloc(8 * k_gib, k_gib + k_gib / 2, k_second);
  EXPECT_FALSE(run.program().has_doubts);
  EXPECT_EQ(emptied(run.program()), 0u);
}

// While memory goes back for a request, blocks that waited for other streams complete.
TEST(ReleaseOrigins, ABlockCompletesMeanwhile) {
  for (const uint32_t releaser : {k_empties, k_second}) {
    Story run;
    run.alloc(8 * k_gib, k_gib, k_first).alloc(4 * k_gib, k_gib / 4, k_first);
    run.ask_to_free(4 * k_gib, k_gib / 4).free(8 * k_gib, k_gib);
    run.release(8 * k_gib, k_gib, releaser).complete(4 * k_gib, k_gib / 4);
    run.alloc(16 * k_gib, k_gib + k_gib / 2, k_second);
    EXPECT_EQ(emptied(run.program()), releaser == k_empties ? 1u : 0u);
    EXPECT_FALSE(run.program().has_doubts);
  }
}

// The last of several releases may be of a segment that tells nothing.
TEST(ReleaseOrigins, ANeighbourTellsWhatIsUnderWay) {
  Story run;
  run.alloc(8 * k_gib, k_gib, k_first).alloc(16 * k_gib, k_gib, k_second);
  run.alloc(4 * k_gib, k_gib / 4, k_first).ask_to_free(4 * k_gib, k_gib / 4);
  run.free(8 * k_gib, k_gib).free(16 * k_gib, k_gib);
  run.release(8 * k_gib, k_gib, k_second).release(16 * k_gib, k_gib, k_second);
  run.complete(4 * k_gib, k_gib / 4).alloc(32 * k_gib, 3 * k_gib, k_second);
  EXPECT_EQ(emptied(run.program()), 0u);
  EXPECT_FALSE(run.program().has_doubts);
}

// Without frames of C++ cuDNN's benchmark has the stack of the request that follows; it comes right
// after the workspace that it tried.
TEST(ReleaseOrigins, PerhapsByCudnn) {
  for (const bool native : {false, true}) {
    Story run(native);
    run.alloc(8 * k_gib, k_gib, k_first).free(8 * k_gib, k_gib);
    run.release(8 * k_gib, k_gib, k_second).alloc(16 * k_gib, k_gib + k_gib / 2, k_second);
    EXPECT_EQ(run.program().has_doubts, !native);
  }
}

// The backward pass has no Python frame, and its own stack is an empty one.
TEST(ReleaseOrigins, AnEmptyStackIsOneToo) {
  EXPECT_FALSE(release_origin(k_empty_stack).program().has_doubts);
  EXPECT_EQ(emptied(release_origin(k_empty_stack).program()), 1u);
  EXPECT_FALSE(release_origin(k_empty_stack, k_empty_stack).program().has_doubts);
  EXPECT_EQ(emptied(release_origin(k_empty_stack, k_empty_stack).program()), 0u);
}

// Who is told apart by one release of several has given all of them back.
TEST(ReleaseOrigins, WhatOneReleaseTellsHoldsForItsNeighbours) {
  Story run;
  run.alloc(8 * k_gib, k_gib, k_other).alloc(16 * k_gib, 2 * k_gib, k_first);
  run.alloc(4 * k_gib, k_gib / 4, k_first).free(8 * k_gib, k_gib).free(16 * k_gib, 2 * k_gib);
  run.release(8 * k_gib, k_gib, k_other).release(16 * k_gib, 2 * k_gib, k_other);
  run.alloc(32 * k_gib, 3 * k_gib, k_second);
  const Program program = run.program();
  EXPECT_EQ(emptied(program), 1u);
  EXPECT_FALSE(program.has_doubts);
  EXPECT_EQ(run.peak(), 13 * k_gib / 4);
}

// Expandable segments have no stack of their own, which a release could have instead of its
// caller's.
TEST(ReleaseOrigins, OfExpandableSegments) {
  for (const uint32_t releaser : {k_empties, k_first, k_second}) {
    Story run;
    run.map(8 * k_gib, k_gib, k_first).free(8 * k_gib, k_gib).unmap(8 * k_gib, k_gib, releaser);
    run.map(16 * k_gib, k_gib + k_gib / 2, k_second);
    EXPECT_EQ(emptied(run.program()), releaser == k_second ? 0u : 1u);
    EXPECT_FALSE(run.program().has_doubts && releaser != k_second);
  }
}

TEST(ReleaseOrigins, FirstByTheProgramThenForTheRequest) {
  Story run;
  run.alloc(8 * k_gib, k_gib, k_first).alloc(16 * k_gib, 2 * k_gib, k_first);
  run.free(8 * k_gib, k_gib).release(8 * k_gib, k_gib, k_empties);
  run.release(16 * k_gib, 2 * k_gib, k_second);  // another stream's frees may come in between
  run.alloc(32 * k_gib, 3 * k_gib, k_second);
  const Program program = run.program();
  EXPECT_EQ(emptied(program), 1u);
  EXPECT_FALSE(program.has_doubts);
  ASSERT_EQ(program.windows.size(), 4u);
  EXPECT_EQ(program.windows[2].end, 3u);
  EXPECT_EQ(program.windows[3].end, 5u);
}

// What the program had given back is not there for a request that then fails.
TEST(ReleaseOrigins, ByTheProgramBeforeAFailure) {
  Story run;
  run.alloc(8 * k_gib, k_gib, k_first).free(8 * k_gib, k_gib);
  run.release(8 * k_gib, k_gib, k_empties).refuse(4 * k_gib, k_second);
  EXPECT_EQ(emptied(run.program()), 1u);
  Story other;
  other.alloc(8 * k_gib, k_gib, k_first).free(8 * k_gib, k_gib);
  other.release(8 * k_gib, k_gib, k_second).refuse(4 * k_gib, k_second);
  EXPECT_EQ(emptied(other.program()), 0u);
}

VerifiedRecording verify_recording_file(const std::string& name) {
  const std::string path = cufit::test::source_dir() + "/tests/traces/" + name + ".pkl.gz";
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  const Snapshot snapshot =
      read_snapshot(std::make_shared<MemorySource>(path, bytes.str())).value();
  return *verify_recording(snapshot, 0, {});
}

struct Case {
  const char* file;
  double limit_gib;
  uint64_t peak_reserved, without_limit;  // measured
  uint64_t retries;
};

// On an H100, recorded below a limit: what the same program takes without one was measured, too.
TEST(ReleaseOrigins, OfRealRunsBelowALimit) {
  const Case cases[] = {{"emptied-all-limit2.73", 2.73, 2596274176, 3256877056, 3},
                        {"emptied-alloc-limit2.73", 2.73, 2596274176, 3256877056, 3},
                        {"plain-all-limit3.073", 3.073, 2732589056, 4024434688, 1},
                        {"benchmark-all-limit3.053", 3.053, 3221225472, 3642753024, 1},
                        {"expandable-all-limit1.629", 1.629, 1749024768, 1881145344, 5},
                        {"convolutions-limit1.479", 1.479, 1491075072, 2269118464, 2}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.file);
    const VerifiedRecording verified = verify_recording_file(one.file);
    EXPECT_TRUE(verified.verification.exact());
    EXPECT_EQ(verified.peak_reserved, one.peak_reserved);
    EXPECT_FALSE(verified.program->has_doubts);
    EXPECT_EQ(verified.retries, one.retries);
    const auto limit = static_cast<uint64_t>(one.limit_gib * double(k_gib));
    ASSERT_TRUE(verified.met_limit);
    EXPECT_LE(verified.met_limit->at_least, limit);
    EXPECT_GT(verified.met_limit->below, limit);
    Question questions[2];
    questions[1].allowed = limit;
    for (Question& question : questions) question.settings = verified.settings;
    const std::vector<Answer> answers = *ask(verified, questions);
    EXPECT_EQ(answers[0].result.stats.reserved_bytes.peak, one.without_limit);
    EXPECT_EQ(answers[1].result.stats.reserved_bytes.peak, one.peak_reserved);
    EXPECT_EQ(answers[1].result.stats.num_alloc_retries, one.retries);
    EXPECT_FALSE(answers[1].result.oom);
  }
}

// It empties the cache from C++, some 60 times: with frames of C++ that is known, without them it
// is not taken for a limit's doing either.
TEST(ReleaseOrigins, ByTheBenchmarkOfCudnn) {
  for (const char* const file : {"benchmark-all", "benchmark-python"}) {
    SCOPED_TRACE(file);
    const VerifiedRecording verified = verify_recording_file(file);
    EXPECT_TRUE(verified.verification.exact());
    EXPECT_EQ(verified.retries.value_or(0), 0u);
    EXPECT_FALSE(verified.met_limit);
    const Question recorded;
    const Answer answer = (*ask(verified, std::span(&recorded, 1)))[0];
    EXPECT_EQ(answer.result.stats.reserved_bytes.peak, 3642753024u);
    EXPECT_TRUE(answer.result.replay_limitations.empty());
  }
}

}  // namespace release_origin_test
}  // namespace cufit::memory
