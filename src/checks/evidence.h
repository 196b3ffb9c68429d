// SPDX-License-Identifier: Apache-2.0
// Small makers that every check uses: evidence from facts, tables and rules, and the `unknown`
// finding of a check that lacks a fact. They hold no judgement.
#pragma once

#include <string>
#include <utility>

#include "checks/check.h"

namespace cufit::checks {

Evidence seen(const Source& source,
              std::string value);  // a source in "data/..." becomes kind "table"
Evidence table_says(std::string file, std::string value);
Evidence rule_says(std::string rule);

template <class T>
std::string text_of(const T& value) {
  return std::to_string(value);
}
inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(bool value) { return value ? "yes" : "no"; }

template <class T>
Evidence seen(const Fact<T>& fact) {
  return seen(fact.source, fact ? text_of(*fact) : to_string(fact.why));
}

// "/sys/module/nvidia/version: permission denied"; the reason's name where there is no note.
std::string why_missing(const Source& tried, WhyNot why, const std::string& note);
template <class T>
std::string why_missing(const Fact<T>& fact) {
  return why_missing(fact.source, fact.why, fact.note);
}

Finding finding(std::string id, Severity severity, std::string subject);
// The check could not decide: `because` names the fact that is missing and why.
Finding cannot_tell(std::string id, std::string subject, std::string because);

// "GPU 0 (NVIDIA H200, 9.0)", to stand inside a sentence.
std::string in_sentence(const GpuView& gpu);
std::string subject_of(const GpuView& gpu);           // "GPU 0"
std::string subject_of(const facts::PythonEnv& env);  // "env /path"
inline const char* const k_machine = "machine";

}  // namespace cufit::checks
