// SPDX-License-Identifier: Apache-2.0
#include "host/python/distributions.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "formats/python/conda_meta.h"
#include "formats/python/python_metadata.h"
#include "formats/python/requirement.h"

namespace cufit::host {
namespace {

// Of made metadata: real environments ask for some tens, of some hundred lines.
constexpr size_t k_max_extras = 1000, k_max_judged_extras = 100000;
constexpr size_t k_max_metadata = 8u << 20;  // a README inside may be long
constexpr size_t k_max_record = 64u << 20;
constexpr size_t k_max_walked_files = 50000;
constexpr int k_max_walk_depth = 8;

// conda packages whose record is worth reading: those that bring CUDA code or torch itself.
bool is_interesting_conda_package(const std::string& name) {
  for (const char* stem :
       {"pytorch", "libtorch",  "torch",    "xformers", "flash-attn", "bitsandbytes", "triton",
        "vllm",    "deepspeed", "libmagma", "magma",    "faiss",      "cupy",         "jaxlib",
        "pyg",     "pytorch3d", "nccl",     "cudnn",    "libcudnn",   "cuda-cudart",  "libcublas"})
    if (starts_with(name, stem)) return true;
  return false;
}

// Packages that are looked through even when nothing lists their files.
bool is_interesting_folder(const std::string& name) {
  for (const char* stem : {"torch", "functorch", "xformers", "flash_attn", "bitsandbytes", "triton",
                           "vllm", "deepspeed", "apex", "mamba_ssm", "causal_conv1d", "sgl_kernel",
                           "transformer_engine", "pytorch3d"})
    if (starts_with(name, stem)) return true;
  return false;
}

// torch, its partners and what they import or bring.
bool is_of_torchs_import(const std::string& name) {
  for (const char* one :
       {"torch", "torchvision", "torchaudio", "triton", "numpy", "typing-extensions", "sympy",
        "mpmath", "networkx", "jinja2", "markupsafe", "filelock", "fsspec"})
    if (name == one) return true;
  return is_nvidia_library_package(name) || starts_with(name, "cuda-");
}

class DistributionReader {
 public:
  DistributionReader(const Host& host, const PythonPrefix& prefix,
                     const formats::MarkerEnvironment& environment, bool every_file)
      : host_(host), prefix_(prefix), environment_(environment), every_file_(every_file) {}

  InstalledPackages run() {
    for (const std::string& site : prefix_.site_packages) read_site(site);
    if (prefix_.kind == "conda") read_conda();
    finish();
    return std::move(out_);
  }

 private:
  void read_site(const std::string& site) {
    auto names = host_.list(site);
    if (!names) {
      out_.problems.push_back(names.error().text());
      return;
    }
    std::set<std::string> covered;  // top-level folders that some RECORD describes
    for (const std::string& name : *names) {
      auto folder = formats::parse_metadata_folder(name);
      if (folder) read_metadata_folder(site, name, *folder, covered);
    }
    for (const std::string& name : *names) {
      if (starts_with(name, "~") && !formats::parse_metadata_folder(name)) add_leftover(site, name);
      if (formats::is_shared_object_name(name)) add_object(site + "/" + name, "");
      if (covered.count(name) || name[0] == '~' || name == "__pycache__" || contains(name, "-info"))
        continue;
      if (is_interesting_folder(name)) walk(site + "/" + name, owner_of_folder(name), 0);
    }
  }

  // pip renames what it is about to remove ("torch" to "~orch"); a folder of that kind is left by
  // an interrupted run.
  void add_leftover(const std::string& site, const std::string& name) {
    facts::Distribution leftover;
    leftover.name = name;
    leftover.location = site + "/" + name;
    leftover.kind = "leftover";
    leftover.has_record = false;
    out_.distributions.push_back(std::move(leftover));
  }

  void read_metadata_folder(const std::string& site, const std::string& name,
                            const formats::FolderName& parsed, std::set<std::string>& covered) {
    facts::Distribution out;
    out.location = site + "/" + name;
    out.kind = parsed.suffix;
    bool leftover = starts_with(name, "~");
    bool is_egg = parsed.suffix == "egg-info";
    auto text =
        host_.read_file(out.location + (is_egg ? "/PKG-INFO" : "/METADATA"), k_max_metadata);
    if (!text && is_egg)
      text = host_.read_file(out.location, k_max_metadata);  // old tools wrote a plain file
    formats::PythonMetadata metadata =
        text ? formats::parse_python_metadata(*text) : formats::PythonMetadata{};
    if (!text && text.error().code != Code::not_found && text.error().code != Code::unsupported)
      out_.problems.push_back(text.error().text());
    if (text && metadata.name.empty() && !leftover)
      out_.problems.push_back(format(
          "`{}`: line 1: no `Name:` in its metadata; taken from the folder's name", out.location));
    out.name = leftover
                   ? parsed.name
                   : formats::normalize_name(metadata.name.empty() ? parsed.name : metadata.name);
    if (!leftover && !metadata.name.empty() && metadata.name != out.name)
      out.display_name = metadata.name;
    out.version = metadata.version.empty() ? parsed.version : metadata.version;
    for (const std::string& line : metadata.requires_dist) {
      if (auto requirement = formats::requirement_that_applies(line, environment_))
        out.needs.push_back(std::move(*requirement));
      else if (contains(line, "extra"))
        of_extras_[out.location].push_back(line);
    }
    auto installer = host_.read_file(out.location + "/INSTALLER", 4096);
    if (installer) out.installer = trim(*installer);
    auto record = host_.read_file(out.location + "/RECORD", k_max_record);
    out.has_record = record.has_value();
    if (leftover) {
      out.kind = "leftover";
    } else if (record) {
      read_record(site, *record, out, covered);
    }
    out_.distributions.push_back(std::move(out));
  }

  void read_record(const std::string& site, const std::string& text, facts::Distribution& out,
                   std::set<std::string>& covered) {
    formats::RecordSummary record = formats::parse_record(
        text, every_file_ ? formats::RecordFiles::all : formats::RecordFiles::code);
    for (uint64_t line : record.bad_lines)
      out_.problems.push_back(format("`{}/RECORD`, line {}: no valid path", out.location, line));
    for (const std::string& path : record.packages) covered.insert(path.substr(0, path.find('/')));
    // A stat per module costs: those of pure Python that torch does not import are left out.
    const bool looked_at =
        every_file_ || !record.shared_objects.empty() || is_of_torchs_import(out.name);
    for (const formats::RecordFile& file : record.wanted)
      if (looked_at || ends_with(file.path, "/__init__.py")) check_file(site, file, out);
    for (const std::string& path : record.shared_objects) {
      const std::string full = starts_with(path, "/") ? path : site + "/" + path;
      if (host_.exists(full)) add_object(full, out.name);
    }
    if (!record.shared_objects.empty()) {
      auto wheel = host_.read_file(out.location + "/WHEEL", 65536);
      if (wheel) out.tag = join(formats::header_values(*wheel, "Tag"), ".");
    }
  }

  void check_file(const std::string& site, const formats::RecordFile& file,
                  facts::Distribution& out) {
    ++out.files_recorded;
    const auto status =
        host_.status(starts_with(file.path, "/") ? file.path : site + "/" + file.path);
    // conda writes its own prefix into files after their sizes were recorded.
    const bool sized = status && status->is_regular && file.size_bytes && out.installer != "conda";
    if ((!status && status.error().code == Code::not_found) ||
        (sized && status->size_bytes == 0 && *file.size_bytes > 0)) {
      if (out.files_missing++ == 0 || says_more(file.path, out.first_missing))
        out.first_missing = file.path;
    } else if (sized && status->size_bytes != *file.size_bytes) {
      if (out.files_resized++ == 0 || says_more(file.path, out.first_resized))
        out.first_resized = file.path;
    }
  }

  // Shared objects, then modules, then the rest; of one kind the nearest to the top.
  static bool says_more(const std::string& path, const std::string& than) {
    const auto rank = [](const std::string& one) {
      const long kind = formats::is_shared_object_name(one) ? 0 : ends_with(one, ".py") ? 1 : 2;
      // torch/cuda/__init__.py is the module torch.cuda
      return std::pair(
          kind, std::count(one.begin(), one.end(), '/') - (ends_with(one, "/__init__.py") ? 1 : 0));
    };
    return rank(path) < rank(than);
  }

  void read_conda() {
    std::string folder = prefix_.path + "/conda-meta";
    auto names = host_.list(folder);
    if (!names) {
      out_.problems.push_back(names.error().text());
      return;
    }
    for (const std::string& name : *names) {
      auto parsed = formats::parse_conda_file_name(name);
      if (!parsed) continue;
      facts::Distribution out;
      out.name = formats::normalize_name(parsed->name);
      if (parsed->name != out.name) out.display_name = parsed->name;
      out.version = parsed->version;
      out.tag = parsed->build;
      out.location = folder + "/" + name;
      out.kind = "conda-meta";
      out.installer = prefix_.installer == "pixi" ? "pixi" : "conda";
      if (is_interesting_conda_package(out.name)) read_conda_record(out);
      out_.distributions.push_back(std::move(out));
    }
  }

  void read_conda_record(facts::Distribution& out) {
    auto text = host_.read_file(out.location, k_max_record);
    if (!text) {
      out_.problems.push_back(text.error().text());
      return;
    }
    auto record = formats::parse_conda_record(*text);
    if (!record) {
      out_.problems.push_back(format("`{}`: {}", out.location, record.error().text()));
      return;
    }
    out.needs = std::move(record->depends);
    for (const auto* list : {&record->packages, &record->shared_objects}) {
      for (const std::string& path : *list) {
        ++out.files_recorded;
        std::string full = prefix_.path + "/" + path;
        if (!host_.exists(full)) {
          if (out.files_missing++ == 0) out.first_missing = path;
        } else if (list == &record->shared_objects) {
          add_object(full, out.name);
        }
      }
    }
  }

  void walk(const std::string& folder, const std::string& owner, int depth) {
    if (depth > k_max_walk_depth || walked_ > k_max_walked_files) return;
    for (const std::string& name : host_.list(folder).value_or(std::vector<std::string>())) {
      ++walked_;
      std::string path = folder + "/" + name;
      if (formats::is_shared_object_name(name)) {
        add_object(path, owner);
      } else if (name.find('.') ==
                 std::string::npos) {  // packages have no dot in their names; saves a stat per file
        auto status = host_.status(path);
        if (status && status->is_directory) walk(path, owner, depth + 1);
      }
    }
  }

  std::string owner_of_folder(const std::string& folder) const {
    std::string name = formats::normalize_name(folder);
    for (const facts::Distribution& one : out_.distributions)
      if (one.name == name) return name;
    return {};
  }

  // "cuda-toolkit[cublas]" of one package makes a requirement of another apply ("nvidia-cublas; extra
  // == 'cublas'"), which may ask for extras itself.
  void add_needs_of_extras() {
    std::vector<std::string> lines;
    for (const facts::Distribution& one : out_.distributions)
      if (one.kind != "leftover") lines.insert(lines.end(), one.needs.begin(), one.needs.end());
    std::set<std::pair<std::string, std::string>> asked;
    while (!lines.empty()) {
      const std::string line = std::move(lines.back());
      lines.pop_back();
      if (!contains(line, "[")) continue;
      const auto requirement = formats::parse_requirement(line);
      if (!requirement) continue;
      for (const std::string& extra : requirement->extras)
        if (asked.size() < k_max_extras && asked.emplace(requirement->name, extra).second)
          add_needs_of_extra(requirement->name, extra, lines);
    }
  }

  void add_needs_of_extra(const std::string& name, const std::string& extra,
                          std::vector<std::string>& added) {
    formats::MarkerEnvironment environment = environment_;
    environment.extra = extra;
    for (facts::Distribution& one : out_.distributions) {
      if (one.name != name) continue;
      for (const std::string& line : of_extras_[one.location]) {
        if (++judged_extras_ > k_max_judged_extras) return;
        auto need = formats::requirement_that_applies(line, environment);
        if (!need || std::find(one.needs.begin(), one.needs.end(), *need) != one.needs.end())
          continue;
        added.push_back(*need);
        one.needs.push_back(std::move(*need));
      }
    }
  }

  void add_object(std::string path, const std::string& owner) {
    out_.objects.push_back({std::move(path), owner});
  }

  void finish() {
    add_needs_of_extras();
    std::sort(out_.distributions.begin(), out_.distributions.end(),
              [](const facts::Distribution& a, const facts::Distribution& b) {
                return a.name != b.name ? a.name < b.name : a.location < b.location;
              });
    // A file listed by its owner comes before the same file found in a listing.
    std::sort(out_.objects.begin(), out_.objects.end(),
              [](const SharedObject& a, const SharedObject& b) {
                return a.path != b.path ? a.path < b.path : a.owner > b.owner;
              });
    auto same = [](const SharedObject& a, const SharedObject& b) { return a.path == b.path; };
    out_.objects.erase(std::unique(out_.objects.begin(), out_.objects.end(), same),
                       out_.objects.end());
  }

  const Host& host_;
  const PythonPrefix& prefix_;
  const formats::MarkerEnvironment& environment_;
  const bool every_file_;
  InstalledPackages out_;
  // Requirements that apply with some extra only, by the folder of their metadata.
  std::map<std::string, std::vector<std::string>> of_extras_;
  size_t walked_ = 0, judged_extras_ = 0;
};

}  // namespace

InstalledPackages read_distributions(const Host& host, const PythonPrefix& prefix,
                                     const formats::MarkerEnvironment& environment,
                                     bool every_file) {
  return DistributionReader(host, prefix, environment, every_file).run();
}

bool is_nvidia_library_package(const std::string& name) {
  return starts_with(name, "nvidia-") || name == "cuda-toolkit";
}

}  // namespace cufit::host
