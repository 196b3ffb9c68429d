// SPDX-License-Identifier: Apache-2.0
// Each rule beside its opposite: what the settings of an image mean, by sshd_config(5) and
// jupyter_server's documents.
#include "resolve/image/image_rules.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::resolve {
namespace image_rules_test {

struct Made {
  facts::OpenedImage image;
  facts::ImageSetup setup;

  Made() {
    image.config.user = "1000:1000";
    image.config.healthcheck = true;
    image.config.labels = {{"org.opencontainers.image.title", "x"}, {"cufit.lock.sha256", "ab"}};
    setup.sbom = facts::SetupFile{"/bom.json", 0, false};
    setup.passwd_file = facts::SetupFile{"/etc/passwd", 0, false};
    setup.shadow_file = facts::SetupFile{"/etc/shadow", 2, false};
    setup.accounts = {{"app", "/bin/bash", 1000, 2}};
  }
  void sshd(std::string_view text) {
    setup.sshd = facts::SetupFile{"/usr/sbin/sshd", 0, false};
    for (formats::SshdSetting& one : formats::parse_sshd_config(text))
      setup.ssh.push_back({std::move(one), "/etc/ssh/sshd_config", 1});
  }
  void jupyter(std::string_view text) {
    for (formats::JupyterSetting& one : formats::parse_jupyter_python(text))
      setup.jupyter_settings.push_back({std::move(one), "/etc/jupyter/x.py", 1, true});
  }
  void started(std::string_view text) {
    setup.starts_jupyter = true;
    for (formats::JupyterSetting& one :
         formats::parse_jupyter_options(formats::read_shell_script(text)))
      setup.jupyter_settings.push_back({std::move(one), "ENTRYPOINT and CMD", 0, false});
  }
  // "image_x error, image_y.variant warning"
  std::string findings() const {
    std::vector<std::string> out;
    for (const checks::Finding& one : judge_image_rules(image, setup).findings)
      out.push_back(one.id + (one.variant.empty() ? "" : "." + one.variant) + " " +
                    to_string(one.severity));
    return join(out, ", ");
  }
};

constexpr const char* k_good =
    "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin no\n";

std::string of_sshd(std::string_view text, bool password = false) {
  Made made;
  made.sshd(text);
  if (password) made.setup.passwords = {{"bob", formats::PasswordState::set, 1}};
  std::string out = made.findings();
  const std::string account = "image_account_password error";
  if (password && starts_with(out, account)) out = out.substr(account.size());
  return out;
}

TEST(ImageRules, PasswordsOfSshd) {
  EXPECT_EQ(of_sshd(k_good), "");
  EXPECT_EQ(of_sshd("PermitRootLogin no\n"), "image_ssh_password_login warning");
  EXPECT_TRUE(contains(of_sshd("PermitRootLogin no\n", true), "image_ssh_password_login error"));
  // The first value counts.
  EXPECT_EQ(of_sshd(std::string("PasswordAuthentication yes\n") + k_good),
            "image_ssh_password_login warning");
  EXPECT_EQ(of_sshd(std::string(k_good) + "PasswordAuthentication yes\n"), "");
  // PAM asks for the same password.
  EXPECT_EQ(of_sshd("PasswordAuthentication no\nUsePAM yes\nPermitRootLogin no\n"),
            "image_ssh_password_login warning");
  EXPECT_EQ(of_sshd("PasswordAuthentication no\nPermitRootLogin no\n"), "");
  EXPECT_EQ(of_sshd("AuthenticationMethods publickey\nPermitRootLogin no\n"), "");
  EXPECT_EQ(of_sshd(std::string(k_good) + "Match User bob\nPasswordAuthentication yes\n"),
            "image_ssh_password_login.match warning");
  // Empty ones are passwords: none is taken where none is asked for.
  EXPECT_EQ(of_sshd(std::string(k_good) + "PermitEmptyPasswords yes\n"), "");
  EXPECT_EQ(of_sshd("PermitRootLogin no\nPermitEmptyPasswords yes\n"),
            "image_ssh_password_login error");
}

TEST(ImageRules, AKeyAndMoreThanAKey) {
  const std::string no_root = "PermitRootLogin no\nUsePAM yes\n";
  for (const char* methods :
       {"publickey,password", "publickey,keyboard-interactive:pam", "publickey,password publickey"})
    EXPECT_EQ(of_sshd(no_root + "AuthenticationMethods " + methods + "\n"), "") << methods;
  for (const char* methods : {"any", "publickey password", "password"})
    EXPECT_EQ(of_sshd(no_root + "AuthenticationMethods " + methods + "\n"),
              "image_ssh_password_login warning")
        << methods;
  // A block has methods of its own, or those of everybody.
  const std::string bob = "Match User bob\nPasswordAuthentication yes\n";
  const std::string keys = std::string(k_good) + "AuthenticationMethods publickey\n";
  EXPECT_EQ(of_sshd(keys + bob), "");
  EXPECT_EQ(of_sshd(keys + bob + "AuthenticationMethods any\n"),
            "image_ssh_password_login.match warning");
  EXPECT_EQ(of_sshd(std::string(k_good) + "UsePAM yes\nMatch User bob\n"
                                          "ChallengeResponseAuthentication yes\n"),
            "image_ssh_password_login.match warning");
}

// `sshd -o PasswordAuthentication=yes -p 2200`: no line of the file goes before it.
TEST(ImageRules, OptionsOfTheCommand) {
  Made made;
  const formats::SshdStart start =
      formats::parse_sshd_start({{"/usr/sbin/sshd", "-De", "-p", "2200",
                                  "-oPasswordAuthentication=yes", "-o", "PermitRootLogin yes"},
                                 std::vector<uint32_t>(7)});
  for (const formats::SshdSetting& one : start.settings)
    made.setup.ssh.push_back({one, "ENTRYPOINT and CMD", 0, true, true});
  made.setup.starts_sshd = start.starts;
  made.sshd(std::string(k_good) + "Port 22\n");
  made.image.config.ports = {"2200/tcp"};
  EXPECT_EQ(made.findings(),
            "image_ssh_root_login.option error, image_ssh_password_login.option warning");
}

TEST(ImageRules, RootAndUsersOfSshd) {
  const std::string keys = "PasswordAuthentication no\n";
  EXPECT_EQ(of_sshd(keys), "image_ssh_root_login warning");  // prohibit-password
  EXPECT_EQ(of_sshd(keys + "PermitRootLogin yes\n"), "image_ssh_root_login error");
  EXPECT_EQ(of_sshd(std::string(k_good) + "Match Address 10.0.0.0/8\nPermitRootLogin yes\n"),
            "image_ssh_root_login.match error");
  EXPECT_EQ(of_sshd(std::string(k_good) + "AllowUsers app\n"), "");
  EXPECT_EQ(of_sshd(std::string(k_good) + "AllowUsers other\n"),
            "image_ssh_no_way_in.user warning");
  EXPECT_EQ(of_sshd(std::string(k_good) + "PubkeyAuthentication no\n"),
            "image_ssh_no_way_in warning");
  // Lines add up, and one user is enough.
  EXPECT_EQ(of_sshd(std::string(k_good) + "AllowUsers other more\nAllowUsers app\n"), "");
  EXPECT_EQ(of_sshd(std::string(k_good) + "AllowUsers other team*\n"), "");
  EXPECT_EQ(of_sshd(std::string(k_good) + "Match User x\nPermitRootLogin prohibit-password\n"),
            "image_ssh_root_login.match warning");
  // Root is not among those who are let in.
  for (const char* users : {"AllowUsers app", "DenyUsers root"})
    EXPECT_EQ(of_sshd(keys + "PermitRootLogin yes\n" + users + "\n"), "") << users;
  for (const char* users : {"AllowUsers app root", "AllowUsers *", "DenyUsers bob"})
    EXPECT_EQ(of_sshd(keys + "PermitRootLogin yes\n" + users + "\n"), "image_ssh_root_login error")
        << users;
}

TEST(ImageRules, ANameThatWouldRunIsNoPartOfAStep) {
  Made made;
  made.sshd(std::string(k_good) + "AllowUsers $(reboot)\n");
  const ImageRules rules = judge_image_rules(made.image, made.setup);
  ASSERT_EQ(rules.findings.size(), 1u);
  EXPECT_EQ(rules.findings[0].args.at("user"), "NAME");
}

TEST(ImageRules, Ports) {
  Made made;
  made.sshd(std::string(k_good) + "Port 2222\nPort 22\n");
  EXPECT_EQ(made.findings(), "");  // nothing is exposed: nothing to compare
  made.image.config.ports = {"22/tcp"};
  EXPECT_EQ(made.findings(), "");
  made.image.config.ports = {"22/udp", "2022/tcp"};
  EXPECT_EQ(made.findings(), "image_port_mismatch warning");
  Made none;
  none.image.config.ports = {"2222/tcp"};
  EXPECT_EQ(none.findings(), "image_port_mismatch.no_sshd warning");
  Made jupyter;
  jupyter.image.config.ports = {"8888/tcp"};
  jupyter.started("jupyter lab");
  EXPECT_EQ(jupyter.findings(), "image_port_mismatch.loopback warning");
  jupyter.started("jupyter lab --ip=0.0.0.0");
  EXPECT_EQ(jupyter.findings(), "");
  jupyter.started("jupyter lab --port=9999");
  EXPECT_EQ(jupyter.findings(), "image_port_mismatch warning");
}

TEST(ImageRules, PortsOfSshd) {
  const auto of = [](std::string_view text, const char* exposed, bool starts = true) {
    Made made;
    made.sshd(std::string(k_good) + std::string(text));
    made.setup.starts_sshd = starts;
    made.image.config.ports = {exposed};
    for (const checks::Finding& one : judge_image_rules(made.image, made.setup).findings)
      return one.args.at("expose");
    return std::string();
  };
  EXPECT_EQ(of("ListenAddress 0.0.0.0:2222\n", "2222/tcp"), "");
  EXPECT_EQ(of("Port 22\nListenAddress [::]:2222\n", "22/tcp"), "2222");
  EXPECT_EQ(of("Port 2222\nListenAddress ::\nListenAddress 1.2.3.4:23\n", "2222/tcp"), "");
  // As EXPOSE takes them: with blanks.
  EXPECT_EQ(of("Port 2222\nPort 2022\n", "22/tcp"), "2222 2022");
  // Of an MPI image: nobody starts it.
  EXPECT_EQ(of("", "8000/tcp", false), "");
  EXPECT_EQ(of("", "8000/tcp", true), "22");
  EXPECT_EQ(of("", "2222/tcp", false), "22");
  EXPECT_EQ(of("Port $PORT\n", "2222/tcp"), "");
  Made jupyter;  // in the image, and neither started nor configured
  jupyter.setup.jupyter = facts::SetupFile{"/usr/bin/jupyter", 0, false};
  jupyter.image.config.ports = {"8000/tcp"};
  EXPECT_EQ(jupyter.findings(), "");
}

TEST(ImageRules, TokenOfJupyter) {
  const auto of = [](std::string_view text) {
    Made made;
    made.jupyter(text);
    return made.findings();
  };
  EXPECT_EQ(of("c.ServerApp.ip = '*'\n"), "");  // Jupyter makes a token itself
  EXPECT_EQ(of("c.ServerApp.token = ''\n"), "image_jupyter_token error");
  EXPECT_EQ(of("c.ServerApp.token = ''\nc.ServerApp.password = 'argon2:x'\n"), "");
  EXPECT_EQ(of("c.ServerApp.token = 'secret'\n"), "image_jupyter_token.baked error");
  EXPECT_EQ(of("c.ServerApp.token = token\n"), "");
  EXPECT_EQ(of("c.ServerApp.allow_root = True\n"), "image_jupyter_root warning");
  Made made;
  made.jupyter("c.ServerApp.token = token\n");
  made.started("jupyter lab --ServerApp.token=''");  // the command goes before the file
  EXPECT_EQ(made.findings(), "image_jupyter_token error");
  Made variable;
  variable.setup.jupyter = facts::SetupFile{"/usr/bin/jupyter", 0, false};
  variable.image.config.variables = {{"JUPYTER_TOKEN", ""}};
  EXPECT_EQ(variable.findings(), "image_jupyter_token error");
}

TEST(ImageRules, ABakedTokenIsNotShown) {
  Made made;
  made.jupyter("c.ServerApp.token = 'topsecretword'\n");
  const ImageRules rules = judge_image_rules(made.image, made.setup);
  ASSERT_EQ(rules.findings.size(), 1u);
  for (const checks::Evidence& one : rules.findings[0].evidence)
    EXPECT_FALSE(contains(one.value, "topsecretword")) << one.value;
}

TEST(ImageRules, TheImageItself) {
  Made made;
  EXPECT_EQ(made.findings(), "");
  for (const char* user : {"", "root", "0", "0:0", "root:root", "00"}) {
    made.image.config.user = user;
    EXPECT_EQ(made.findings(), "image_runs_as_root warning") << user;
  }
  Made named;
  named.setup.accounts.push_back({"toor", "/bin/bash", 0, 3});
  named.image.config.user = "toor";
  EXPECT_EQ(named.findings(), "image_runs_as_root warning");
  named.image.config.user = "app";
  EXPECT_EQ(named.findings(), "");
  Made based;  // what every image from Ubuntu's has
  based.image.config.labels = {{"org.opencontainers.image.ref.name", "ubuntu"},
                               {"org.opencontainers.image.version", "22.04"},
                               {"cufit.lock.sha256", "ab"}};
  EXPECT_EQ(based.findings(), "image_labels_missing note");
  Made bare;
  bare.image.config.healthcheck = false;
  bare.image.config.labels.clear();
  bare.setup.sbom.reset();
  EXPECT_EQ(bare.findings(),
            "image_no_healthcheck note, image_labels_missing note, image_no_sbom note");
  Made lock;
  lock.setup.lock = facts::SetupFile{"/opt/cufit/cufit.lock", 0, false};
  lock.setup.lock_sha256 = "ab";
  EXPECT_EQ(lock.findings(), "");
  lock.setup.lock_sha256 = "cd";
  EXPECT_EQ(lock.findings(), "image_lock_differs error");
}

TEST(ImageRules, Secrets) {
  const auto of = [](const char* name, const char* value) {
    Made made;
    made.image.config.variables = {{name, value}};
    return made.findings();
  };
  EXPECT_EQ(of("HF_TOKEN", "hf_x"), "image_secret_variable error");
  EXPECT_EQ(of("MYSQL_PASSWORD", "x"), "image_secret_variable error");
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"HF_TOKEN", ""},
           {"HF_TOKEN", "$OTHER"},
           {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"},
           {"OPENAI_API_KEY", "EMPTY"},
           {"DB_PASSWORD_FILE", "/run/secrets/db"},
           {"GPG_KEY", "A035C8C19219BA821ECEA86B64E628F8D684696D"},  // of the python images
           {"PATH", "/bin"}})
    EXPECT_EQ(of(name, value), "") << name;
  Made history;
  history.image.config.steps = {"RUN |1 PIP_PASSWORD=x /bin/sh -c pip install y"};
  EXPECT_EQ(history.findings(), "image_secret_variable.history error");
}

TEST(ImageRules, StatesOfRules) {
  Made made;
  const auto state = [&](const std::string& id) {
    for (const ImageRule& rule : judge_image_rules(made.image, made.setup).rules)
      if (rule.id == id) return std::string(to_string(rule.state));
    return std::string();
  };
  EXPECT_EQ(state("ssh_root"), "absent");
  EXPECT_EQ(state("jupyter_token"), "absent");
  EXPECT_EQ(state("user"), "kept");
  made.sshd(k_good);
  EXPECT_EQ(state("ssh_root"), "kept");
  made.setup.unread = {"/etc/ssh/sshd_config"};
  EXPECT_EQ(state("ssh_root"), "unknown");
  // What cannot be read is not what sshd does by itself.
  made.setup.unread.clear();
  made.setup.ssh.clear();
  EXPECT_EQ(state("ssh_root"), "broken");
  made.setup.sshd_unread = true;
  made.image.config.ports = {"2222/tcp"};
  for (const char* id : {"ssh_keys_only", "ssh_root", "ssh_user", "ports"})
    EXPECT_EQ(state(id), "unknown") << id;
}

}  // namespace image_rules_test
}  // namespace cufit::resolve
