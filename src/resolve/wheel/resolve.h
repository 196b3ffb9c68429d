// SPDX-License-Identifier: Apache-2.0
// Chooses: every known wheel judged for a target, ranked, with the reasons of the rejected; and for
// several targets the fewest classes that serve them all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/python/index_setting.h"
#include "formats/python/requirement.h"
#include "resolve/wheel/index_packages.h"
#include "resolve/wheel/installed.h"
#include "resolve/wheel/wheel_compatibility.h"
#include "resolve/wheel/policy.h"

namespace cufit::resolve {

struct Companion {
  std::string package;  // "torchvision", "torchaudio", "triton", "xformers", "flash-attn", ...
  std::string version;  // empty = none goes with this torch
  // Id of a message "resolve.companion.<id>": torch, cuda, gpu, old_gpu, python, glibc, cpu, ended,
  // not_known; empty where there is a version.
  std::string why_not;
  // "release": no index has the file, the project's releases do (`url`, empty where its name is not
  // known for sure); "source": it is built where torch is installed already; else an index has it.
  std::string origin = {};
  std::string url = {};
  bool newest = false;  // nothing newer is in the table
  // The version is asked for and no row of the table: the rows by which it was judged, "0.45.5,
  // 0.47.0". Else empty.
  std::string judged_by = {};
  std::string beyond = {};  // the requirement on what the table does not have: an installer decides
};

// `requires-python` of a project that is asked for.
struct PythonDemand {
  std::string file, text;  // "pyproject.toml", ">=3.10,<3.13"
  std::vector<formats::VersionClause> clauses;
};

struct Request {
  std::vector<formats::Requirement>
      requirements;                   // of torch and its companions; others are ignored
  std::string python;                 // "3.12"; empty = the target's or any
  std::vector<PythonDemand> pythons;  // whatever Python is chosen meets all of them
  Policy policy;
  bool default_index_only = false;          // no wheel from PyTorch's own index
  std::optional<formats::IndexPage> index;  // only what this index has
  std::vector<Wheel> beside_index;          // and these, from elsewhere
  std::vector<Installed> installed;         // goes before the table's rows
  formats::IndexSetting mirror;             // where a step finds the wheels
  std::vector<std::string> asked_indexes;   // before the mirror: whose page `index` is
};

// What `cufit bench` found of two choices on this card.
struct MeasuredFaster {
  std::string than;  // "2.14.1+cu130"
  std::string workload, precision;
  double ratio = 0, low = 0, high = 0;  // of the rates
  std::string file;
};

struct Choice {
  Wheel wheel;
  Verdict verdict;     // requirements and policy counted in
  std::string python;  // minor that the wheel, the request and the policy allow: 3.12, else the
                       // nearest below, else above
  std::vector<Companion> companions;   // empty for a wheel that cannot run there
  size_t age = 0;                      // 0: of the newest torch, counting releases
  std::vector<MeasuredFaster> faster;  // of rank_by(), which has put it before these
};

struct Answer {
  Target target;
  std::vector<Choice> usable;    // best first: the newest torch; of one release the fullest fit
  std::vector<Choice> rejected;  // newest torch first
  // Where no wheel serves all GPUs together: the fewest groups that can be served, each with its
  // own answer. Empty otherwise.
  std::vector<Answer> groups;
  // The smallest set of demands that cannot be met together (requirement texts, "policy cuda",
  // "GTX 1080 (6.1)", "driver 470", ...): taking any one away makes it solvable. Only where nothing
  // is usable.
  std::vector<std::string> conflict;
  // The newest torch that runs on these GPUs with any driver, where the newest of all does not:
  // "the last one for your card". nullptr-like: torch empty. Said of a group of GPUs, too.
  Wheel last_for_gpus;
  // The requirement on torch that only a release newer than the table can meet: it is not known
  // whether there is one. Only where that alone leaves nothing usable.
  std::string beyond_tables;
  std::vector<Disagreement> disagreements;  // of the table with installed files
};

Answer resolve(const Target& target, const Request& request, const knowledge::Knowledge& knowledge);

// As a whole, or every group of its GPUs.
bool served(const Answer& answer);

// torch or a package that goes with it: everything else is the installer's business.
bool is_judged(const formats::Requirement& requirement);

// What a companion's file has to run on, beside its torch.
struct CompanionPlace {
  std::string python;                  // empty = any
  std::vector<ComputeCapability> ccs;  // of all GPUs
  std::optional<Version> glibc;        // nullopt = not told
  // What is asked for, markers judged (requirements_for): of the table's rows those count that meet
  // it.
  std::vector<formats::Requirement> asked = {};
};
// Those of `requirements` whose markers hold for this wheel under this Python.
std::vector<formats::Requirement> requirements_for(
    const std::vector<formats::Requirement>& requirements, const Wheel& wheel,
    const std::string& python);
std::vector<Companion> companions_of(const Wheel& wheel, const CompanionPlace& place,
                                     const knowledge::Knowledge& knowledge);

// One environment of a lock: a wheel and the targets it serves.
struct Class {
  std::string name;  // "cu126", "cpu"; "cu126-torch210" where two share a tag
  Choice choice;
  std::vector<size_t> targets;  // indices into the targets asked for
};
struct Plan {
  std::vector<Target> targets;  // as asked for, mixed ones split into their groups
  std::vector<Class> classes;   // best first
  std::vector<Answer> failed;   // targets that nothing serves
  size_t over_limit = 0;  // more targets than are planned for together: how many; no classes then
};
constexpr size_t k_most_targets = 64;  // groups of mixed machines counted
// The fewest classes that serve all targets; of equal numbers the one with the newest torch.
Plan plan_classes(const std::vector<Target>& targets, const Request& request,
                  const knowledge::Knowledge& knowledge);
// Gives a class of a plan another wheel, which serves all its targets, and a name that says so.
void replace_choice(Plan& plan, size_t index, Choice choice);

}  // namespace cufit::resolve
