// SPDX-License-Identifier: Apache-2.0
// The port that is exposed is the one that sshd listens on.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "resolve/image/image_rules.h"
#include "resolve/image/sshd_view.h"

namespace cufit::resolve {
namespace {

using checks::Severity;
using facts::PlacedSshd;

uint32_t port_number(const std::string& text) {
  const bool digits = !text.empty() && text.size() <= 5 &&
                      text.find_first_not_of("0123456789") == std::string::npos;
  return digits ? static_cast<uint32_t>(std::stoul(text)) : 0;
}

// "2222" of "0.0.0.0:2222", "[::]:2222"; empty = an address alone.
std::string port_of_address(const std::string& text) {
  const std::string address = text.substr(0, text.find(' '));
  const size_t bracket = address.rfind(']');
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  const bool bare_ipv6 = bracket == std::string::npos && address.find(':') != colon;
  if (bare_ipv6 || (bracket != std::string::npos && colon < bracket)) return {};
  return address.substr(colon + 1);
}

struct SshPorts {
  std::vector<uint32_t> ports;
  std::vector<checks::Evidence> said;
  bool known = true;  // false: a shell fills one in
  void add(const std::string& text, const PlacedSshd& by) {
    const uint32_t port = port_number(text);
    known = known && port != 0;
    ports.push_back(port);
    said.push_back(evidence_of(by));
  }
};

// Of -p alone; else of the addresses, and of Port for those that say none.
SshPorts ssh_ports(const facts::ImageSetup& setup) {
  SshPorts asked, addresses, out;
  bool by_option = false, without_port = false, any_address = false;
  for (const PlacedSshd& one : setup.ssh) {
    if (!one.setting.match.empty()) continue;
    if (one.setting.keyword == "port" && (one.by_option || !by_option)) {
      by_option = one.by_option;
      asked.add(one.setting.value, one);
    }
    if (one.setting.keyword != "listenaddress") continue;
    any_address = true;
    const std::string port = port_of_address(one.setting.value);
    without_port = without_port || port.empty();
    if (!port.empty()) addresses.add(port, one);
  }
  if (asked.ports.empty()) {
    asked.ports = {22};
    asked.said = {checks::rule_says("sshd_config(5): port is 22 where it is not set")};
  }
  if (by_option || !any_address) return asked;
  if (!without_port) return addresses;
  out = addresses;
  out.known = addresses.known && asked.known;
  out.ports.insert(out.ports.end(), asked.ports.begin(), asked.ports.end());
  out.said.insert(out.said.end(), asked.said.begin(), asked.said.end());
  return out;
}

void no_sshd_for_port(const std::vector<uint32_t>& exposed, uint32_t usual, RuleFindings& out) {
  checks::Finding finding = checks::finding("image_port_mismatch", Severity::warning, "image");
  finding.variant = "no_sshd";
  finding.args = {{"service", "sshd"},
                  {"port", std::to_string(usual)},
                  {"expose", std::to_string(usual)},
                  {"exposed", port_list(exposed)}};
  out.emplace_back("ports", std::move(finding));
}

}  // namespace

void judge_image_ssh_port(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                          RuleFindings& out) {
  const std::vector<uint32_t> exposed = exposed_ports(image);
  if (exposed.empty()) return;
  const auto is_exposed = [&](uint32_t port) {
    return std::find(exposed.begin(), exposed.end(), port) != exposed.end();
  };
  const uint32_t usual = is_exposed(22) ? 22 : is_exposed(2222) ? 2222 : 0;
  if (!setup.sshd) {
    if (usual != 0) no_sshd_for_port(exposed, usual, out);
    return;
  }
  if (setup.sshd_unread) return;
  // A program that nobody starts (MPI's images have one) listens nowhere.
  const bool configured = first_of(setup, "port") != nullptr;
  if (!setup.starts_sshd && !configured && usual == 0) return;
  SshPorts listens = ssh_ports(setup);
  if (!listens.known || std::any_of(listens.ports.begin(), listens.ports.end(), is_exposed)) return;
  checks::Finding finding = checks::finding("image_port_mismatch", Severity::warning, "image");
  finding.args = {{"service", "sshd"},
                  {"port", port_list(listens.ports)},
                  {"expose", port_list(listens.ports, " ")},
                  {"exposed", port_list(exposed)}};
  finding.evidence = std::move(listens.said);
  out.emplace_back("ports", std::move(finding));
}

}  // namespace cufit::resolve
