// SPDX-License-Identifier: Apache-2.0
#include "resolve/image/image_rules.h"

#include <algorithm>

#include "base/format.h"
#include "base/path.h"
#include "checks/evidence.h"
#include "facts/secrets.h"

namespace cufit::resolve {
namespace {

using checks::Severity;

// Which part of an image a rule is about: without it, nothing is judged.
enum class RuleNeeds { nothing, sshd, jupyter, lock };
struct RuleRow {
  const char* id;
  RuleNeeds needs;
  std::string_view unread;  // a part of the paths that it cannot be judged without; empty = none
};
constexpr std::string_view k_sshd_files = "/sshd_config";  // and what -f and Include name
constexpr RuleRow k_rule_rows[] = {
    {"ssh_keys_only", RuleNeeds::sshd, k_sshd_files},
    {"ssh_root", RuleNeeds::sshd, k_sshd_files},
    {"ssh_user", RuleNeeds::sshd, k_sshd_files},
    {"ssh_host_keys", RuleNeeds::nothing, ""},
    {"ssh_authorized_keys", RuleNeeds::nothing, ""},
    {"accounts", RuleNeeds::nothing, "/etc/shadow"},
    {"jupyter_token", RuleNeeds::jupyter, "jupyter"},
    {"jupyter_user", RuleNeeds::jupyter, "jupyter"},
    {"ports", RuleNeeds::nothing, k_sshd_files},
    {"user", RuleNeeds::nothing, ""},
    {"healthcheck", RuleNeeds::nothing, ""},
    {"labels", RuleNeeds::nothing, ""},
    {"lock", RuleNeeds::lock, "/cufit.lock"},
    {"sbom", RuleNeeds::nothing, ""},
    {"secrets", RuleNeeds::nothing, ""},
};

void account_rule(const facts::ImageSetup& setup, RuleFindings& out) {
  for (const auto state : {formats::PasswordState::set, formats::PasswordState::empty}) {
    checks::Finding finding = checks::finding("image_account_password", Severity::error, "image");
    std::vector<std::string> names;
    for (const formats::AccountPassword& one : setup.passwords) {
      if (one.state != state) continue;
      names.push_back(one.name);
      if (names.size() > 8) continue;
      const char* said = state == formats::PasswordState::set ? "a password's hash" : "empty";
      finding.evidence.push_back(in_layer(setup.shadow_file->path, one.line,
                                          format("{}: {}", one.name, said),
                                          setup.shadow_file->layer));
    }
    if (names.empty()) continue;
    if (state == formats::PasswordState::empty) finding.variant = "empty";
    finding.args["users"] = join(names, ", ");
    finding.args["first"] = plain_name(names.front(), "NAME");
    out.emplace_back("accounts", std::move(finding));
  }
}

// A name of /etc/passwd may be root's number by another name.
bool is_root(const std::string& name, const facts::ImageSetup& setup) {
  if (name.empty() || name == "root" || name.find_first_not_of('0') == std::string::npos)
    return true;
  return std::any_of(setup.accounts.begin(), setup.accounts.end(),
                     [&](const auto& one) { return one.name == name && one.uid == 0; });
}

void user_rule(const facts::OpenedImage& image, const facts::ImageSetup& setup, RuleFindings& out) {
  const std::string name = image.config.user.substr(0, image.config.user.find(':'));
  if (!is_root(name, setup)) return;
  checks::Finding finding = checks::finding("image_runs_as_root", Severity::warning, "image");
  finding.evidence.push_back({"file", "USER", name.empty() ? "not set" : name});
  out.emplace_back("user", std::move(finding));
}

std::string label_of(const facts::OpenedImage& image, std::string_view key) {
  for (const auto& [name, value] : image.config.labels)
    if (name == key) return value;
  return {};
}

void label_rule(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                RuleFindings& out) {
  constexpr const char* k_lock_label = "cufit.lock.sha256";
  // Every image from Ubuntu's has these two of its base's.
  const bool any =
      std::any_of(image.config.labels.begin(), image.config.labels.end(), [](const auto& one) {
        return starts_with(one.first, "org.opencontainers.image.") &&
               !ends_with(one.first, ".ref.name") && !ends_with(one.first, ".image.version");
      });
  const std::string said = label_of(image, k_lock_label);
  std::vector<std::string> missing;
  if (!any) missing.push_back("org.opencontainers.image.*");
  if (said.empty()) missing.push_back(k_lock_label);
  if (!missing.empty()) {
    checks::Finding finding = checks::finding("image_labels_missing", Severity::note, "image");
    finding.args["labels"] = join(missing, ", ");
    out.emplace_back("labels", std::move(finding));
  }
  if (said.empty() || !setup.lock || said == setup.lock_sha256) return;
  checks::Finding finding = checks::finding("image_lock_differs", Severity::error, "image");
  finding.args = {{"label", said.substr(0, 64)},
                  {"sum", setup.lock_sha256},
                  {"file", plain_name(setup.lock->path, "cufit.lock")}};
  finding.evidence = {{"file", "LABEL " + std::string(k_lock_label), said.substr(0, 64)},
                      in_layer(*setup.lock, "SHA-256 " + setup.lock_sha256)};
  out.emplace_back("lock", std::move(finding));
}

// What is written where a secret is not asked for, and what switches something on.
bool is_switch_or_placeholder(std::string_view value) {
  const std::string low = lower(value);
  for (const char* word : {"0", "1", "true", "false", "yes", "no", "on", "off", "none", "null",
                           "empty", "dummy", "unset"})
    if (low == word) return true;
  return false;
}

// A value that is there, and is neither a place nor another variable.
bool is_secret(const std::string& name, std::string_view value) {
  for (const char* end : {"_FILE", "_PATH", "_DIR", "_URL"})
    if (ends_with(name, end)) return false;
  while (!value.empty() && (value[0] == '"' || value[0] == '\'')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == '"' || value.back() == '\'')) value.remove_suffix(1);
  if (is_switch_or_placeholder(value)) return false;
  return !value.empty() && value[0] != '$' && facts::is_secret_name(name);
}

void secret_variables(const facts::OpenedImage& image, RuleFindings& out) {
  checks::Finding finding = checks::finding("image_secret_variable", Severity::error, "image");
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const std::string& place, size_t length) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return;
    names.push_back(name);
    finding.evidence.push_back({"file", place, format("{}: {} characters", name, length)});
  };
  for (const auto& [name, value] : image.config.variables)
    if (is_secret(name, value)) add(name, "ENV", value.size());
  const size_t of_env = names.size();
  // "RUN |1 HF_TOKEN=... /bin/sh -c ...": an ARG of the build stays in the history.
  for (size_t i = 0; i < image.config.steps.size(); ++i)
    for (const std::string_view word : split(image.config.steps[i], ' ')) {
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos || names.size() >= 20) continue;
      const std::string name(word.substr(0, equals));
      const bool plain = name.find_first_not_of(
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") ==
                         std::string::npos;
      if (plain && is_secret(name, word.substr(equals + 1)))
        add(name, format("history, step {}", i + 1), word.size() - equals - 1);
    }
  if (names.empty()) return;
  if (of_env == 0) finding.variant = "history";
  finding.args["names"] = join(names, ", ");
  finding.args["first"] = plain_name(names.front(), "NAME");
  out.emplace_back("secrets", std::move(finding));
}

void secret_files(const facts::ImageSetup& setup, RuleFindings& out) {
  if (setup.credentials.empty()) return;
  checks::Finding finding = checks::finding("image_secret_file", Severity::error, "image");
  finding.args["file"] = plain_name(setup.credentials.front().path, "FILE");
  finding.args["count"] = std::to_string(setup.credentials.size());
  for (const facts::SetupFile& file : setup.credentials)
    finding.evidence.push_back(in_layer(
        file, file.hidden ? "in the image, though a later layer hides it" : "in the image"));
  out.emplace_back("secrets", std::move(finding));
}

bool has_part(RuleNeeds needs, const facts::ImageSetup& setup) {
  if (needs == RuleNeeds::sshd) return setup.sshd.has_value();
  if (needs == RuleNeeds::jupyter)
    return setup.jupyter.has_value() || !setup.jupyter_settings.empty() || setup.starts_jupyter;
  return needs == RuleNeeds::nothing || setup.lock.has_value();
}

bool lacks_file(const RuleRow& row, const facts::ImageSetup& setup) {
  if (row.unread.empty()) return false;
  if (row.unread == k_sshd_files && setup.sshd_unread) return true;
  return std::any_of(setup.unread.begin(), setup.unread.end(),
                     [&](const std::string& path) { return contains(path, row.unread); });
}

}  // namespace

const char* to_string(RuleState state) {
  switch (state) {
    case RuleState::kept:
      return "kept";
    case RuleState::broken:
      return "broken";
    case RuleState::unknown:
      return "unknown";
    case RuleState::absent:
      return "absent";
  }
  return "";
}

checks::Evidence in_layer(const std::string& path, uint32_t line, const std::string& said,
                          size_t layer) {
  return {"file", line == 0 ? path : format("{}:{}", path, line),
          format("{}; layer {}", said, layer + 1)};
}

checks::Evidence in_layer(const facts::SetupFile& file, const std::string& said) {
  return in_layer(file.path, 0, said, file.layer);
}

std::string plain_name(const std::string& name, const char* otherwise) {
  constexpr std::string_view k_plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/@+-";
  const bool plain = !name.empty() && name.size() <= 200 && name[0] != '-' &&
                     name.find_first_not_of(k_plain) == std::string::npos;
  return plain ? name : otherwise;
}

std::vector<uint32_t> exposed_ports(const facts::OpenedImage& image) {
  std::vector<uint32_t> out;
  for (const std::string& text : image.config.ports) {
    const size_t slash = text.find('/');
    if (slash != std::string::npos && text.substr(slash) != "/tcp") continue;
    const std::string digits = text.substr(0, slash);
    const bool good = !digits.empty() && digits.size() <= 5 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
    if (good) out.push_back(static_cast<uint32_t>(std::stoul(digits)));
  }
  return out;
}

std::string port_list(const std::vector<uint32_t>& ports, const char* between) {
  std::vector<std::string> out;
  for (const uint32_t port : ports) out.push_back(std::to_string(port));
  return join(out, between);
}

void judge_image_config(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                        RuleFindings& out) {
  account_rule(setup, out);
  user_rule(image, setup, out);
  if (!image.config.healthcheck)
    out.emplace_back("healthcheck",
                     checks::finding("image_no_healthcheck", Severity::note, "image"));
  label_rule(image, setup, out);
  if (!setup.sbom)
    out.emplace_back("sbom", checks::finding("image_no_sbom", Severity::note, "image"));
  secret_variables(image, out);
  secret_files(setup, out);
}

ImageRules judge_image_rules(const facts::OpenedImage& image, const facts::ImageSetup& setup) {
  RuleFindings found;
  judge_image_ssh(image, setup, found);
  judge_image_jupyter(image, setup, found);
  judge_image_config(image, setup, found);
  ImageRules out;
  for (const RuleRow& row : k_rule_rows) {
    ImageRule rule{row.id, RuleState::kept, Severity::note, {}};
    for (const auto& [id, finding] : found) {
      if (id != rule.id) continue;
      rule.state = RuleState::broken;
      if (checks::seriousness(finding.severity) > checks::seriousness(rule.severity))
        rule.severity = finding.severity;
      rule.findings.push_back(finding.id);
    }
    if (rule.state == RuleState::kept && !has_part(row.needs, setup))
      rule.state = RuleState::absent;
    if (rule.state == RuleState::kept && lacks_file(row, setup)) rule.state = RuleState::unknown;
    out.rules.push_back(std::move(rule));
  }
  for (auto& [id, finding] : found) out.findings.push_back(std::move(finding));
  std::stable_sort(out.findings.begin(), out.findings.end(), [](const auto& a, const auto& b) {
    return checks::seriousness(a.severity) > checks::seriousness(b.severity);
  });
  return out;
}

}  // namespace cufit::resolve
