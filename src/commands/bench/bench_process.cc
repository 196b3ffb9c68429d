// SPDX-License-Identifier: Apache-2.0
#include "commands/bench/bench_process.h"

#include "base/format.h"
#include "host/process/start_program.h"

namespace cufit::commands {
namespace {

using formats::BenchRefusal;

constexpr double k_slower =
    3;  // a block than it was meant to be, and the process is not yet taken to hang

// As if the environment were active, and nothing is left behind in it.
std::vector<std::string> bench_variables(const Context& context,
                                         const resolve::BenchEnvironment& env) {
  std::vector<std::string> out =
      host::activated_variables(context.files, env.folder, env.is_class ? env.name : std::string());
  std::erase_if(out, [](const std::string& one) {
    return starts_with(one, "PYTHONSTARTUP=") || starts_with(one, "PYTHONINSPECT=");
  });
  out.emplace_back("PYTHONDONTWRITEBYTECODE=1");
  return out;
}

}  // namespace

BenchRefusal BenchProcess::ask(const Json& request, std::string& line, double more_seconds) {
  using How = host::BenchReply::How;
  const double limit = setting_.answer_seconds + more_seconds;
  host::BenchReply reply =
      child_->ask(request.dump(-1, true), limit, setting_.interrupts, setting_.idle);
  switch (reply.how) {
    case How::answered:
      line = std::move(reply.line);
      return {};
    case How::ended:
      return {"died", reply.line};
    case How::late:
      return {"hung", format("{:g}", limit)};
    case How::garbage:
      return {"garbage", reply.line};
    case How::cancelled:
      return {"interrupted", {}};
  }
  return {};
}

formats::BenchAnswer<formats::BenchHello> BenchProcess::hello() {
  formats::BenchAnswer<formats::BenchHello> out;
  child_.reset();
  Result<host::BenchChild> made = host::BenchChild::start(setting_.folder, env_.interpreter,
                                                          bench_variables(setting_.context, env_));
  if (!made) {
    out.refusal = {"died", made.error().text()};
    return out;
  }
  child_.emplace(std::move(*made));
  std::string line;
  out.refusal = ask({{"do", "hello"}, {"device", setting_.device}}, line);
  return out.refusal.kind.empty() ? formats::parse_bench_hello(line) : out;
}

formats::BenchAnswer<formats::BenchLoaded> BenchProcess::load(const BenchWorkload& workload,
                                                              const std::string& precision,
                                                              std::optional<uint64_t> batch) {
  formats::BenchAnswer<formats::BenchLoaded> out;
  if (pid() <= 0) {  // it died of the workload before this one
    out.refusal = hello().refusal;
    if (!out.refusal.kind.empty()) return out;
  }
  Json request = {{"do", "load"}, {"workload", workload.name}};
  request["file"] = workload.file.empty() ? Json(nullptr) : Json(workload.file);
  request["batch"] = batch ? Json(*batch) : Json(nullptr);
  request["precision"] = precision.empty() ? "fp32" : precision;
  std::string line;
  out.refusal = ask(request, line);
  return out.refusal.kind.empty() ? formats::parse_bench_loaded(line) : out;
}

formats::BenchAnswer<formats::BenchBlock> BenchProcess::block(uint64_t calls, double seconds) {
  formats::BenchAnswer<formats::BenchBlock> out;
  std::string line;
  out.refusal = ask({{"do", "block"}, {"calls", calls}}, line, k_slower * seconds);
  return out.refusal.kind.empty() ? formats::parse_bench_block(line) : out;
}

void BenchProcess::free() {
  std::string line;
  if (pid() > 0) (void)ask({{"do", "free"}}, line);
}

}  // namespace cufit::commands
