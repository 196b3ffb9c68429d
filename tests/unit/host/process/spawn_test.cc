// SPDX-License-Identifier: Apache-2.0
// What a child of cufit inherits and what it does not.
#include "host/process/spawn.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "base/format.h"
#include "host/files/host.h"

namespace cufit::host {
namespace spawn_test {

std::string read_all(const FileHandle& end) {
  std::string out;
  char bytes[4096];
  for (ssize_t count; (count = read(end.get(), bytes, sizeof bytes)) > 0;)
    out.append(bytes, static_cast<size_t>(count));
  return out;
}

int wait_status(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

// What a program prints when it is started so.
std::string printed(SpawnOptions options, std::vector<std::string> command) {
  Result<Pipe> out = open_pipe();
  options.command = std::move(command);
  options.out = out->write_end.get();
  Result<SpawnedProgram> child = spawn_program(options);
  out->write_end.reset();
  if (!child) return child.error().text();
  const std::string text = read_all(out->read_end);
  EXPECT_EQ(child->start_error(true), 0);
  EXPECT_EQ(wait_status(child->pid), 0);
  return text;
}

std::string said(const SpawnOptions& options, const std::string& script) {
  return printed(options, {"sh", "-c", script});
}

TEST(Spawn, VariablesChangeCufitsOwn) {
  setenv("CUFIT_SPAWN_KEPT", "kept", 1);
  setenv("CUFIT_SPAWN_GONE", "there", 1);
  SpawnOptions options;
  options.variables = {{"CUFIT_SPAWN_NEW", "new"}, {"CUFIT_SPAWN_GONE", std::nullopt}};
  EXPECT_EQ(said(options, "echo $CUFIT_SPAWN_KEPT $CUFIT_SPAWN_NEW ${CUFIT_SPAWN_GONE-gone}"),
            "kept new gone\n");
  EXPECT_EQ(getenv("CUFIT_SPAWN_NEW"), nullptr);
  options.environment = {"CUFIT_SPAWN_ONLY=1"};
  options.variables.clear();
  options.path = "/bin/sh";
  EXPECT_EQ(said(options, "echo ${CUFIT_SPAWN_KEPT-none} $CUFIT_SPAWN_ONLY"), "none 1\n");
}

TEST(Spawn, FolderAndFiles) {
  SpawnOptions options;
  options.folder = "/";
  options.empty_input = true;
  EXPECT_EQ(said(options, "pwd; wc -c"), "/\n0\n");
  Result<Pipe> err = open_pipe();
  options.err = err->write_end.get();
  EXPECT_EQ(said(options, "echo wrong >&2; echo right"), "right\n");
  err->write_end.reset();
  EXPECT_EQ(read_all(err->read_end), "wrong\n");
}

TEST(Spawn, NoOtherFileIsInherited) {
  Result<Pipe> other = open_pipe();
  const int number = other->write_end.get();
  const std::string seen =
      said({}, format("test -e /proc/self/fd/{} && echo open; echo end", number));
  EXPECT_EQ(seen, "end\n");
}

// Not even that of its empty input: the shell's own, and the folder that it lists.
TEST(Spawn, AnEmptyInputLeavesNoFileBehind) {
  SpawnOptions plain, empty;
  empty.empty_input = true;
  const std::string count = "ls /proc/self/fd | wc -l";
  EXPECT_EQ(said(empty, count), said(plain, count));
  EXPECT_EQ(said(empty, "readlink /proc/self/fd/0"), "/dev/null\n");
}

// Bits of "SigBlk:" and "SigIgn:" in /proc/self/status.
uint64_t mask_of(const std::string& status, const std::string& name) {
  const size_t at = status.find(name);
  return at == std::string::npos ? 0 : std::stoull(status.substr(at + name.size()), nullptr, 16);
}

// Not by a shell, which would set its own.
std::string status_of(const SpawnOptions& options) {
  return printed(options, {"cat", "/proc/self/status"});
}

bool has(uint64_t mask, int number) { return ((mask >> (number - 1)) & 1) != 0; }

TEST(Spawn, Signals) {
  const auto before = signal(SIGUSR2, SIG_IGN);
  SpawnOptions options;
  sigaddset(&options.blocked, SIGUSR1);
  const std::string plain = status_of(options);
  EXPECT_TRUE(has(mask_of(plain, "SigBlk:"), SIGUSR1));
  EXPECT_FALSE(has(mask_of(plain, "SigBlk:"), SIGTERM));
  EXPECT_TRUE(has(mask_of(plain, "SigIgn:"), SIGUSR2));
  options.default_signals = true;
  EXPECT_FALSE(has(mask_of(status_of(options), "SigIgn:"), SIGUSR2));
  options.default_signals = false;
  options.before = [] { signal(SIGUSR2, SIG_DFL); };
  EXPECT_FALSE(has(mask_of(status_of(options), "SigIgn:"), SIGUSR2));
  signal(SIGUSR2, before);
}

TEST(Spawn, AnIgnoredEndOfAChildIsNotLost) {
  signal(SIGCHLD, SIG_IGN);
  SpawnOptions options;
  options.command = {"sh", "-c", "exit 7"};
  Result<SpawnedProgram> child = spawn_program(options);
  ASSERT_TRUE(child);
  EXPECT_EQ(WEXITSTATUS(wait_status(child->pid)), 7);
}

TEST(Spawn, Groups) {
  const std::string script = "cut -d' ' -f5 /proc/self/stat";  // of the process: its group
  SpawnOptions options;
  EXPECT_EQ(said(options, script), format("{}\n", getpgrp()));
  options.own_group = true;
  const std::string own = said(options, "echo $$; " + script);
  const size_t end = own.find('\n');
  EXPECT_EQ(own.substr(0, end + 1), own.substr(end + 1));
}

TEST(Spawn, WhyAProgramDidNotStart) {
  const struct {
    const char* command;
    const char* folder;
    int want;
  } rows[] = {{"/nonexistent/program", "", ENOENT},
              {"no-such-program-of-cufit", "", ENOENT},
              {"/etc/passwd", "", EACCES},
              {"true", "/nonexistent", ENOENT},
              {"true", "", 0}};
  for (const auto& row : rows) {
    SpawnOptions options;
    options.command = {row.command};
    options.folder = row.folder;
    // Of the tester's PATH a folder may be closed to him: then EACCES is the answer.
    options.variables = {{"PATH", "/usr/bin:/bin"}};
    Result<SpawnedProgram> child = spawn_program(options);
    ASSERT_TRUE(child) << row.command;
    EXPECT_EQ(child->start_error(true), row.want) << row.command << " " << row.folder;
    EXPECT_EQ(WEXITSTATUS(wait_status(child->pid)), row.want == 0 ? 0 : 127) << row.command;
  }
}

TEST(Spawn, BeforeItsEndNothingIsWaitedFor) {
  SpawnOptions options;
  options.command = {"sh", "-c", "exec sleep 60"};
  Result<SpawnedProgram> child = spawn_program(options);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->start_error(false), 0);
  kill(child->pid, SIGKILL);
  EXPECT_EQ(WTERMSIG(wait_status(child->pid)), SIGKILL);
}

// Its parent is a process of its own, which ends at once; the child's end closes the pipe.
TEST(Spawn, TheChildEndsWithItsParent) {
  for (const int number : {SIGTERM, 0}) {
    Result<SpawnedWorker> parent = spawn_worker(RealHost(), [&](int pipe) {
      SpawnOptions options;
      options.command = {"sh", "-c",
                         "trap 'echo ended; exit' TERM; echo ready >&2; sleep 1; echo alive"};
      Result<Pipe> ready = open_pipe();
      options.out = pipe;
      options.err = ready->write_end.get();
      options.signal_with_parent = number;
      if (!spawn_program(options)) return;
      char first = 0;
      (void)!read(ready->read_end.get(), &first, 1);  // it has set its trap
    });
    ASSERT_TRUE(parent);
    const std::string text = read_all(parent->answers);
    EXPECT_EQ(text, number == 0 ? "alive\n" : "ended\n");
    wait_status(parent->pid);
  }
}

// Who waits for the end of one child with a signalfd may start another meanwhile.
TEST(Spawn, TheEndOfAnotherChildIsStillTold) {
  sigset_t end, before, pending;
  sigemptyset(&end);
  sigaddset(&end, SIGCHLD);
  pthread_sigmask(SIG_BLOCK, &end, &before);
  SpawnOptions options;
  options.command = {"true"};
  options.blocked = before;
  Result<SpawnedProgram> child = spawn_program(options);
  ASSERT_TRUE(child);
  siginfo_t info;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child->pid), &info, WEXITED | WNOWAIT), 0);
  Result<SpawnedWorker> worker = spawn_worker(RealHost(), [](int) { usleep(500'000); });
  ASSERT_TRUE(worker);
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGCHLD), 1);
  wait_status(worker->pid);
  wait_status(child->pid);
  const timespec now{};
  sigtimedwait(&end, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Spawn, AWorkerAnswersAndEnds) {
  bool touched = false;
  Result<SpawnedWorker> worker = spawn_worker(RealHost(), [&](int pipe) {
    touched = true;
    (void)!write(pipe, "done", 4);
  });
  ASSERT_TRUE(worker);
  EXPECT_EQ(read_all(worker->answers), "done");
  EXPECT_EQ(wait_status(worker->pid), 0);
  EXPECT_FALSE(touched);  // it was another process
}

TEST(Spawn, AnExceptionEndsTheWorkerAlone) {
  Result<SpawnedWorker> worker =
      spawn_worker(RealHost(), [](int) { throw std::runtime_error("of a worker"); });
  ASSERT_TRUE(worker);
  EXPECT_EQ(read_all(worker->answers), "");
  const int status = wait_status(worker->pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) << status;
}

TEST(Spawn, BecomesAnotherProgramOrSaysWhyNot) {
  EXPECT_EQ(become_program("/nonexistent/program", {"program"}, {}), ENOENT);
  Result<SpawnedWorker> worker = spawn_worker(RealHost(), [](int pipe) {
    dup2(pipe, STDOUT_FILENO);
    become_program("/bin/sh", {"sh", "-c", "echo $NAME"}, {"NAME=other"});
  });
  ASSERT_TRUE(worker);
  EXPECT_EQ(read_all(worker->answers), "other\n");
  EXPECT_EQ(wait_status(worker->pid), 0);
}

}  // namespace spawn_test
}  // namespace cufit::host
