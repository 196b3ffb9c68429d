// SPDX-License-Identifier: Apache-2.0
#include "checks/evidence.h"

#include "base/format.h"

namespace cufit::checks {

Evidence seen(const Source& source, std::string value) {
  bool table = source.kind == SourceKind::file && starts_with(source.detail, "data/");
  return {table ? "table" : to_string(source.kind), source.detail, std::move(value)};
}

Evidence table_says(std::string file, std::string value) {
  return {"table", std::move(file), std::move(value)};
}

Evidence rule_says(std::string rule) { return {"rule", std::move(rule), ""}; }

std::string why_missing(const Source& tried, WhyNot why, const std::string& note) {
  std::string reason = note.empty() ? to_string(why) : note;
  return tried.detail.empty() ? reason : tried.detail + ": " + reason;
}

Finding finding(std::string id, Severity severity, std::string subject) {
  Finding made;
  made.id = std::move(id);
  made.severity = severity;
  made.subject = std::move(subject);
  return made;
}

Finding cannot_tell(std::string id, std::string subject, std::string because) {
  Finding made = finding(std::move(id), Severity::unknown, std::move(subject));
  made.unknown_because = std::move(because);
  return made;
}

std::string in_sentence(const GpuView& gpu) {
  std::string text = subject_of(gpu);
  if (gpu.name.empty()) return gpu.cc ? text + " (" + gpu.cc->text() + ")" : text;
  return text + " (" + gpu.name + (gpu.cc ? ", " + gpu.cc->text() : "") + ")";
}

std::string subject_of(const GpuView& gpu) { return "GPU " + std::to_string(gpu.index); }
std::string subject_of(const facts::PythonEnv& env) { return "env " + env.path; }

}  // namespace cufit::checks
