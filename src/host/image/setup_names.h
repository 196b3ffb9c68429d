// SPDX-License-Identifier: Apache-2.0
// Which files of an image say what it serves and lets in, by their paths.
#pragma once

#include <string>
#include <string_view>

namespace cufit::host {

constexpr const char* k_sshd_folder = "/etc/ssh/";
constexpr const char* k_docker_logins = "/.docker/config.json";

bool is_jupyter_config(std::string_view name);
// Copies that packages bring for their own tests and documents set nothing.
bool is_of_package(const std::string& path);
// By its name a script that starts something.
bool is_script_name(const std::string& path);
// Private keys and logins that programs keep in a user's folder.
bool is_credential(const std::string& path);
bool is_host_key(const std::string& path);
bool is_authorized_keys(const std::string& path);
// "*" and "?" of sshd's Include, within one part of a path.
bool matches_pattern(std::string_view pattern, std::string_view text);

// Whether read_image_setup() reads this file: of a compressed layer only such are kept.
bool is_setup_text(const std::string& path);

}  // namespace cufit::host
