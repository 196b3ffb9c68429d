// SPDX-License-Identifier: Apache-2.0
#include "commands/resolve/newer_torch.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/format.h"
#include "base/path.h"
#include "commands/inspect/remote_member.h"
#include "formats/archive/zip.h"
#include "formats/python/index_config.h"
#include "formats/python/python_metadata.h"
#include "formats/python/wheel_name.h"
#include "host/install/http.h"
#include "host/install/http_source.h"

namespace cufit::commands {
namespace {

using formats::CodeKind;
using formats::DeviceCode;

constexpr size_t k_most_wheels = 3;  // variants of one release; each costs up to 200 MiB
constexpr uint64_t k_most_metadata = 4u << 20;
constexpr size_t k_most_pythons = 16;

// One variant of the release on an index, and a file of it.
struct Variant {
  std::string local;  // "cu130"; empty: the index's own
  std::string url, glibc, uploaded;
  bool has_metadata = false;
  std::set<std::string> pythons;
};

struct Release {
  formats::PythonVersion version;
  std::string text;  // without the local part
  std::map<std::string, Variant> variants;
};

std::string glibc_of(const formats::WheelName& name) {
  for (const std::string& platform : name.platforms) {
    const std::vector<std::string_view> parts = split(platform, '_');  // manylinux_2_28_x86_64
    if (parts.size() >= 3 && parts[0] == "manylinux")
      return std::string(parts[1]) + "." + std::string(parts[2]);
  }
  return "2.28";
}

void take_file(const std::string& page, const formats::IndexFile& file,
               const formats::WheelName& name, Release& release) {
  Variant& variant = release.variants[release.version.local];
  for (const std::string& python : name.pythons)
    if (python.size() >= 4 && python.compare(0, 3, "cp3") == 0 &&
        variant.pythons.size() < k_most_pythons)
      variant.pythons.insert("3." + python.substr(3));
  if (!variant.url.empty()) return;
  variant.local = release.version.local;
  variant.url = formats::file_url(page, file);
  variant.glibc = glibc_of(name);
  variant.has_metadata = file.has_metadata;
  variant.uploaded = file.upload_time.substr(0, 10);
}

// The newest that is newer than `known`.
std::optional<Release> newest_release(const std::vector<HeardPage>& pages,
                                      const std::vector<formats::Requirement>& requirements,
                                      const formats::PythonVersion& known) {
  std::optional<Release> out;
  for (const HeardPage& heard : pages) {
    for (const formats::IndexFile& file : heard.page.files) {
      const auto name = formats::parse_wheel_name(file.filename);
      const bool fits =
          name &&
          std::any_of(name->platforms.begin(), name->platforms.end(), [](const std::string& one) {
            return ends_with(one, "x86_64") && contains(one, "linux");
          });
      if (!fits || file.yanked || name->name != "torch" || !name->variant.empty()) continue;
      auto version = formats::parse_python_version(name->version);
      if (!version || version->pre || version->dev || starts_with(version->local, "cpu")) continue;
      formats::PythonVersion plain = *version;
      plain.local.clear();
      if (!(formats::compare(plain, known) > 0) || !is_wanted_torch(name->version, requirements))
        continue;
      if (out) {
        formats::PythonVersion best = out->version;
        best.local.clear();
        const auto order = formats::compare(plain, best);
        if (order < 0) continue;
        if (order > 0) out.reset();
      }
      if (!out) out.emplace();
      out->version = *version;
      out->text = name->version.substr(0, name->version.find('+'));
      take_file(heard.url, file, *name, *out);
    }
  }
  return out;
}

struct Read {
  std::string cuda, cudnn, nccl, triton;
  std::vector<DeviceCode> code;
};

// "nvidia-cuda-runtime-cu12 (==12.8.90)" -> "12.8.90"
std::string pinned(const formats::Requirement& one) {
  return one.clauses.size() == 1 && one.clauses[0].op == "==" ? one.clauses[0].version : "";
}

void take_metadata(std::string_view text, Read& out) {
  for (const std::string& line : formats::parse_python_metadata(text).requires_dist) {
    const auto one = formats::parse_requirement(line);
    if (!one) continue;
    const std::string version = pinned(*one);
    if (starts_with(one->name, "nvidia-cuda-runtime") || one->name == "cuda-toolkit")
      out.cuda = version;
    if (starts_with(one->name, "nvidia-cudnn")) out.cudnn = version;
    if (starts_with(one->name, "nvidia-nccl")) out.nccl = version;
    if (one->name == "triton") out.triton = version;
  }
}

Result<std::string> metadata_beside(const Variant& variant, host::Interrupts& interrupts) {
  host::HttpRequest request;
  request.url = variant.url + ".metadata";
  request.most_bytes = k_most_metadata;
  CUFIT_TRY(answer, host::http_get(request, interrupts));
  if (answer.status != 200) return fail(Code::io, "no metadata beside the file");
  return std::move(answer.body);
}

Result<Read> read_variant(const Variant& variant, host::Interrupts& interrupts) {
  Read out;
  const std::string shown = formats::without_credentials(variant.url);
  bool has_metadata = false;
  if (variant.has_metadata)
    if (const auto text = metadata_beside(variant, interrupts); text) {
      take_metadata(*text, out);
      has_metadata = true;
    }
  CUFIT_TRY(source, host::open_http_source(variant.url, interrupts));
  CUFIT_TRY(zip, formats::ZipFile::open(std::move(source)));
  for (const formats::ZipMember& member : zip.members()) {
    if (!has_metadata && ends_with(member.name, ".dist-info/METADATA") &&
        member.size_bytes <= k_most_metadata) {
      CUFIT_TRY(text, zip.read(member));
      take_metadata(text, out);
    }
    if (file_name(member.name) != "libtorch_cuda.so" || !out.code.empty()) continue;
    CUFIT_TRY(start, read_member_start(zip, member, shown + "!" + member.name));
    // The list of a few is not that of all: nothing is said of a wheel by them.
    if (start.seen_bytes < member.size_bytes && start.containers < k_enough_containers)
      return fail(Code::unsupported, format("`{}`: its device code lies too deep in it", shown));
    out.code = std::move(start.file.device_code);
  }
  if (out.code.empty())
    return fail(Code::unsupported, format("`{}`: no device code was found in it", shown));
  return out;
}

// "sm_90" -> "9.0", in the order of the list and each once.
std::string capabilities(const std::vector<DeviceCode>& code, CodeKind kind) {
  std::string out;
  for (const DeviceCode& one : code) {
    const bool plain =
        one.arch.size() >= 2 && one.arch.find_first_not_of("0123456789") == std::string::npos;
    if (one.kind != kind || !plain || !one.loadable) continue;
    const std::string cc =
        one.arch.substr(0, one.arch.size() - 1) + "." + one.arch.substr(one.arch.size() - 1);
    if (!contains(" " + out + " ", " " + cc + " ")) out += (out.empty() ? "" : " ") + cc;
  }
  return out;
}

}  // namespace

bool is_wanted_torch(const std::string& version,
                     const std::vector<formats::Requirement>& requirements) {
  return std::all_of(requirements.begin(), requirements.end(), [&](const auto& one) {
    return one.name != "torch" || formats::satisfies(one.clauses, version);
  });
}

class NewerTorchReader {
 public:
  explicit NewerTorchReader(const knowledge::Knowledge& base) : base_(base) {
    out_->knowledge_ = base;
    out_->releases_.assign(base.torch_releases.begin(), base.torch_releases.end());
    out_->wheels_.assign(base.wheel_variants.begin(), base.wheel_variants.end());
    out_->sets_.assign(base.arch_sets.begin(), base.arch_sets.end());
    out_->tags_.assign(base.cuda_tags.begin(), base.cuda_tags.end());
  }

  void add_release(const Release& release, const std::string& default_tag,
                   const std::string& triton) {
    std::set<std::string> pythons;
    std::string uploaded;
    for (const auto& [local, variant] : release.variants) {
      pythons.insert(variant.pythons.begin(), variant.pythons.end());
      uploaded = variant.uploaded;
    }
    std::vector<std::string> sorted(pythons.begin(), pythons.end());
    std::sort(sorted.begin(), sorted.end(), [](const std::string& a, const std::string& b) {
      return parse_version(a) < parse_version(b);  // 3.9 before 3.10
    });
    knowledge::TorchRelease row{};
    row.version = keep(release.text);
    row.date = keep(uploaded);
    row.triton = keep(triton);
    row.python = keep(join(sorted, " "));
    row.default_linux_x86_64 = keep(default_tag);
    out_->releases_.push_back(row);
  }

  // The tag; empty where no driver is known for its CUDA.
  std::string add_wheel(const Release& release, const Variant& variant, const Read& read) {
    const auto cuda = parse_version(read.cuda);
    if (!cuda) return {};
    const auto floor = base_.family_floor(cuda->part(0));
    const std::string tag =
        variant.local.empty() ? format("cu{}{}", cuda->part(0), cuda->part(1)) : variant.local;
    if (!floor) return {};
    knowledge::WheelVariant row{};
    row.torch = keep(release.text);
    row.tag = keep(tag);
    row.cudnn = keep(read.cudnn);
    row.nccl = keep(read.nccl);
    row.arch_set = keep("l-index-" + tag);
    row.cxx11_abi = 1;
    row.glibc = keep(variant.glibc);
    const std::string_view minor =
        keep(format("{}.{}", release.version.release[0],
                    release.version.release.size() > 1 ? release.version.release[1] : 0));
    knowledge::CudaTag known{};
    if (const knowledge::CudaTag* old = base_.find_cuda_tag(tag)) known = *old;
    if (known.tag.empty())
      known = {row.tag,
               keep(format("{}.{}", cuda->part(0), cuda->part(1))),
               keep(format("libcudart.so.{}", cuda->part(0))),
               keep(floor->text()),
               minor,
               minor};
    known.last_torch = minor;
    out_->tags_.erase(std::remove_if(out_->tags_.begin(), out_->tags_.end(),
                                     [&](const auto& one) { return one.tag == tag; }),
                      out_->tags_.end());
    out_->tags_.push_back(known);
    out_->sets_.push_back({row.arch_set, "linux_x86_64",
                           keep(capabilities(read.code, CodeKind::cubin)),
                           keep(capabilities(read.code, CodeKind::ptx))});
    out_->wheels_.push_back(row);
    return tag;
  }

  std::unique_ptr<NewerTorch> done() {
    out_->knowledge_.torch_releases = out_->releases_;
    out_->knowledge_.wheel_variants = out_->wheels_;
    out_->knowledge_.arch_sets = out_->sets_;
    out_->knowledge_.cuda_tags = out_->tags_;
    return std::move(out_);
  }

 private:
  std::string_view keep(std::string text) {
    out_->texts_.push_back(std::move(text));
    return out_->texts_.back();
  }
  const knowledge::Knowledge& base_;
  std::unique_ptr<NewerTorch> out_ = std::make_unique<NewerTorch>();
};

std::unique_ptr<NewerTorch> read_newer_torch(const Context& context,
                                             const std::vector<HeardPage>& pages,
                                             const std::vector<formats::Requirement>& requirements,
                                             host::Interrupts& interrupts) {
  const auto known = formats::parse_python_version(context.knowledge.newest_torch().text());
  if (!known) return nullptr;
  const std::optional<Release> release = newest_release(pages, requirements, *known);
  if (!release) return nullptr;
  NewerTorchReader rows(context.knowledge);
  std::string default_tag, triton;
  size_t count = 0, asked = 0;
  // The index's own first, then the newest CUDA.
  std::vector<const Variant*> order;
  for (const auto& [local, variant] : release->variants)
    order.insert(local.empty() ? order.begin() : order.end(), &variant);
  std::reverse(order.begin() + (release->variants.count("") > 0 ? 1 : 0), order.end());
  for (const Variant* variant : order) {
    // Variants of AMD and Intel are none of ours, and a hostile page may list any number.
    const bool cuda = variant->local.empty() || starts_with(variant->local, "cu");
    if (!cuda) continue;
    if (count == k_most_wheels || asked == 2 * k_most_wheels || interrupts.caught() != 0) break;
    ++asked;
    const Result<Read> read = read_variant(*variant, interrupts);
    if (!read) {
      context.output.print_error(read.error().text());
      continue;
    }
    const std::string tag = rows.add_wheel(*release, *variant, *read);
    if (tag.empty()) {
      context.output.print_error(
          format("torch {}: its CUDA `{}` is not known to this cufit", release->text, read->cuda));
      continue;
    }
    context.output.print_error(
        format("torch {} ({}) is newer than this cufit: judged by its file on the index",
               release->text, tag));
    ++count;
    if (variant->local.empty()) default_tag = tag;
    if (triton.empty()) triton = read->triton;
  }
  if (count == 0) return nullptr;
  rows.add_release(*release, default_tag, triton);
  return rows.done();
}

}  // namespace cufit::commands
