// SPDX-License-Identifier: Apache-2.0
#include "explain/named_package.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "formats/prose/package_mentions.h"
#include "formats/python/python_metadata.h"
#include "formats/prose/text_words.h"

namespace cufit::explain {
namespace {

using formats::MentionKind;
using formats::PackageMention;
using knowledge::ExtensionModuleRow;

// torch and its own family are never the package that is built against it, nor are the tools of a
// build; the others' folders do not carry the distribution's name.
constexpr std::string_view k_never[] = {
    "torch",     "torchvision", "torchaudio", "pytorch",      "pytorch-triton", "triton",
    "functorch", "pip",         "setuptools", "wheel",        "ninja",          "packaging",
    "cmake",     "pybind11",    "cython",     "pkg-resources"};
constexpr std::string_view k_other_folders[] = {"cv2",     "pil",    "sklearn", "skimage", "yaml",
                                                "google",  "nvidia", "bin",     "lib",     "lib64",
                                                "include", "share",  "src",     "tests"};

bool is_one_of(std::span<const std::string_view> list, std::string_view name) {
  return std::find(list.begin(), list.end(), formats::normalize_name(name)) != list.end();
}

struct Named {
  std::string package, requirement, module;
  bool wheels = false;  // the index has nothing of it that could be built
};

// What a step of the search found. Several names: none is taken, and no weaker step is asked.
struct Found {
  std::vector<Named> names;
  bool competing = false;

  void add(Named named) {
    for (const Named& one : names) {
      if (one.package == named.package && one.module == named.module) return;
    }
    names.push_back(std::move(named));
  }
  bool any() const { return competing || !names.empty(); }
};

class Namer {
 public:
  Namer(std::span<const formats::TextLine> lines, const knowledge::Knowledge& knowledge)
      : lines_(lines), knowledge_(knowledge), said_(formats::parse_package_mentions(lines)) {}

  std::optional<Named> of_build(const Cause& cause) const {
    return first_of({built(MentionKind::build_failed, false), built(MentionKind::build, false),
                     command(cause, false), words(cause)});
  }

  std::optional<Named> of_extension(const Cause& cause) const {
    std::set<uint64_t> shown;
    for (const EvidenceLine& line : cause.evidence) shown.insert(line.line);
    return first_of({loaded(&shown), loaded(nullptr), known_only(MentionKind::frame), words(cause),
                     known_only(MentionKind::wheel), command(cause, true),
                     built(MentionKind::build_failed, true), built(MentionKind::build, true)});
  }

 private:
  static std::optional<Named> first_of(std::initializer_list<Found> steps) {
    for (const Found& step : steps) {
      if (!step.any()) continue;
      if (step.competing || step.names.size() != 1) return std::nullopt;
      return step.names[0];
    }
    return std::nullopt;
  }

  // What of the versions that the text asks for of this distribution; none where they differ.
  std::string pin(std::string_view package) const {
    const std::string name = formats::normalize_name(package);
    std::set<std::string> versions;
    const auto take = [&](const PackageMention& one) {
      if (!one.version.empty() && formats::normalize_name(one.name) == name)
        versions.insert(one.version);
    };
    std::for_each(said_.mentions.begin(), said_.mentions.end(), take);
    for (const formats::InstallCommand& command : said_.commands)
      std::for_each(command.wanted.begin(), command.wanted.end(), take);
    return versions.size() == 1 ? format("=={}", *versions.begin()) : std::string();
  }

  // Of the distributions that bring one module, the one that the text names.
  std::string_view distribution(const ExtensionModuleRow& row) const {
    std::string_view out = row.package;
    for (std::string_view other : split(row.also, ' ')) {
      if (other.empty() || !names_word(other)) continue;
      if (out != row.package) return row.package;
      out = other;
    }
    return out;
  }

  bool names_word(std::string_view name) const {
    std::string underscored(name);
    std::replace(underscored.begin(), underscored.end(), '-', '_');
    return std::any_of(lines_.begin(), lines_.end(), [&](const formats::TextLine& line) {
      return formats::has_word(line.text, name) || formats::has_word(line.text, underscored);
    });
  }

  Named of_row(const ExtensionModuleRow& row, std::string_view package) const {
    Named out;
    out.module = row.import;
    if (row.origin == "none") return out;
    out.package = package;
    out.wheels = row.origin == "wheels";
    const bool elsewhere = starts_with(row.origin, "git+") && package == row.package;
    out.requirement = elsewhere ? std::string(row.origin) : out.package + pin(package);
    return out;
  }

  // A distribution's name as an installer says it. `known`: only those of the table.
  void add_distribution(const PackageMention& mention, bool known, Found& found) const {
    if (is_one_of(k_never, mention.name) || !formats::is_distribution_name(mention.name)) return;
    const ExtensionModuleRow* row = knowledge_.find_extension_package(mention.name);
    if (row) {
      const std::string name = formats::normalize_name(mention.name);
      const bool own = name == formats::normalize_name(row->package);
      found.add(of_row(*row, own ? row->package : std::string_view(name)));
    } else if (!known && mention.sure) {
      if (said_.from_folder) {
        found.competing = true;  // a project of the user's own: no index has it
      } else {
        found.add({mention.name, mention.name + pin(mention.name), {}, false});
      }
    }
  }

  Found built(MentionKind kind, bool known) const {
    Found found;
    for (const PackageMention& mention : said_.mentions) {
      if (mention.kind == kind) add_distribution(mention, known, found);
    }
    return found;
  }

  // The last command before what shows the cause; a package of the table goes before others.
  Found command(const Cause& cause, bool known) const {
    const uint64_t line = cause.evidence.empty() ? 0 : cause.evidence[0].line;
    const formats::InstallCommand* last = nullptr;
    for (const formats::InstallCommand& one : said_.commands) {
      if (line == 0 || one.line <= line) last = &one;
    }
    if (!last && said_.commands.size() == 1) last = &said_.commands[0];
    Found all, of_table;
    if (!last) return all;
    for (const PackageMention& wanted : last->wanted) {
      add_distribution(wanted, known || !last->typed, all);
      add_distribution(wanted, true, of_table);
    }
    return of_table.names.size() == 1 ? of_table : all;
  }

  void add_module(const PackageMention& mention, Found& found) const {
    const std::string first = mention.name.substr(0, mention.name.find('.'));
    if (is_one_of(k_never, first)) return;
    if (const ExtensionModuleRow* row = knowledge_.find_extension_module(mention.name)) {
      found.add(of_row(*row, distribution(*row)));
    } else if (mention.folder && formats::is_distribution_name(first) &&
               !is_one_of(k_other_folders, first)) {
      found.add({first, first + pin(first), first, false});
    } else {
      found.competing = true;  // something else does not load, and nothing says what brings it
    }
  }

  // Modules that did not load, on the lines that show the cause or anywhere.
  Found loaded(const std::set<uint64_t>* shown) const {
    Found found;
    for (const PackageMention& mention : said_.mentions) {
      const bool wanted = mention.kind == MentionKind::module || mention.kind == MentionKind::file;
      if (wanted && (!shown || shown->count(mention.line))) add_module(mention, found);
    }
    return found;
  }

  Found known_only(MentionKind kind) const {
    Found found;
    for (const PackageMention& mention : said_.mentions) {
      if (mention.kind != kind) continue;
      const ExtensionModuleRow* row = kind == MentionKind::frame
                                          ? knowledge_.find_extension_module(mention.name)
                                          : knowledge_.find_extension_package(mention.name);
      if (row) found.add(of_row(*row, distribution(*row)));
    }
    return found;
  }

  // Packages of the table whose names stand in the lines that show the cause.
  Found words(const Cause& cause) const {
    Found found;
    for (const ExtensionModuleRow& row : knowledge_.extension_modules) {
      std::vector<std::string_view> names = split(row.modules, ' ');
      names.push_back(row.import);
      names.push_back(row.package);
      const bool named = std::any_of(names.begin(), names.end(), [&](std::string_view name) {
        const std::string word = lower(name);
        return std::any_of(cause.evidence.begin(), cause.evidence.end(),
                           [&](const EvidenceLine& line) {
                             return line.line != 0 && formats::has_word(line.text, word);
                           });
      });
      if (named) found.add(of_row(row, distribution(row)));
    }
    return found;
  }

  std::span<const formats::TextLine> lines_;
  const knowledge::Knowledge& knowledge_;
  formats::PackageMentions said_;
};

}  // namespace

namespace {

// Of a cause of another kind, a build that the system killed.
bool is_about_package(const Cause& cause, std::string_view category) {
  return category == "build" || category == "extension" ||
         (cause.id == "host_ram_kill" && cause.finding.variant == "text.build");
}

}  // namespace

void name_packages(std::vector<Cause>& causes, std::span<const formats::TextLine> lines,
                   const knowledge::Knowledge& knowledge) {
  std::optional<Namer> namer;
  for (Cause& cause : causes) {
    const knowledge::FindingTexts* texts = knowledge.find_texts(cause.id);
    if (!texts || !is_about_package(cause, texts->category)) continue;
    if (!namer) namer.emplace(lines, knowledge);
    const std::optional<Named> named =
        texts->category != "extension" ? namer->of_build(cause) : namer->of_extension(cause);
    if (!named) continue;
    if (!named->package.empty()) {
      cause.finding.args["PACKAGE"] = named->package;
      cause.finding.args["REQUIREMENT"] = named->requirement;
    }
    if (named->wheels && cause.finding.variant == "text") cause.finding.variant = "text.wheels";
    if (!named->module.empty()) cause.finding.args["MODULE"] = named->module;
  }
}

}  // namespace cufit::explain
