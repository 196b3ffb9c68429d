// SPDX-License-Identifier: Apache-2.0
// What a container image serves and lets in, as its files say: sshd, accounts, Jupyter, keys and
// credentials of any layer. Filled by host/image/image_setup, judged by resolve/image/image_rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/python/jupyter_config.h"
#include "formats/system/accounts.h"
#include "formats/system/sshd_config.h"

namespace cufit::facts {

// A file of a layer; `layer` counts from 0, the base first.
struct SetupFile {
  std::string path;
  size_t layer = 0;
  bool hidden = false;  // a later layer deletes or replaces it: its bytes are still in the image
};

struct PlacedSshd {
  formats::SshdSetting setting;
  std::string path;
  size_t layer = 0;
  bool own_command = false;  // ENTRYPOINT and CMD say it, no file
  bool by_option = false;    // an option of the command that starts sshd: goes before the file
};

struct PlacedJupyter {
  formats::JupyterSetting setting;
  std::string path;  // of a file; "ENTRYPOINT and CMD" where the image's own command says it
  size_t layer = 0;
  bool in_file = true;
};

struct ImageSetup {
  std::optional<SetupFile> sshd;  // the server's program
  std::vector<PlacedSshd> ssh;    // in the order in which sshd reads them, Include followed
  bool sshd_unread = false;       // a file of settings could not be read: nothing is known
  bool starts_sshd = false;       // the image's own command, or a script of it
  std::vector<SetupFile> host_keys, authorized_keys;  // of any layer
  std::optional<SetupFile> passwd_file, shadow_file;
  std::vector<formats::Account> accounts;
  std::vector<formats::AccountPassword> passwords;
  std::optional<SetupFile> jupyter;             // a program of Jupyter
  std::vector<PlacedJupyter> jupyter_settings;  // files first, then the command that starts it
  bool starts_jupyter = false;                  // the image's own command names it
  std::vector<SetupFile> credentials;           // of any layer: private keys, logins of services
  std::optional<SetupFile> lock, sbom;  // cufit.lock where CUFIT_LOCK says; a bill of materials
  std::string lock_sha256;              // of that lock
  // Paths of files that matter here and could not be read, each with its reason.
  std::vector<std::string> unread;
};

}  // namespace cufit::facts
