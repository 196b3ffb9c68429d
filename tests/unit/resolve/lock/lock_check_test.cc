// SPDX-License-Identifier: Apache-2.0
#include "resolve/lock/lock_check.h"

#include <gtest/gtest.h>

#include "base/sha256.h"
#include "resolve/lock/environment_check.h"

namespace cufit::resolve {
namespace lock_check_test {

formats::PylockPackage package(const std::string& name, const std::string& version,
                               const std::string& sum = "00") {
  formats::PylockPackage out;
  out.name = name;
  out.version = version;
  out.wheels.push_back({name + ".whl", "https://index.example/" + name, "", 1, {{"sha256", sum}}});
  return out;
}

formats::Pylock lock_of(std::vector<formats::PylockPackage> packages) {
  formats::Pylock out;
  out.packages = std::move(packages);
  return out;
}

LockClass cu126() {
  LockClass one;
  one.name = "cu126";
  one.file = "pylock.cu126.toml";
  one.wheel.torch = "2.7.1";
  one.wheel.tag = "cu126";
  one.python = "3.11";
  for (const char* arch : {"80", "90"})
    one.wheel.code.push_back({formats::CodeKind::cubin, arch, "", 1});
  return one;
}

facts::PythonEnv environment() {
  facts::PythonEnv env;
  env.path = "/e";
  env.python = known<std::string>("3.11.7", SourceKind::file, "/e/pyvenv.cfg");
  env.torch.version = known<std::string>("2.7.1+cu126", SourceKind::file, "/e/version.py");
  std::vector<facts::Distribution> packages(3);
  packages[0].name = "numpy", packages[0].version = "2.0", packages[0].installer = "uv";
  packages[1].name = "pip", packages[1].version = "25.1", packages[1].installer = "pip";
  packages[2].name = "torch", packages[2].version = "2.7.1", packages[2].installer = "uv";
  for (facts::Distribution& one : packages) one.kind = "dist-info";
  env.distributions = known(packages, SourceKind::file, "/e");
  return env;
}

std::string ids(const std::vector<checks::Finding>& findings) {
  std::string out;
  for (const checks::Finding& one : findings) out += one.id + " ";
  return out;
}

TEST(Drift, ChangesAreWrittenFromBeforeToAfter) {
  formats::PylockPackage elsewhere = package("win", "1");
  elsewhere.marker = "sys_platform == 'win32'";
  const auto before = lock_of({package("a", "1"), package("b", "1.0"), package("c", "1", "11"),
                               package("gone", "3"), elsewhere});
  const auto after =
      lock_of({package("a", "2"), package("b", "1"), package("c", "1", "22"), package("new", "4")});
  // b: 1.0 and 1 are one version; c: other bytes under the same version
  EXPECT_EQ(changes_text(changes_between(before, after, "3.11", "x86_64")),
            "a 1 -> 2, c 1 -> 1, - gone 3, + new 4");
  EXPECT_EQ(changes_text(changes_between(before, after, "3.11", "x86_64"), 1), "a 1 -> 2, ... (3)");
}

TEST(Drift, OfALockWithItsFileRequirementsAndPolicy) {
  LockClass one = cu126();
  const std::string bytes = "x";
  one.sha256 = sha256(bytes);
  EXPECT_EQ(ids(check_pylock(one, "p", &bytes, "")), "");
  const std::string edited = "y";
  EXPECT_EQ(ids(check_pylock(one, "p", &edited, "")), "lock_edited ");
  EXPECT_EQ(check_pylock(one, "p", nullptr, "gone")[0].variant, "missing");
  LockFile lock;
  lock.requirements = {"torch", "numpy"};
  lock.classes = {one};
  EXPECT_EQ(ids(check_requirements(lock, {"numpy", "torch"}, {}, "3.11")), "");
  EXPECT_EQ(check_requirements(lock, {"torch", "scipy"}, {}, "")[0].args.at("changes"),
            "- numpy; + scipy");
  const PythonDemand demand{"pyproject.toml", ">=3.13", *formats::parse_clauses(">=3.13")};
  EXPECT_EQ(check_requirements(lock, {"numpy", "torch"}, {demand}, "")[0].args.at("changes"),
            "Python 3.11 (cu126) -> requires-python >=3.13");
  EXPECT_EQ(check_requirements(lock, {"numpy", "torch"}, {}, "3.9")[0].args.at("changes"),
            "Python 3.11 -> 3.9 (cu126)");
  Policy policy;
  policy.cuda_denied = {"cu126"};
  policy.python = {">=3.12"};
  EXPECT_EQ(ids(check_policy(lock, policy)), "lock_policy_forbids lock_policy_forbids ");
  EXPECT_EQ(ids(check_policy(lock, {})), "");
}

TEST(Drift, OfARowAndItsPylock) {
  const LockClass one = cu126();
  for (const char* same : {"2.7.1", "2.7.1+cu126", ""})
    EXPECT_EQ(other_torch(one, lock_of({package("torch", same)})), "") << same;
  for (const char* other : {"2.9.9", "2.7.1+cu128", "2.7"}) {
    const formats::Pylock pylock = lock_of({package("numpy", "1.0"), package("torch", other)});
    const std::vector<checks::Finding> found = check_row(one, "p/pylock.cu126.toml", pylock);
    ASSERT_EQ(found.size(), 1u) << other;
    EXPECT_EQ(found[0].args.at("have"), other);
    EXPECT_EQ(found[0].args.at("want"), "2.7.1+cu126");
  }
}

TEST(Drift, OfAnEnvironmentThatIsWhatWasLocked) {
  const LockClass one = cu126();
  const auto lock = lock_of({package("numpy", "2.0"), package("torch", "2.7.1")});
  const facts::PythonEnv env = environment();
  // Single kernels for more architectures are no difference.
  const std::vector<formats::DeviceCode> code = {{formats::CodeKind::cubin, "80", "", 400},
                                                 {formats::CodeKind::cubin, "89", "", 1},
                                                 {formats::CodeKind::cubin, "90", "", 400},
                                                 {formats::CodeKind::cubin, "90a", "", 300}};
  EXPECT_EQ(ids(check_environment({one, lock, &env, &code, "/e", "/e/libtorch_cuda.so"}, {})), "");
}

TEST(Drift, OfAnEnvironmentNamesWhatDiffers) {
  const LockClass one = cu126();
  const auto lock = lock_of({package("numpy", "2.1"), package("torch", "2.7.1")});
  facts::PythonEnv env = environment();
  EXPECT_EQ(ids(check_environment({one, lock, nullptr, nullptr, "/e", ""}, {})), "env_missing ");
  Policy policy;
  policy.owners = {"conda"};
  EXPECT_EQ(ids(check_environment({one, lock, &env, nullptr, "/e", ""}, policy)),
            "env_packages_differ env_owner_forbidden env_owner_forbidden ");
  const std::vector<formats::DeviceCode> code = {{formats::CodeKind::cubin, "75", "", 400}};
  env.torch.version = known<std::string>("2.7.1+cu128", SourceKind::file, "v");
  env.python = known<std::string>("3.12.1", SourceKind::file, "c");
  EXPECT_EQ(ids(check_environment({one, lock, &env, &code, "/e", "lib"}, {})),
            "env_torch_differs env_python_differs env_packages_differ env_code_differs ");
  env.torch.version = known<std::string>("2.6.0+cu126", SourceKind::file, "v");
  env.distributions = missing<std::vector<facts::Distribution>>(WhyNot::no_permission,
                                                                SourceKind::file, "/e", "no");
  const auto unknown = check_environment({one, lock, &env, nullptr, "/e", ""}, {});
  EXPECT_EQ(ids(unknown), "env_torch_differs env_python_differs env_packages_differ ");
  EXPECT_EQ(unknown[2].severity, checks::Severity::unknown);
}

TEST(Drift, OfAnEnvironmentAsItsFactsSay) {
  const knowledge::Knowledge& knowledge = knowledge::Knowledge::builtin();
  const LockClass one = cu126();
  const auto lock = lock_of({package("numpy", "2.0"), package("torch", "2.7.1")});
  facts::Facts facts;
  const auto examined = [&](DoctorPart part) {
    return ids(examine_environment(one, lock, "/e", facts, {}, part, knowledge));
  };
  EXPECT_EQ(examined(DoctorPart::errors_and_warnings), "env_missing ");
  facts.envs = {environment()};
  EXPECT_EQ(examined(DoctorPart::errors), "");
}

}  // namespace lock_check_test
}  // namespace cufit::resolve
