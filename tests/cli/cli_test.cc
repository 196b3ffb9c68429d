// SPDX-License-Identifier: Apache-2.0
// Whole-process tests: one folder per case below tests/cli/.
//   cmd      one shell line; $CUFIT is the program, $TMP a fresh folder; runs in the source tree's
//   root stdout   expected, byte for byte (absent: nothing) stderr   expected, byte for byte
//   (absent: nothing) exit     expected exit code (absent: 0) columns  present: run under a
//   pseudo-terminal of that many columns; stdout then holds what the terminal got
// UPDATE_GOLDEN=1 rewrites stdout, stderr and exit: read the difference before committing it.
#include <fcntl.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  std::string out, err;
  int code = 0;
};

constexpr int k_no_terminal = -1;  // no /dev/ptmx, as in a bare chroot

std::string read_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string read_all(int handle) {
  std::string out;
  char buffer[4096];
  ssize_t count;
  while ((count = read(handle, buffer, sizeof buffer)) > 0)
    out.append(buffer, static_cast<size_t>(count));
  return out;  // a pseudo-terminal ends with EIO
}

// The child's environment is a fixed one: no variable of the tester changes a golden text.
[[noreturn]] void run_shell(const std::string& line, const fs::path& scratch) {
  if (chdir(CUFIT_SOURCE_DIR) != 0) _exit(127);
  const std::string cufit = std::string("CUFIT=") + CUFIT_PROGRAM;
  const std::string temporary = "TMP=" + scratch.string();
  const char* environment[] = {cufit.c_str(), temporary.c_str(), "PATH=/usr/bin:/bin",
                               "LANG=C",      "TERM=xterm",      nullptr};
  execle("/bin/sh", "sh", "-c", line.c_str(), nullptr, const_cast<char* const*>(environment));
  _exit(127);
}

Outcome run_piped(const std::string& line, const fs::path& scratch) {
  const fs::path err = scratch / "stderr.txt";
  int ends[2];
  if (pipe(ends) != 0) return {"", "pipe failed", 127};
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    int handle = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(handle, STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    run_shell(line, scratch);
  }
  close(ends[1]);
  Outcome outcome;
  outcome.out = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = read_text(err);
  return outcome;
}

Outcome run_on_terminal(const std::string& line, const fs::path& scratch, unsigned short columns) {
  winsize size{};
  size.ws_row = 50;
  size.ws_col = columns;
  int master = -1;
  pid_t child = forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) run_shell(line, scratch);
  Outcome outcome;
  if (child < 0) {
    outcome.code = k_no_terminal;
    return outcome;
  }
  outcome.out = read_all(master);
  close(master);
  int status = 0;
  waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::vector<fs::path> cases() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(fs::path(CUFIT_SOURCE_DIR) / "tests/cli")) {
    if (fs::exists(entry.path() / "cmd")) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string case_name(const testing::TestParamInfo<fs::path>& info) {
  std::string name = info.param.filename().string();
  for (char& c : name) {
    if (!isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

void update(const fs::path& file, const std::string& text) {
  if (text.empty()) {
    fs::remove(file);
  } else {
    std::ofstream(file, std::ios::binary) << text;
  }
}

class Cli : public testing::TestWithParam<fs::path> {};

TEST_P(Cli, PrintsWhatItShould) {
  const fs::path dir = GetParam();
  char scratch_name[] = "/tmp/cufit-cli-XXXXXX";
  ASSERT_NE(mkdtemp(scratch_name), nullptr);
  const fs::path scratch = scratch_name;
  const std::string columns = read_text(dir / "columns");
  const std::string line = read_text(dir / "cmd");
  const Outcome outcome =
      columns.empty()
          ? run_piped(line, scratch)
          : run_on_terminal(line, scratch, static_cast<unsigned short>(std::stoi(columns)));
  fs::remove_all(scratch);
  if (outcome.code == k_no_terminal) GTEST_SKIP() << "no pseudo-terminal can be opened here";
  if (std::getenv("UPDATE_GOLDEN")) {
    update(dir / "stdout", outcome.out);
    update(dir / "stderr", outcome.err);
    update(dir / "exit", outcome.code == 0 ? "" : std::to_string(outcome.code) + "\n");
    GTEST_SKIP() << "golden files of " << dir << " rewritten";
  }
  const std::string code = read_text(dir / "exit");
  EXPECT_EQ(outcome.code, code.empty() ? 0 : std::stoi(code));
  EXPECT_EQ(outcome.out, read_text(dir / "stdout"));
  EXPECT_EQ(outcome.err, read_text(dir / "stderr"));
}

INSTANTIATE_TEST_SUITE_P(All, Cli, testing::ValuesIn(cases()), case_name);

}  // namespace
