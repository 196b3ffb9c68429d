// SPDX-License-Identifier: Apache-2.0
#include "resolve/quota/backend.h"

#include <gtest/gtest.h>

#include "knowledge/knowledge.h"

namespace cufit::resolve {
namespace backend_test {

using State = BackendVerdict::State;
using Program = QuotaMachine::Program;

const knowledge::Knowledge& world() { return knowledge::Knowledge::builtin(); }

// Everything that any back end needs.
QuotaMachine able() {
  QuotaMachine out;
  out.driver = parse_version("615.10");
  out.kernel = parse_version("6.14");
  out.architecture = "x86_64";
  out.gpus = {{"NVIDIA H100 80GB HBM3", parse_compute_capability("9.0"), false}};
  out.cgroup_v2 = true;
  out.accounting = "dmem";
  out.root = true;
  out.mps_running = true;
  out.program = Program::dynamic;
  out.torch = parse_version("2.10.0");
  return out;
}

BackendVerdict verdict(const QuotaMachine& machine, QuotaBackend backend) {
  const std::vector<BackendVerdict> all = quota_backends(machine, world());
  EXPECT_EQ(all.size(), 5u);
  const BackendVerdict& one = all.at(static_cast<size_t>(backend));
  EXPECT_EQ(one.backend, backend);
  return one;
}

struct Expected {
  State state;
  std::string why, to_enable;
};
void expect(const QuotaMachine& machine, QuotaBackend backend, const Expected& expected) {
  const BackendVerdict found = verdict(machine, backend);
  EXPECT_EQ(found.state, expected.state) << to_string(backend);
  EXPECT_EQ(found.why, expected.why) << to_string(backend);
  EXPECT_EQ(found.to_enable, expected.to_enable) << to_string(backend);
  // Each id has its sentences, and every place in them is filled.
  for (const auto& [kind, id] : {std::pair("why", found.why), std::pair("enable", found.to_enable)})
    if (!id.empty())
      for (const char* lang : {"en", "zh"}) {
        const std::string text(world().message(
            std::string("quota.") + kind + "." + to_string(backend) + "_" + id, lang));
        EXPECT_FALSE(text.empty()) << kind << " " << id;
        for (size_t at = text.find('{'); at != std::string::npos; at = text.find('{', at + 1))
          EXPECT_EQ(found.args.count(text.substr(at + 1, text.find('}', at) - at - 1)), 1u)
              << to_string(backend) << ": " << text;
      }
}

template <class Change>
QuotaMachine changed(Change change) {
  QuotaMachine out = able();
  change(out);
  return out;
}

TEST(QuotaBackends, TheKernelsLimit) {
  constexpr QuotaBackend k = QuotaBackend::kernel;
  expect(able(), k, {State::possible, "not_started", "set"});
  expect(changed([](auto& m) { m.wsl = true; }), k, {State::not_possible, "wsl", ""});
  expect(changed([](auto& m) { m.jetson = true; }), k, {State::not_possible, "jetson", ""});
  expect(changed([](auto& m) { m.driver.reset(); }), k,
         {State::not_possible, "no_driver", "driver"});
  expect(changed([](auto& m) { m.driver = parse_version("614.99"); }), k,
         {State::not_possible, "driver", "driver"});
  expect(changed([](auto& m) { m.gpus[0].mig_instance = true; }), k,
         {State::not_possible, "mig", ""});
  expect(changed([](auto& m) { m.cgroup_v2 = false; }), k,
         {State::not_possible, "cgroup", "cgroup"});
  expect(changed([](auto& m) { m.accounting = ""; }), k,
         {State::not_possible, "accounting", "accounting"});
  expect(changed([](auto& m) { m.root = false; }), k, {State::not_possible, "root", "set"});
}

TEST(QuotaBackends, Mig) {
  constexpr QuotaBackend k = QuotaBackend::mig;
  expect(able(), k, {State::possible, "not_divided", "divide"});
  expect(changed([](auto& m) { m.gpus.clear(); }), k, {State::not_possible, "no_gpu", ""});
  expect(changed([](auto& m) { m.gpus[0].mig_instance = true; }), k,
         {State::possible, "instance", ""});
  expect(changed([](auto& m) { m.gpus[0].name = "NVIDIA GeForce RTX 4090"; }), k,
         {State::not_possible, "card", ""});
  expect(changed([](auto& m) { m.gpus[0].name = "a card of tomorrow"; }), k,
         {State::not_possible, "card", ""});
  expect(changed([](auto& m) { m.driver = parse_version("450.10"); }), k,
         {State::not_possible, "driver", "driver"});
  // One that cannot be divided beside one that can.
  expect(changed([](auto& m) {
           m.gpus.push_back({"NVIDIA GeForce RTX 4090", {}, false});
         }),
         k, {State::not_possible, "card", ""});
}

TEST(QuotaBackends, Mps) {
  constexpr QuotaBackend k = QuotaBackend::mps;
  expect(able(), k, {State::starts, "each", ""});
  expect(changed([](auto& m) { m.mps_running = false; }), k,
         {State::possible, "no_server", "server"});
  const auto no_program = [](auto& m) { m.mps_running = m.mps_program = false; };
  expect(changed(no_program), k, {State::not_possible, "no_program", "program"});
  expect(changed([](auto& m) { m.mps_program = false; }), k, {State::starts, "each", ""});
  expect(changed([](auto& m) { m.wsl = true; }), k, {State::not_possible, "wsl", ""});
  expect(changed([](auto& m) { m.jetson = true; }), k, {State::not_possible, "jetson", ""});
  expect(changed([](auto& m) { m.gpus.clear(); }), k, {State::not_possible, "no_gpu", ""});
  expect(changed([](auto& m) { m.gpus[0].cc = parse_compute_capability("6.1"); }), k,
         {State::not_possible, "card", ""});
  expect(changed([](auto& m) { m.gpus[0].cc = parse_compute_capability("7.0"); }), k,
         {State::starts, "each", ""});
  expect(changed([](auto& m) { m.driver = parse_version("470.256"); }), k,
         {State::not_possible, "driver", "driver"});
}

TEST(QuotaBackends, TheGuard) {
  constexpr QuotaBackend k = QuotaBackend::guard;
  for (const Program program : {Program::none, Program::dynamic, Program::not_read})
    expect(changed([&](auto& m) { m.program = program; }), k, {State::starts, "", ""});
  expect(changed([](auto& m) { m.program = Program::static_linked; }), k,
         {State::not_possible, "static", ""});
  expect(changed([](auto& m) { m.program = Program::musl; }), k,
         {State::not_possible, "musl", "glibc"});
  expect(changed([](auto& m) { m.program = Program::secure; }), k,
         {State::not_possible, "secure", "plain"});
  expect(changed([](auto& m) { m.guard_off = true; }), k, {State::not_possible, "off", "on"});
  expect(changed([](auto& m) { m.architecture = "aarch64"; }), k, {State::starts, "", ""});
  expect(changed([](auto& m) { m.architecture = "ppc64le"; }), k,
         {State::not_possible, "architecture", ""});
}

TEST(QuotaBackends, TorchsFraction) {
  constexpr QuotaBackend k = QuotaBackend::torch;
  expect(able(), k, {State::starts, "", ""});
  expect(changed([](auto& m) { m.fraction_set = true; }), k, {State::not_possible, "set", ""});
  expect(changed([](auto& m) { m.torch.reset(); }), k, {State::not_possible, "not_found", "torch"});
  // An older torch ends the program at an unknown key.
  expect(changed([](auto& m) { m.torch = parse_version("2.9.1"); }), k,
         {State::not_possible, "old", "torch"});
  expect(changed([](auto& m) { m.torch = parse_version("2.10.0a0+git"); }), k,
         {State::starts, "", ""});
}

TEST(QuotaBackends, TheStrongestThatStartsIsChosen) {
  QuotaMachine machine = able();
  EXPECT_EQ(chosen_backend(quota_backends(machine, world()))->backend, QuotaBackend::mps);
  machine.mps_running = false;
  EXPECT_EQ(chosen_backend(quota_backends(machine, world()))->backend, QuotaBackend::guard);
  machine.guard_off = true;
  EXPECT_EQ(chosen_backend(quota_backends(machine, world()))->backend, QuotaBackend::torch);
  machine.torch.reset();
  EXPECT_EQ(chosen_backend(quota_backends(machine, world())), nullptr);
  EXPECT_EQ(chosen_backend({}), nullptr);
}

// Nothing known: nothing is promised but what needs nothing.
TEST(QuotaBackends, OfAnUnknownMachine) {
  for (const BackendVerdict& one : quota_backends({}, world()))
    EXPECT_EQ(one.state, State::not_possible) << to_string(one.backend);
}

}  // namespace backend_test
}  // namespace cufit::resolve
