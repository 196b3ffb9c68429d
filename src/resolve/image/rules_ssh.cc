// SPDX-License-Identifier: Apache-2.0
// Keys alone, nobody as root, no host key and no authorized key that everybody with the image has,
// a user who can log in, the port that is exposed.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "resolve/image/image_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;
using facts::PlacedSshd;

// sshd's own value where nobody says another (sshd_config(5), OpenSSH 9).
struct SshdDefault {
  const char* keyword;
  const char* value;
};
constexpr SshdDefault k_sshd_defaults[] = {
    {"passwordauthentication", "yes"},        {"kbdinteractiveauthentication", "yes"},
    {"permitrootlogin", "prohibit-password"}, {"permitemptypasswords", "no"},
    {"pubkeyauthentication", "yes"},          {"usepam", "no"}};

std::string lower_word(std::string_view text) {
  std::string out;
  for (const char c : text) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

// The one that counts for everybody: the first. nullptr = nobody says it.
const PlacedSshd* first_of(const facts::ImageSetup& setup, std::string_view keyword) {
  for (const PlacedSshd& one : setup.ssh)
    if (one.setting.match.empty() && (one.setting.keyword == keyword ||
                                      // Its name until OpenSSH 8.7.
                                      (keyword == "kbdinteractiveauthentication" &&
                                       one.setting.keyword == "challengeresponseauthentication")))
      return &one;
  return nullptr;
}

std::string value_of(const facts::ImageSetup& setup, std::string_view keyword) {
  if (const PlacedSshd* said = first_of(setup, keyword)) return lower_word(said->setting.value);
  for (const SshdDefault& one : k_sshd_defaults)
    if (keyword == one.keyword) return one.value;
  return {};
}

// Of a Match block that says this value.
const PlacedSshd* matched_with(const facts::ImageSetup& setup, std::string_view keyword,
                               std::string_view value) {
  for (const PlacedSshd& one : setup.ssh)
    if (!one.setting.match.empty() && one.setting.keyword == keyword &&
        lower_word(one.setting.value) == value)
      return &one;
  return nullptr;
}

checks::Evidence evidence_of(const PlacedSshd& one) {
  std::string said = one.setting.keyword + " " + one.setting.value;
  if (!one.setting.match.empty()) said += " (Match " + one.setting.match + ")";
  return in_layer(one.path, one.setting.line, said, one.layer);
}

checks::Evidence evidence_of(const facts::ImageSetup& setup, std::string_view keyword) {
  if (const PlacedSshd* said = first_of(setup, keyword)) return evidence_of(*said);
  return checks::rule_says(
      format("sshd_config(5): {} is {} where it is not set", keyword, value_of(setup, keyword)));
}

bool has_password(const facts::ImageSetup& setup) {
  return std::any_of(setup.passwords.begin(), setup.passwords.end(),
                     [](const auto& one) { return one.state != formats::PasswordState::locked; });
}

// The next step takes the line of a Match block out: what stands before it for everybody does not
// reach into the block.
void name_matched(const PlacedSshd& matched, checks::Finding& finding) {
  finding.variant = "match";
  finding.args["line"] = std::to_string(matched.setting.line);
  finding.args["file"] = plain_name(matched.path, "FILE");
}

void password_login(const facts::ImageSetup& setup, RuleFindings& out) {
  const PlacedSshd* matched = matched_with(setup, "passwordauthentication", "yes");
  const bool passwords = value_of(setup, "passwordauthentication") == "yes";
  // Keyboard-interactive asks PAM for the same password.
  const bool by_pam = !passwords && value_of(setup, "usepam") == "yes" &&
                      value_of(setup, "kbdinteractiveauthentication") == "yes";
  const bool empty = value_of(setup, "permitemptypasswords") == "yes";
  const bool keys_only = value_of(setup, "authenticationmethods") == "publickey";
  if (keys_only && matched == nullptr) return;
  if (!passwords && !by_pam && matched == nullptr && !empty) return;
  checks::Finding finding =
      checks::finding("image_ssh_password_login",
                      has_password(setup) || empty ? Severity::error : Severity::warning, "image");
  if (passwords) finding.evidence.push_back(evidence_of(setup, "passwordauthentication"));
  if (by_pam) finding.evidence.push_back(evidence_of(setup, "kbdinteractiveauthentication"));
  if (by_pam) finding.evidence.push_back(evidence_of(setup, "usepam"));
  finding.args = {{"line", ""}, {"file", ""}};
  if (matched != nullptr) finding.evidence.push_back(evidence_of(*matched));
  if (matched != nullptr && !passwords && !by_pam) name_matched(*matched, finding);
  if (empty) finding.evidence.push_back(evidence_of(setup, "permitemptypasswords"));
  out.emplace_back("ssh_keys_only", std::move(finding));
}

void root_login(const facts::ImageSetup& setup, RuleFindings& out) {
  const std::string value = value_of(setup, "permitrootlogin");
  const PlacedSshd* matched = matched_with(setup, "permitrootlogin", "yes");
  if (value == "no" && matched == nullptr) return;
  checks::Finding finding = checks::finding(
      "image_ssh_root_login",
      value == "yes" || matched != nullptr ? Severity::error : Severity::warning, "image");
  finding.args = {
      {"value", value == "no" ? "yes" : plain_name(value, "?")}, {"line", ""}, {"file", ""}};
  if (value != "no") finding.evidence.push_back(evidence_of(setup, "permitrootlogin"));
  if (matched != nullptr) finding.evidence.push_back(evidence_of(*matched));
  if (matched != nullptr && value == "no") name_matched(*matched, finding);
  out.emplace_back("ssh_root", std::move(finding));
}

void baked_files(const char* rule, const char* id, Severity severity,
                 const std::vector<facts::SetupFile>& files, RuleFindings& out) {
  if (files.empty()) return;
  checks::Finding finding = checks::finding(id, severity, "image");
  finding.args["count"] = std::to_string(files.size());
  finding.args["file"] = plain_name(files.front().path, "FILE");
  for (const facts::SetupFile& file : files)
    finding.evidence.push_back(in_layer(
        file, file.hidden ? "in the image, though a later layer hides it" : "in the image"));
  out.emplace_back(rule, std::move(finding));
}

// A user whom sshd lets in, but who is not there or has no shell.
void way_in(const facts::ImageSetup& setup, RuleFindings& out) {
  const bool keys = value_of(setup, "pubkeyauthentication") == "yes";
  if (!keys && value_of(setup, "passwordauthentication") == "no") {
    checks::Finding finding = checks::finding("image_ssh_no_way_in", Severity::warning, "image");
    finding.args["user"] = "";
    finding.evidence = {evidence_of(setup, "pubkeyauthentication"),
                        evidence_of(setup, "passwordauthentication")};
    out.emplace_back("ssh_user", std::move(finding));
  }
  const PlacedSshd* allowed = first_of(setup, "allowusers");
  if (allowed == nullptr || !setup.passwd_file) return;
  for (const std::string_view word : split(allowed->setting.value, ' ')) {
    const std::string name(word.substr(0, word.find('@')));
    if (name.empty() || name.find_first_of("*?!") != std::string::npos) continue;
    const auto account = std::find_if(setup.accounts.begin(), setup.accounts.end(),
                                      [&](const auto& one) { return one.name == name; });
    const bool there = account != setup.accounts.end();
    if (there && !ends_with(account->shell, "/nologin") && !ends_with(account->shell, "/false"))
      continue;
    checks::Finding finding = checks::finding("image_ssh_no_way_in", Severity::warning, "image");
    finding.variant = there ? "shell" : "user";
    finding.args["user"] = plain_name(name, "NAME");
    finding.evidence.push_back(evidence_of(*allowed));
    finding.evidence.push_back(there
                                   ? in_layer(setup.passwd_file->path, account->line,
                                              account->shell, setup.passwd_file->layer)
                                   : in_layer(*setup.passwd_file, format("no line of `{}`", name)));
    out.emplace_back("ssh_user", std::move(finding));
    return;
  }
}

uint32_t port_number(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 5 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? static_cast<uint32_t>(std::stoul(text)) : 0;
}

void ssh_port(const facts::OpenedImage& image, const facts::ImageSetup& setup, RuleFindings& out) {
  const std::vector<uint32_t> exposed = exposed_ports(image);
  if (exposed.empty()) return;
  const auto is_exposed = [&](uint32_t port) {
    return std::find(exposed.begin(), exposed.end(), port) != exposed.end();
  };
  if (!setup.sshd) {
    const uint32_t usual = is_exposed(22) ? 22 : is_exposed(2222) ? 2222 : 0;
    if (usual == 0) return;
    checks::Finding finding = checks::finding("image_port_mismatch", Severity::warning, "image");
    finding.variant = "no_sshd";
    finding.args = {
        {"service", "sshd"}, {"port", std::to_string(usual)}, {"exposed", port_list(exposed)}};
    out.emplace_back("ports", std::move(finding));
    return;
  }
  std::vector<uint32_t> ports;
  std::vector<checks::Evidence> said;
  for (const PlacedSshd& one : setup.ssh)
    if (one.setting.keyword == "port")
      if (const uint32_t port = port_number(one.setting.value); port != 0) {
        ports.push_back(port);
        said.push_back(evidence_of(one));
      }
  if (ports.empty()) {
    ports.push_back(22);
    said.push_back(checks::rule_says("sshd_config(5): port is 22 where it is not set"));
  }
  if (std::any_of(ports.begin(), ports.end(), is_exposed)) return;
  checks::Finding finding = checks::finding("image_port_mismatch", Severity::warning, "image");
  finding.args = {{"service", "sshd"}, {"port", port_list(ports)}, {"exposed", port_list(exposed)}};
  finding.evidence = std::move(said);
  out.emplace_back("ports", std::move(finding));
}

}  // namespace

void judge_image_ssh(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                     RuleFindings& out) {
  baked_files("ssh_host_keys", "image_ssh_host_keys", Severity::error, setup.host_keys, out);
  baked_files("ssh_authorized_keys", "image_ssh_authorized_keys", Severity::warning,
              setup.authorized_keys, out);
  ssh_port(image, setup, out);
  if (!setup.sshd) return;
  password_login(setup, out);
  root_login(setup, out);
  way_in(setup, out);
}

}  // namespace cufit::resolve
