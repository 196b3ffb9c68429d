// SPDX-License-Identifier: Apache-2.0
// The commands that a container of an image starts with: ENTRYPOINT and CMD, and the shell scripts
// that these name, by path or by PATH, and those that the scripts name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "facts/image_setup.h"
#include "facts/opened_image.h"
#include "formats/system/shell_commands.h"

namespace cufit::host {

constexpr const char* k_own_command = "ENTRYPOINT and CMD";

// The commands of one script, or of the image's own words.
struct StartScript {
  facts::SetupFile place;  // path k_own_command of the image's own words
  bool in_file = false;
  std::vector<formats::ShellCommand> commands;
};

using LayerText = std::function<std::optional<std::string>(const facts::LayerFile&)>;

// The image's own words come first, each script behind who names it. At most 16 scripts of 64 KiB,
// four deep.
std::vector<StartScript> start_scripts(const facts::OpenedImage& image,
                                       const facts::ImageTree& tree, const LayerText& text_of);

}  // namespace cufit::host
