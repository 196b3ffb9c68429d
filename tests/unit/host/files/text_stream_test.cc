// SPDX-License-Identifier: Apache-2.0
#include "host/files/text_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::host {
namespace text_stream_test {

std::string scratch(const std::string& name) {
  return testing::TempDir() + "cufit-stream-" + std::to_string(getpid()) + "-" + name;
}

TEST(ReadStream, TakesAFileInPiecesAndSaysHowFar) {
  const std::string path = scratch("file"), text(3'000'000, 'x');
  std::ofstream(path, std::ios::binary) << text;
  std::string got;
  uint64_t last = 0;
  size_t pieces = 0;
  ASSERT_TRUE(read_stream(path, [&](std::string_view piece, uint64_t done, uint64_t total) {
    got += piece;
    ++pieces;
    last = done;
    EXPECT_EQ(total, text.size());
  }));
  EXPECT_EQ(got, text);
  EXPECT_EQ(last, text.size());
  EXPECT_GE(pieces, 3u);
  unlink(path.c_str());
}

TEST(ReadStream, TakesAPipeWhoseLengthNobodyKnows) {
  const std::string path = scratch("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(path, std::ios::binary) << "one\ntwo\n"; });
  std::string got;
  EXPECT_TRUE(read_stream(path, [&](std::string_view piece, uint64_t, uint64_t total) {
    got += piece;
    EXPECT_EQ(total, 0u);
  }));
  writer.join();
  EXPECT_EQ(got, "one\ntwo\n");
  unlink(path.c_str());
}

TEST(ReadStream, NamesWhatCannotBeRead) {
  const auto take = [](std::string_view, uint64_t, uint64_t) {};
  const auto absent = read_stream("/no/such/file", take);
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::not_found);
  EXPECT_TRUE(contains(absent.error().text(), "`/no/such/file`"));
  EXPECT_FALSE(read_stream("/", take));  // a directory opens, and cannot be read
}

}  // namespace text_stream_test
}  // namespace cufit::host
