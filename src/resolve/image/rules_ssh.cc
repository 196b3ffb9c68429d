// SPDX-License-Identifier: Apache-2.0
// Keys alone, nobody as root, no host key and no authorized key that everybody with the image has,
// a user who can log in.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "resolve/image/image_rules.h"
#include "resolve/image/sshd_view.h"

namespace cufit::resolve {
namespace {

using checks::Severity;
using facts::PlacedSshd;

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

bool takes_passwords(const facts::ImageSetup& setup) {
  return sshd_value(setup, "passwordauthentication") == "yes";
}

// Keyboard-interactive asks PAM for the same password.
bool takes_them_by_pam(const facts::ImageSetup& setup) {
  return sshd_value(setup, "usepam") == "yes" &&
         sshd_value(setup, "kbdinteractiveauthentication") == "yes";
}

void password_login(const facts::ImageSetup& setup, RuleFindings& out) {
  const bool keys_only = asks_for_key(sshd_value(setup, "authenticationmethods"));
  const PlacedSshd* matched = matched_with(setup, "passwordauthentication", "yes");
  if (matched == nullptr && sshd_value(setup, "usepam") == "yes")
    matched = matched_with(setup, "kbdinteractiveauthentication", "yes");
  const bool passwords = takes_passwords(setup) && !keys_only;
  const bool by_pam = !passwords && takes_them_by_pam(setup) && !keys_only;
  if (!passwords && !by_pam && matched == nullptr) return;
  const bool empty = sshd_value(setup, "permitemptypasswords") == "yes";
  checks::Finding finding =
      checks::finding("image_ssh_password_login",
                      has_password(setup) || empty ? Severity::error : Severity::warning, "image");
  if (passwords) finding.evidence.push_back(evidence_of(setup, "passwordauthentication"));
  if (by_pam) finding.evidence.push_back(evidence_of(setup, "kbdinteractiveauthentication"));
  if (by_pam) finding.evidence.push_back(evidence_of(setup, "usepam"));
  finding.args = {{"line", ""}, {"file", ""}};
  if (matched != nullptr) finding.evidence.push_back(evidence_of(*matched));
  if (matched != nullptr && !passwords && !by_pam) name_matched(*matched, finding);
  if ((passwords && is_option(setup, "passwordauthentication")) ||
      (by_pam && is_option(setup, "kbdinteractiveauthentication")))
    finding.variant = "option";
  if (empty) finding.evidence.push_back(evidence_of(setup, "permitemptypasswords"));
  out.emplace_back("ssh_keys_only", std::move(finding));
}

// AllowUsers names others alone, or DenyUsers names root on any host.
bool root_is_kept_out(const facts::ImageSetup& setup) {
  const std::vector<std::string> denied = user_words(setup, "denyusers");
  if (std::find(denied.begin(), denied.end(), "root") != denied.end()) return true;
  const std::vector<std::string> allowed = user_words(setup, "allowusers");
  return !allowed.empty() &&
         std::none_of(allowed.begin(), allowed.end(), [](const std::string& word) {
           const std::string name = word.substr(0, word.find('@'));
           return name == "root" || name.find_first_of("*?!") != std::string::npos;
         });
}

void root_login(const facts::ImageSetup& setup, RuleFindings& out) {
  const std::string value = sshd_value(setup, "permitrootlogin");
  const PlacedSshd* matched = nullptr;
  for (const PlacedSshd& one : setup.ssh)
    if (!one.setting.match.empty() && one.setting.keyword == "permitrootlogin" &&
        lower_word(one.setting.value) != "no" && matched == nullptr)
      matched = &one;
  // A Match block may let in other users, too: it is named whoever is let in outside of it.
  if (matched == nullptr && (value == "no" || root_is_kept_out(setup))) return;
  const std::string worst = value != "no" ? value : lower_word(matched->setting.value);
  const bool yes =
      worst == "yes" || (matched != nullptr && lower_word(matched->setting.value) == "yes");
  checks::Finding finding =
      checks::finding("image_ssh_root_login", yes ? Severity::error : Severity::warning, "image");
  finding.args = {{"value", plain_name(worst, "?")}, {"line", ""}, {"file", ""}};
  if (value != "no") finding.evidence.push_back(evidence_of(setup, "permitrootlogin"));
  if (matched != nullptr) finding.evidence.push_back(evidence_of(*matched));
  if (matched != nullptr && value == "no") name_matched(*matched, finding);
  if (value != "no" && is_option(setup, "permitrootlogin")) finding.variant = "option";
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

void no_way_of_login(const facts::ImageSetup& setup, RuleFindings& out) {
  if (sshd_value(setup, "pubkeyauthentication") == "yes" || takes_passwords(setup) ||
      takes_them_by_pam(setup))
    return;
  checks::Finding finding = checks::finding("image_ssh_no_way_in", Severity::warning, "image");
  if (is_option(setup, "pubkeyauthentication")) finding.variant = "option";
  finding.args["user"] = "";
  finding.evidence = {evidence_of(setup, "pubkeyauthentication"),
                      evidence_of(setup, "passwordauthentication")};
  out.emplace_back("ssh_user", std::move(finding));
}

// Users whom sshd lets in, of whom none is there with a shell. A pattern may be anybody.
void way_in(const facts::ImageSetup& setup, RuleFindings& out) {
  no_way_of_login(setup, out);
  const PlacedSshd* allowed = first_of(setup, "allowusers");
  if (allowed == nullptr || !setup.passwd_file) return;
  std::string first;
  const formats::Account* first_account = nullptr;
  for (const std::string& word : user_words(setup, "allowusers")) {
    const std::string name = word.substr(0, word.find('@'));
    if (name.empty() || name.find_first_of("*?!") != std::string::npos) return;
    const auto account = std::find_if(setup.accounts.begin(), setup.accounts.end(),
                                      [&](const auto& one) { return one.name == name; });
    const bool there = account != setup.accounts.end();
    if (there && !ends_with(account->shell, "/nologin") && !ends_with(account->shell, "/false"))
      return;
    if (!first.empty() && (first_account != nullptr || !there)) continue;
    first = name;  // one that is there needs less
    first_account = there ? &*account : nullptr;
  }
  checks::Finding finding = checks::finding("image_ssh_no_way_in", Severity::warning, "image");
  finding.variant = first_account != nullptr ? "shell" : "user";
  finding.args["user"] = plain_name(first, "NAME");
  finding.evidence.push_back(evidence_of(*allowed));
  finding.evidence.push_back(first_account != nullptr
                                 ? in_layer(setup.passwd_file->path, first_account->line,
                                            first_account->shell, setup.passwd_file->layer)
                                 : in_layer(*setup.passwd_file, format("no line of `{}`", first)));
  out.emplace_back("ssh_user", std::move(finding));
}

}  // namespace

void judge_image_ssh(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                     RuleFindings& out) {
  baked_files("ssh_host_keys", "image_ssh_host_keys", Severity::error, setup.host_keys, out);
  baked_files("ssh_authorized_keys", "image_ssh_authorized_keys", Severity::warning,
              setup.authorized_keys, out);
  judge_image_ssh_port(image, setup, out);
  if (!setup.sshd || setup.sshd_unread) return;
  password_login(setup, out);
  root_login(setup, out);
  way_in(setup, out);
}

}  // namespace cufit::resolve
