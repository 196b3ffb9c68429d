// SPDX-License-Identifier: Apache-2.0
// What `gcc --version` and `nvcc --version` would say, found in the programs' own bytes, and what
// dpkg's status file says of a package. Used by the collect-env probe, which starts no program.
//
// gcc's driver prints pkgversion_string and version_string. Both are constants of its version.c, so
// their texts stand side by side among the read-only data: "12.2.0" NUL "(Debian 12.2.0-14+deb12u1)
// " NUL. nvcc has its whole line: "Cuda compilation tools, release 13.0, V13.0.88" and a line feed.
#pragma once

#include <string>
#include <string_view>

namespace cufit::formats {

// "(Debian 12.2.0-14+deb12u1) 12.2.0"; empty when the bytes hold no such pair, or two different
// ones.
std::string gcc_version_in(std::string_view program);
// "13.0.88"
std::string nvcc_version_in(std::string_view program);
// Version of an installed package in the text of /var/lib/dpkg/status: "1:14.0.6-12"; empty = not
// installed.
std::string dpkg_version(std::string_view status, std::string_view package);
// Upstream's part of a Debian version: "1:3.25.1-1" -> "3.25.1".
std::string dpkg_upstream(std::string_view version);

}  // namespace cufit::formats
