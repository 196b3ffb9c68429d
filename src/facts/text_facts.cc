// SPDX-License-Identifier: Apache-2.0
#include "facts/text_facts.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <map>

#include "base/format.h"
#include "base/number.h"
#include "base/version.h"
#include "formats/prose/collect_env_dump.h"
#include "formats/system/kernel_log.h"
#include "formats/prose/text_words.h"
#include "facts/collect_env_facts.h"
#include "facts/text_claims.h"
#include "facts/variables.h"

namespace cufit::facts {
namespace {

using formats::MachineMention;
using formats::MachineWord;
using formats::TextLine;

// Two labels of a dump also stand in a reporter's own few lines ("OS: ...", "Python version: ...");
// those go to the reader of prose.
bool is_dump(const formats::CollectEnvDump& dump) {
  bool torch = dump.find("torch_version") != nullptr;
  return dump.fields.size() >= (torch ? 4u : 7u) || (torch && !dump.packages.empty());
}

void renumber(formats::CollectEnvDump& dump, std::span<const TextLine> lines) {
  auto original = [&](uint64_t& line) {
    if (line >= 1 && line <= lines.size()) line = lines[line - 1].number;
  };
  for (auto* list : {&dump.fields, &dump.cpu, &dump.variables})
    for (formats::DumpField& field : *list) original(field.line);
  for (formats::DumpGpu& gpu : dump.gpus) original(gpu.line);
  for (formats::DumpPackage& package : dump.packages) original(package.line);
  for (formats::Damage& damage : dump.damage) original(damage.offset);
}

// Lines that a kernel wrote, as `dmesg` or journalctl show them. The reader of logs keeps every
// line with the maker's name, which in prose are many.
bool is_kernel_line(std::string_view line) {
  if (contains(line, "NVRM") || contains(line, " kernel: ") || starts_with(line, "kernel: "))
    return true;
  if (contains(line, "nouveau 0000:") || contains(line, "nvidia 0000:") ||
      contains(line, "nvidia-nvswitch") || contains(line, "nvidia: module verification") ||
      contains(line, "nvidia-modeset:"))
    return true;
  if (line.size() < 8 || line[0] != '[') return false;
  size_t digit = line.find_first_not_of(" ", 1);  // "[   12.345678] "
  std::string_view number =
      digit == line.npos ? std::string_view() : formats::dotted_number_at(line.substr(digit));
  return formats::has_inner_dot(number) && number.find('.') + 7 == number.size() &&
         line.substr(digit + number.size(), 2) == "] ";
}

class TextFacts {
 public:
  TextFacts(std::span<const TextLine> lines, const std::string& name)
      : lines_(lines), name_(name), source_(name) {}

  Facts read() {
    dump();
    parts_ = {formats::parse_nvidia_smi(lines_),    formats::parse_package_list(lines_),
              formats::parse_machine_words(lines_), formats::parse_torch_messages(lines_),
              formats::parse_shell_words(lines_),   formats::last_python_place(lines_)};
    read_text_system(parts_, source_, facts_);
    driver();
    read_text_gpus(parts_, source_, facts_);
    toolkit();
    read_text_python(parts_, source_, facts_);
    variables();
    libraries();
    kernel_log();
    facts_.cufit_version = CUFIT_VERSION;
    facts_.origin = "text";
    return std::move(facts_);
  }

 private:
  void dump() {
    std::string text;
    for (const TextLine& line : lines_) text += line.text + "\n";
    formats::CollectEnvDump dump = formats::parse_collect_env_dump(text);
    if (!is_dump(dump)) return;
    renumber(dump, lines_);
    facts_ = facts_from_dump(dump, name_);
  }

  // The first line with one of the texts; null = none.
  const TextLine* line_with(std::initializer_list<std::string_view> texts) const {
    for (const TextLine& line : lines_)
      for (std::string_view text : texts)
        if (contains(line.text, text)) return &line;
    return nullptr;
  }

  void driver() {
    std::vector<Claim> claims, cuda = mentions_of(parts_.words, MachineWord::driver_cuda);
    source_.add(facts_.nvml.driver_version, Weight::tool, claims);
    const formats::SmiRun* run = nullptr;
    for (const formats::SmiRun& each : parts_.smi.runs) {
      if (!each.driver.empty()) {
        claims.push_back({each.driver, each.driver_line, Weight::tool});
        if (!run) run = &each;
      }
      if (!each.cuda.empty() && each.cuda != "N/A")
        cuda.push_back({each.cuda, each.cuda_line, Weight::prose});
    }
    Claim branch;
    for (Claim& claim : mentions_of(parts_.words, MachineWord::driver)) {
      if (claim.value.find('.') == std::string::npos) {
        branch = claim;  // "driver 525": too little to compare with "at least 525.60.13"
        continue;
      }
      // Prose that gives a whole number weighs as much as a table of perhaps another machine.
      claims.push_back(
          {claim.value, claim.line, claim.weight == Weight::prose ? Weight::tool : claim.weight});
    }
    // The branches in which a CUDA major begins: not all of their drivers run it.
    const bool open = branch.value == "450" || branch.value == "525" || branch.value == "580";
    if (claims.empty() && !branch.value.empty() && !open) claims.push_back(branch);
    facts_.nvml.driver_version = source_.settle(claims);
    if (claims.empty() && !branch.value.empty()) {
      facts_.nvml.driver_version = source_.unsaid<std::string>(
          format("line {} says only the branch, `{}`", branch.line, branch.value));
    }
    answers(run);
    facts_.nvml.cuda_version = encoded(source_.settle(cuda));
    // torch's own words: "(found version 12080)".
    std::vector<Claim> found;
    for (const formats::TorchValue& said : parts_.torch.driver_cuda)
      found.push_back({said.value, said.line, Weight::own});
    facts_.cuda.driver_version = encoded(source_.settle(found));
  }
  static Fact<int> encoded(const Fact<std::string>& text) {  // "12.2" -> 12020
    Fact<int> out{std::nullopt, text.source, text.why, text.note};
    std::optional<Version> version = text ? parse_version(*text) : std::nullopt;
    if (version && version->part(0) < 1000 && version->part(1) < 100)
      out.value = static_cast<int>(version->part(0) * 1000 + version->part(1) * 10);
    return out;
  }
  // A table was printed, so NVML answered there; a text that also shows it failing is about two
  // machines or two moments.
  void answers(const formats::SmiRun* run) {
    if (!run) {
      if (!facts_.nvml.init_result) facts_.nvml.init_result = source_.unsaid<int>();
      return;
    }
    const TextLine* failed =
        line_with({"Failed to initialize NVML", "couldn't communicate with the NVIDIA driver",
                   "Driver/library version mismatch"});
    facts_.nvml.init_result =
        failed ? source_.contradicted<int>({"NVIDIA-SMI " + run->driver, run->driver_line},
                                           {printable(failed->text, 120), failed->number})
               : source_.claim<int>(0, run->driver_line);
  }
  static std::string printable(const std::string& text, size_t limit) {
    return formats::printable(text, limit);
  }

  void toolkit() {
    if (!facts_.toolkits.empty()) return;
    std::vector<Claim> claims = mentions_of(parts_.words, MachineWord::toolkit);
    for (const formats::TorchValue& said : parts_.torch.toolkit_cuda)
      claims.push_back({said.value, said.line, Weight::own});
    if (claims.empty()) return;
    Toolkit toolkit;
    toolkit.path = "(claimed)";
    toolkit.found_by = "claimed";
    toolkit.version = source_.settle(claims);
    toolkit.nvcc = source_.unsaid<std::string>();
    toolkit.nvcc_version = toolkit.version;
    facts_.toolkits.push_back(std::move(toolkit));
  }

  // A name with two values was tried with both; neither is what holds. `unset` ends what was set.
  void variables() {
    std::map<std::string, std::vector<std::string>> values;
    for (const formats::ShellVariable& variable : parts_.shell.variables) {
      if (!keeps_variable(variable.name)) continue;
      std::vector<std::string>& list = values[variable.name];
      if (variable.how == "unset")
        list.clear();
      else if (std::find(list.begin(), list.end(), variable.value) == list.end() && list.size() < 3)
        list.push_back(variable.value);
    }
    for (const EnvVariable& known : facts_.variables) values.erase(known.name);
    for (auto& [name, list] : values)
      if (list.size() == 1) facts_.variables.push_back({name, list[0]});
    std::sort(facts_.variables.begin(), facts_.variables.end(),
              [](const EnvVariable& a, const EnvVariable& b) { return a.name < b.name; });
  }

  // What ldd or LD_DEBUG showed of the libraries of an environment.
  void libraries() {
    if (parts_.shell.libraries.empty()) return;
    if (facts_.envs.empty()) {
      PythonEnv env;
      env.path = "(claimed)", env.kind = "claimed", env.active = true, env.found_by = "claimed";
      env.installer = "pip";
      facts_.envs.push_back(std::move(env));
    }
    for (const formats::LoaderLine& line : parts_.shell.libraries) {
      LoadedLibrary out;
      out.name = line.name;
      out.path = line.path;
      out.by = "claimed";
      out.asked_by = source_.at(line.line);
      out.inside = contains(line.path, "-packages/");
      facts_.envs.front().loads.push_back(std::move(out));
    }
  }

  void kernel_log() {
    std::string text;
    uint64_t first = 0;
    for (const TextLine& line : lines_) {
      if (!is_kernel_line(line.text)) continue;
      if (first == 0) first = line.number;
      std::string_view message = line.text;
      if (starts_with(message, "kernel: ")) message.remove_prefix(8);
      text += std::string(message) + "\n";
    }
    formats::KernelLog log = formats::parse_kernel_log(text);
    if (log.lines.empty()) {
      facts_.kernel.log = source_.unsaid<std::vector<std::string>>();
      return;
    }
    facts_.kernel.log = source_.claim(std::move(log.lines), first);
    for (const formats::Xid& xid : log.xids)
      facts_.kernel.xids.push_back({xid.number, xid.pci, xid.text, xid.count});
  }

  std::span<const TextLine> lines_;
  const std::string& name_;
  TextSource source_;
  TextParts parts_;
  Facts facts_;
};

}  // namespace

Facts facts_from_text(std::span<const TextLine> lines, const std::string& name) {
  return TextFacts(lines, name).read();
}

}  // namespace cufit::facts
