// SPDX-License-Identifier: Apache-2.0
// What `cufit lock` and `cufit env` print, as text and JSON (schemas cufit.lock.report/1,
// cufit.lock.check/1, cufit.env.list/1, cufit.env.create/1, cufit.env.check/1, cufit.env.remove/1).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checks/finding.h"
#include "report/report.h"
#include "resolve/wheel/resolve.h"
#include "resolve/lock/lock_file.h"

namespace cufit::report {

struct LockView {
  const resolve::LockFile& lock;
  std::string folder;              // as to be typed
  bool unchanged = false;          // every byte is what was there before
  std::vector<resolve::Fit> fits;  // of each class, for the targets that it serves
  std::vector<uint64_t> unsized;   // of each class, packages whose size the index does not give
  std::vector<std::vector<std::string>> built;  // of each class, packages without a wheel for it
  const knowledge::Knowledge& knowledge;
};
std::string lock_report_text(const LockView& view, const Style& style);
std::string lock_report_json(const LockView& view);

// Targets that nothing serves; nothing was written.
struct LockFailureView {
  const std::vector<resolve::Answer>& failed;
  const knowledge::Knowledge& knowledge;
  std::vector<std::string> others = {};  // targets that would be served without them
};
std::string lock_failure_text(const LockFailureView& view, const Style& style);
std::string lock_failure_json(const LockFailureView& view);

// A list of findings with a sentence before them: "lock.check.good" where there is none.
struct FindingsView {
  std::string schema;     // "cufit.lock.check/1"
  std::string good;       // message key where all is well
  std::string not_asked;  // message key of what was not looked at; may be empty
  const std::vector<checks::Finding>& findings;
  const knowledge::Knowledge& knowledge;
  bool says_tables = false;  // how old they are, without -v, too
};
bool only_notes(const FindingsView& view);  // or nothing at all
std::string findings_text(const FindingsView& view, const Style& style);
std::string findings_json(const FindingsView& view);

struct EnvRow {
  std::string name;   // of the class
  std::string state;  // "current", "outdated", "absent", "foreign", "damaged",
                      // "broken", "made", "removed", "kept"
  std::string folder, python, torch, installer, created;
  uint64_t packages = 0, bytes = 0, shared_bytes = 0;
  std::string why;  // it cannot be read what cufit wrote of it (damaged)
};
struct EnvListView {
  std::string schema;
  std::vector<EnvRow> rows;
  std::string next;  // message key; empty = none
  std::string at;    // " --lock DIR" of its command
  const knowledge::Knowledge& knowledge;
};
std::string env_list_text(const EnvListView& view, const Style& style);
std::string env_list_json(const EnvListView& view);

}  // namespace cufit::report
