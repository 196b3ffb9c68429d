// SPDX-License-Identifier: Apache-2.0
#include "host/python/torch_child.h"

#include <csignal>

#include <gtest/gtest.h>

#include "host/probe.h"
#include "support/fake_root.h"

namespace cufit::host {
namespace torch_child_test {

const std::map<std::string, std::string> k_variables = {{"PATH", "/usr/bin:/bin"},
                                                        {"CUFIT_X", "seen"}};

ProgramResult shell(const std::string& script, double seconds = 30) {
  return run_program({"/bin/sh", "-c", script}, k_variables, seconds);
}

TEST(RunProgram, GivesOutputAndStatus) {
  ProgramResult result = shell("echo out $CUFIT_X; echo err >&2; pwd; exit 7");
  ASSERT_TRUE(result.started) << result.start_error;
  EXPECT_EQ(result.out, "out seen\n/\n");
  EXPECT_EQ(result.err, "err\n");
  EXPECT_EQ(WEXITSTATUS(result.status), 7);
  EXPECT_FALSE(result.timed_out);
}

TEST(RunProgram, StdinIsEmpty) { EXPECT_EQ(shell("cat; echo end").out, "end\n"); }

TEST(RunProgram, ProgramThatIsNotThere) {
  ProgramResult result = run_program({"/nonexistent/python"}, {}, 30);
  EXPECT_FALSE(result.started);
  EXPECT_EQ(result.start_error, "`/nonexistent/python`: No such file or directory");
}

TEST(RunProgram, EndsAProgramThatHangsWithItsChildren) {
  // The sleep holds the pipe open: if only the shell were killed, reading would go on for 1000 s.
  ProgramResult result = shell("echo before; sleep 1000 & wait", 0.5);
  EXPECT_TRUE(result.timed_out);
  EXPECT_EQ(result.out, "before\n");
  EXPECT_TRUE(WIFSIGNALED(result.status));
}

TEST(RunProgram, KeepsTheEndOfMuchOutput) {
  ProgramResult result = shell("i=0; while [ $i -lt 40000 ]; do echo line$i; i=$((i+1)); done");
  EXPECT_LE(result.out.size(), size_t{128} << 10);
  EXPECT_NE(result.out.find("\nline39999\n"), std::string::npos);
}

TEST(TorchAnswer, TakesTheMarkedLineOrSaysHowItEnded) {
  struct Row {
    const char* script;
    const char* answer;
  };
  for (const Row& row : {
           Row{"echo; echo 'cufit: ok'", "ok"},
           Row{"echo warning; echo; echo 'cufit: ImportError: libcudnn.so.9'; echo >&2 noise",
               "ImportError: libcudnn.so.9"},
           Row{"echo 'cufit: ok' >&2; exit 3", "Python ended with status 3: cufit: ok"},
           Row{"echo a >&2; echo 'Fatal Python error' >&2; kill -11 $$",
               "Python was ended by signal 11: Fatal Python error"},
           Row{"kill -9 $$", "Python was ended by signal 9"},
           Row{"exit 0", "Python ended with status 0"},
       }) {
    EXPECT_EQ(torch_answer(shell(row.script)), row.answer) << row.script;
  }
}

// A `torch` that is a few lines of Python: the script, the interpreter and the fact around it are
// the real ones.
facts::Facts check_with(const test::FakeRoot& root, bool deep = true) {
  RealHost host("/", {{"PATH", "/usr/bin:/bin"}, {"PYTHONPATH", root.path()}});
  facts::Facts facts;
  facts::PythonEnv& env = facts.envs.emplace_back();
  env.interpreter = known<std::string>("/usr/bin/python3", SourceKind::file, "test");
  env.torch.version = known<std::string>("2.11.0", SourceKind::file, "test");
  ProbeOptions options;
  options.deep = deep;
  run_torch_checks(host, options, facts);
  return facts;
}

TEST(TorchChecks, SayWhatTorchSays) {
  if (!RealHost().exists("/usr/bin/python3")) GTEST_SKIP() << "needs /usr/bin/python3";
  struct Row {
    const char* torch;
    const char* answer;  // "" = a missing fact
  };
  for (const Row& row : {
           Row{"raise ImportError('libtorch_cuda.so: undefined symbol: ncclCommWindowRegister')",
               "ImportError: libtorch_cuda.so: undefined symbol: ncclCommWindowRegister"},
           Row{"class version: cuda = None; hip = None", ""},
           Row{"class version: cuda = '13.0'; hip = None\nclass cuda:\n  is_available = lambda: "
               "False\n"
               "def zeros(*a, **k): raise RuntimeError('The NVIDIA driver on your system is too "
               "old\\nmore')\n",
               "torch.cuda.is_available() is False: The NVIDIA driver on your system is too old"},
           Row{"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
               "Python was ended by signal 11"},
           Row{"raise SystemExit(4)", "SystemExit: 4"},
       }) {
    test::FakeRoot root;
    root.file("/torch.py", row.torch);
    facts::Facts facts = check_with(root);
    const Fact<std::string>& run = facts.envs[0].torch_run;
    EXPECT_EQ(run.value_or(""), row.answer);
    if (!run) {
      EXPECT_EQ(run.why, WhyNot::not_supported) << row.torch;
      EXPECT_EQ(run.note, "torch is built without CUDA");
    }
    EXPECT_FALSE(RealHost().exists(root.at("/__pycache__"))) << "the check left files behind";
  }
}

TEST(TorchChecks, RunNothingUnlessDeep) {
  test::FakeRoot root;
  root.file("/torch.py", "open('" + root.at("/ran") + "', 'w')");
  EXPECT_EQ(check_with(root, false).envs[0].torch_run.why, WhyNot::not_asked);
  EXPECT_FALSE(RealHost().exists(root.at("/ran")));
}

}  // namespace torch_child_test
}  // namespace cufit::host
