// SPDX-License-Identifier: Apache-2.0
// A token that is there and not everybody's, nobody as root, an address and a port that are reached.
#include <algorithm>

#include "base/format.h"
#include "checks/evidence.h"
#include "resolve/image/image_rules.h"

namespace cufit::resolve {
namespace {

using checks::Severity;
using facts::PlacedJupyter;
using formats::JupyterValue;

constexpr uint32_t k_jupyter_port = 8888;  // jupyter_server's default

// What the command says goes before what files say; of each the last counts.
const PlacedJupyter* last_of(const facts::ImageSetup& setup, std::string_view name) {
  const PlacedJupyter* out = nullptr;
  for (const PlacedJupyter& one : setup.jupyter_settings)
    if (one.setting.name == name) out = &one;
  return out;
}

checks::Evidence jupyter_evidence(const PlacedJupyter& one, bool shows_value = true) {
  const std::string value = one.setting.kind == JupyterValue::text
                                ? "'" + (shows_value ? one.setting.value : "***") + "'"
                                : one.setting.value;
  const std::string said = format("{}.{} = {}", one.setting.object, one.setting.name, value);
  if (one.in_file) return in_layer(one.path, one.setting.line, said, one.layer);
  return {"file", one.path, said};
}

bool has_jupyter_password(const facts::ImageSetup& setup) {
  return std::any_of(
      setup.jupyter_settings.begin(), setup.jupyter_settings.end(), [](const PlacedJupyter& one) {
        const bool named = one.setting.name == "password" || one.setting.name == "hashed_password";
        const bool empty = one.setting.value.empty() || one.setting.value == "None";
        return named && !empty;
      });
}

void jupyter_token_rule(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                        RuleFindings& out) {
  const PlacedJupyter* said = last_of(setup, "token");
  if (said != nullptr && said->setting.kind == JupyterValue::text) {
    const bool empty = said->setting.value.empty();
    if (empty && has_jupyter_password(setup)) return;
    checks::Finding finding = checks::finding("image_jupyter_token", Severity::error, "image");
    if (!empty) finding.variant = "baked";
    finding.evidence.push_back(jupyter_evidence(*said, empty));
    out.emplace_back("jupyter_token", std::move(finding));
    return;
  }
  if (said != nullptr) return;
  for (const auto& [name, value] : image.config.variables)
    if (name == "JUPYTER_TOKEN" && value.empty() && !has_jupyter_password(setup)) {
      checks::Finding finding = checks::finding("image_jupyter_token", Severity::error, "image");
      finding.evidence.push_back({"file", "ENV", "JUPYTER_TOKEN="});
      out.emplace_back("jupyter_token", std::move(finding));
      return;
    }
}

void jupyter_root_rule(const facts::ImageSetup& setup, RuleFindings& out) {
  const PlacedJupyter* said = last_of(setup, "allow_root");
  if (said == nullptr || said->setting.value != "true") return;
  checks::Finding finding = checks::finding("image_jupyter_root", Severity::warning, "image");
  finding.evidence.push_back(jupyter_evidence(*said));
  out.emplace_back("jupyter_user", std::move(finding));
}

// "127.0.0.1", "localhost", "::1": of the container alone.
bool is_own_address(const std::string& address) {
  return address == "localhost" || starts_with(address, "127.") || address == "::1";
}

void jupyter_address_rule(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                          RuleFindings& out) {
  const std::vector<uint32_t> exposed = exposed_ports(image);
  if (exposed.empty()) return;
  const PlacedJupyter* port = last_of(setup, "port");
  // A program that nobody starts or configures listens nowhere.
  if (!setup.starts_jupyter && port == nullptr && last_of(setup, "ip") == nullptr) return;
  uint32_t number = k_jupyter_port;
  if (port != nullptr) {
    const std::string& text = port->setting.value;
    const bool digits = !text.empty() && text.size() <= 5 &&
                        text.find_first_not_of("0123456789") == std::string::npos;
    if (!digits) return;  // known when it starts
    number = static_cast<uint32_t>(std::stoul(text));
  }
  const bool is_exposed = std::find(exposed.begin(), exposed.end(), number) != exposed.end();
  const PlacedJupyter* ip = last_of(setup, "ip");
  const bool own =
      ip == nullptr ? setup.starts_jupyter
                    : ip->setting.kind == JupyterValue::text && is_own_address(ip->setting.value);
  if (is_exposed && !own) return;
  checks::Finding finding = checks::finding("image_port_mismatch", Severity::warning, "image");
  if (is_exposed) finding.variant = "loopback";
  finding.args = {{"service", "Jupyter"},
                  {"port", std::to_string(number)},
                  {"expose", std::to_string(number)},
                  {"exposed", port_list(exposed)}};
  const PlacedJupyter* proof = is_exposed ? ip : port;
  if (proof != nullptr)
    finding.evidence.push_back(jupyter_evidence(*proof));
  else
    finding.evidence.push_back(
        checks::rule_says(is_exposed ? "jupyter_server: ip is localhost where it is not set"
                                     : "jupyter_server: port is 8888 where it is not set"));
  out.emplace_back("ports", std::move(finding));
}

}  // namespace

void judge_image_jupyter(const facts::OpenedImage& image, const facts::ImageSetup& setup,
                         RuleFindings& out) {
  if (!setup.jupyter && setup.jupyter_settings.empty() && !setup.starts_jupyter) return;
  jupyter_token_rule(image, setup, out);
  jupyter_root_rule(setup, out);
  jupyter_address_rule(image, setup, out);
}

}  // namespace cufit::resolve
