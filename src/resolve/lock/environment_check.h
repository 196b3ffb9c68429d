// SPDX-License-Identifier: Apache-2.0
// An environment against its class of the lock. Findings only; texts in data/findings/env_*.toml.
#pragma once

#include <string>
#include <vector>

#include "checks/finding.h"
#include "facts/facts.h"
#include "formats/python/pylock.h"
#include "knowledge/knowledge.h"
#include "resolve/lock/lock_file.h"
#include "resolve/wheel/policy.h"

namespace cufit::resolve {

// An environment as its files say. `env` nullptr: no Python environment was found at `folder`.
struct EnvSubject {
  const LockClass& one;
  const formats::Pylock& lock;
  const facts::PythonEnv* env;
  const std::vector<formats::DeviceCode>* code;  // of the installed torch; nullptr = not readable
  std::string folder, code_file;
};
std::vector<checks::Finding> check_environment(const EnvSubject& subject, const Policy& policy);

// `errors`: of what `doctor` says only these.
enum class DoctorPart { errors_and_warnings, errors };
// check_environment of the first environment of `facts`, which was looked for in `folder`, and what
// `doctor` says of it.
std::vector<checks::Finding> examine_environment(const LockClass& one, const formats::Pylock& lock,
                                                 const std::string& folder,
                                                 const facts::Facts& facts, const Policy& policy,
                                                 DoctorPart doctor,
                                                 const knowledge::Knowledge& knowledge);

// A file that is cut off or missing: so on every machine.
bool is_damage(const checks::Finding& finding);
// The environment against its lock, and not what doctor would say of it.
bool is_about_lock(const checks::Finding& finding);

// What the files of an environment say, apart from the machine that it lies on.
facts::Facts without_gpu(facts::Facts facts);

}  // namespace cufit::resolve
