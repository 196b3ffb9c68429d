// SPDX-License-Identifier: Apache-2.0
// What the parts of text_facts share: the readers' results, and how claims of one fact are settled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fact.h"
#include "formats/prose/prose_machine.h"
#include "formats/system/nvidia_smi.h"
#include "formats/python/package_list.h"
#include "formats/prose/python_place.h"
#include "formats/prose/shell_words.h"
#include "formats/prose/torch_messages.h"
#include "facts/facts.h"

namespace cufit::facts {

struct TextParts {
  formats::NvidiaSmi smi;
  formats::PackageList packages;
  formats::MachineWords words;
  formats::TorchMessages torch;
  formats::ShellWords shell;
  std::optional<formats::PythonPlace> python;
};

enum class Weight { passing, prose, tool, own };  // of a claim; see text_facts.h

struct Claim {
  std::string value;
  uint64_t line = 0;
  Weight weight = Weight::prose;
};

class TextSource {
 public:
  explicit TextSource(const std::string& name) : name_(name) {}

  std::string at(uint64_t line) const { return name_ + ":" + std::to_string(line); }
  template <class T>
  Fact<T> claim(T value, uint64_t line) const {
    return known<T>(std::move(value), SourceKind::claimed, at(line));
  }
  template <class T>
  Fact<T> unsaid(std::string note = "the text does not say it") const {
    return missing<T>(WhyNot::not_asked, SourceKind::claimed, name_, std::move(note));
  }
  template <class T>
  Fact<T> contradicted(const Claim& one, const Claim& other) const {
    return missing<T>(WhyNot::malformed, SourceKind::claimed, name_,
                      "line " + std::to_string(one.line) + " says `" + one.value + "`, line " +
                          std::to_string(other.line) + " says `" + other.value + "`");
  }
  // The claims of the greatest weight must agree; "3.10" agrees with "3.10.15", which is taken.
  Fact<std::string> settle(const std::vector<Claim>& claims) const;
  // What an earlier reader put into a fact, as one more claim.
  void add(const Fact<std::string>& fact, Weight weight, std::vector<Claim>& claims) const;

 private:
  std::string name_;
};

// "2.7" and "2.7.0+cu128", "535" and "535.54": the longer says the same and more.
bool says_more(std::string_view longer, std::string_view shorter);

std::vector<Claim> mentions_of(const formats::MachineWords& words, formats::MachineWord what);

// text_facts_system.cc, text_facts_gpus.cc, text_facts_python.cc: what the dump (already in
// `facts`) left open.
void read_text_system(const TextParts& parts, const TextSource& source, Facts& facts);
void read_text_gpus(const TextParts& parts, const TextSource& source, Facts& facts);
void read_text_python(const TextParts& parts, const TextSource& source, Facts& facts);

}  // namespace cufit::facts
