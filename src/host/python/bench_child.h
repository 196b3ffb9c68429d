// SPDX-License-Identifier: Apache-2.0
// A process of `cufit bench`: an environment's own Python that stays and answers requests (python/cufit_bench), one JSON
// object a line. It runs a workload of the user's, so it may die, hang or write what is no answer; it never takes cufit with
// it. It has a process group of its own, which ends with it, and ends with cufit.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "host/process/child_process.h"
#include "host/process/spawn.h"
#include "host/python/sitecustomize_dir.h"

namespace cufit::host {

struct BenchReply {
  // `ended`: it died, or was never there; `late`: no answer within the time, and it was ended; `garbage`: a line over 64 KiB;
  // `cancelled`: a signal asked cufit to end.
  enum class How { answered, ended, late, garbage, cancelled };
  How how = How::answered;
  std::string line;  // the answer; of `ended` how, and its last words
};

class BenchChild {
 public:
  // `variables`: "NAME=value" of all. What it writes to stderr is kept, not shown. Error{io}: there is no process; a Python
  // that is not there is the reply to the first request.
  static Result<BenchChild> start(const ScriptFolder& folder, const std::string& python,
                                  const std::vector<std::string>& variables);
  BenchChild(BenchChild&& other) noexcept;
  BenchChild& operator=(BenchChild&&) = delete;
  ~BenchChild();

  // `idle` is called some twenty times a second while it works.
  BenchReply ask(const std::string& request, double seconds, Interrupts& interrupts,
                 const std::function<void()>& idle);
  pid_t pid() const { return program_.pid; }  // -1: it has ended

  // What start() needs in its folder.
  static Result<ScriptFolder> make_folder();

 private:
  BenchChild(SpawnedProgram program, FileHandle in, FileHandle out, FileHandle err);
  void end();
  std::string how_it_ended();
  bool write_line(std::string text);
  void read_errors();
  bool read_some();

  SpawnedProgram program_;
  FileHandle in_, out_, err_;
  std::string buffer_, said_, name_;
};

const char* bench_program();  // the text of python/cufit_bench

}  // namespace cufit::host
