// SPDX-License-Identifier: Apache-2.0
// What sshd of an image makes of its settings: the first value counts, options of the command go
// before files, a keyword that nobody sets has sshd's own value.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checks/finding.h"
#include "facts/image_setup.h"
#include "facts/opened_image.h"

namespace cufit::resolve {

std::string lower_word(std::string_view text);

// The one that counts for everybody; nullptr = nobody says it.
const facts::PlacedSshd* first_of(const facts::ImageSetup& setup, std::string_view keyword);
// In small letters; sshd's own where nobody says one.
std::string sshd_value(const facts::ImageSetup& setup, std::string_view keyword);
// Each list of AuthenticationMethods asks for a key; what else it asks for comes on top.
bool asks_for_key(const std::string& methods);
// Of a Match block that says this value, and does not ask for a key as well.
const facts::PlacedSshd* matched_with(const facts::ImageSetup& setup, std::string_view keyword,
                                      std::string_view value);
// Whether the command that starts sshd says it, which goes before any file.
bool is_option(const facts::ImageSetup& setup, std::string_view keyword);
// Words of all lines of AllowUsers or DenyUsers, which add up.
std::vector<std::string> user_words(const facts::ImageSetup& setup, std::string_view keyword);

checks::Evidence evidence_of(const facts::PlacedSshd& one);
checks::Evidence evidence_of(const facts::ImageSetup& setup, std::string_view keyword);

// The port that the image exposes against the one that its sshd listens on.
void judge_image_ssh_port(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                          std::vector<std::pair<std::string, checks::Finding>>& out);

}  // namespace cufit::resolve
