// SPDX-License-Identifier: Apache-2.0
// Whether an image keeps the rules of the universal image (`cufit export --to dockerfile --with
// jupyter,ssh`): who gets in by SSH and Jupyter, as whom it runs, ports, health check, labels,
// secrets. Pure: from what the image's files say.
#pragma once

#include <string>
#include <vector>

#include "checks/finding.h"
#include "facts/image_setup.h"
#include "facts/opened_image.h"

namespace cufit::resolve {

enum class RuleState { kept, broken, unknown, absent };  // absent: the image has no such service
const char* to_string(RuleState state);

struct ImageRule {
  std::string id;  // text: message "report.image.rule.<id>"
  RuleState state = RuleState::kept;
  // The worst of its findings; of a rule that is kept it says nothing.
  checks::Severity severity = checks::Severity::note;
  std::vector<std::string> findings;  // ids
};

struct ImageRules {
  std::vector<ImageRule> rules;  // in a fixed order, all of them
  // Ids of data/findings/image_*.toml; evidence says file, line and layer.
  std::vector<checks::Finding> findings;
};

ImageRules judge_image_rules(const facts::OpenedImage& image, const facts::ImageSetup& setup);

// Parts of it; each adds the findings of one subject.
using RuleFindings = std::vector<std::pair<std::string, checks::Finding>>;  // rule's id, finding
void judge_image_ssh(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                     RuleFindings& out);
void judge_image_jupyter(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                         RuleFindings& out);
void judge_image_config(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                        RuleFindings& out);

// Evidence of a file: "/etc/ssh/sshd_config:12", "PasswordAuthentication yes; layer 3".
checks::Evidence in_layer(const std::string& path, uint32_t line, const std::string& said,
                          size_t layer);
checks::Evidence in_layer(const facts::SetupFile& file, const std::string& said);
// TCP ports that EXPOSE names; whoever listens elsewhere is not reached by `docker run -P`.
std::vector<uint32_t> exposed_ports(const facts::OpenedImage& image);
// A name of the image as a word of a command: plain letters, else the place to fill it in.
std::string plain_name(const std::string& name, const char* otherwise);
std::string port_list(const std::vector<uint32_t>& ports, const char* between = ", ");

}  // namespace cufit::resolve
