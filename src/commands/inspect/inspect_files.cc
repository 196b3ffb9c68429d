// SPDX-License-Identifier: Apache-2.0
#include "commands/inspect/inspect_files.h"

#include <algorithm>
#include <memory>
#include <set>

#include "base/format.h"
#include "base/path.h"
#include "formats/archive/zip.h"
#include "formats/python/index_config.h"
#include "formats/python/wheel_variants.h"
#include "host/install/http.h"
#include "host/install/http_source.h"
#include "commands/inspect/remote_member.h"

namespace cufit::commands {
namespace {

constexpr int k_max_depth = 64;
constexpr uint64_t k_min_elf_bytes = 52;        // an ELF32 header
constexpr uint64_t k_most_variants = 4u << 20;  // bytes of a table of wheel variants
// A wheel's progress is shown for members that take longer than a moment.
constexpr uint64_t k_long_member_bytes = 32u << 20;

// Shared objects ("_C.so", "libnccl.so.2") and names without an extension (programs). Opening each
// of the 30 000 files of an environment would take ten times as long as everything else.
bool may_be_elf(const std::string& name) {
  return ends_with(name, ".so") || contains(name, ".so.") || !contains(name, ".");
}

void add_elf(const std::string& path, const ByteSource& source, bool always,
             report::InspectResult& result) {
  Result<formats::ElfFile> elf = formats::read_elf(source);
  if (!elf) {
    result.errors.push_back({path, elf.error().text()});
    return;
  }
  if (!always && !has_cuda_parts(*elf)) {
    ++result.skipped;
    return;
  }
  result.files.push_back({path, source.size_bytes(), std::move(*elf), {}});
}

void add_variants(const std::string& path, const std::string& text, report::InspectResult& result) {
  Result<formats::WheelVariants> read = formats::parse_wheel_variants(text, "`" + path + "`");
  if (!read) {
    result.errors.push_back({path, read.error().text()});
    return;
  }
  for (formats::LabelledVariant& one : read->variants)
    result.variants.push_back({path, std::move(one), {}});
}

// `remote`: what is fetched counts.
void add_wheel(const std::string& path, std::shared_ptr<const ByteSource> source,
               const InspectProgress& progress, report::InspectResult& result,
               bool remote = false) {
  Result<formats::ZipFile> zip = formats::ZipFile::open(std::move(source));
  if (!zip) {
    result.errors.push_back({path, zip.error().text()});
    return;
  }
  std::vector<const formats::ZipMember*> members;
  for (const formats::ZipMember& member : zip->members())
    if (member.size_bytes >= k_min_elf_bytes && may_be_elf(std::string(file_name(member.name))))
      members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const formats::ZipMember& member : zip->members())
    if (ends_with(member.name, ".dist-info/variant.json") && member.size_bytes <= k_most_variants) {
      const Result<std::string> text = zip->read(member);
      if (text)
        add_variants(path, *text, result);
      else
        result.errors.push_back({path, text.error().text()});
    }
  for (const formats::ZipMember* member : members) {
    const std::string name = path + "!" + member->name;
    Result<std::string> start = zip->read_start(*member, 4);
    if (!start) {
      result.errors.push_back({name, start.error().text()});
      // The network is gone, or the user does not want to wait: the next member would say the same.
      const Code code = start.error().code;
      if (remote && (code == Code::io || code == Code::timeout || code == Code::cancelled)) break;
      continue;
    }
    if (*start !=
        "\x7f"
        "ELF")
      continue;
    if (remote && is_long(*member) && contains(name, "_cpu.so")) {
      ++result.skipped;  // libtorch_cpu.so: 100 MiB to learn that it has none
      continue;
    }
    if (remote && is_long(*member)) {
      Result<formats::ElfStart> read = read_member_start(*zip, *member, name);
      if (!read) {
        result.errors.push_back({name, read.error().text()});
      } else {
        // What it needs is not read from a start, even where that is all of it.
        const uint64_t seen = read->seen_bytes;
        result.files.push_back({name, member->size_bytes, std::move(read->file), {}});
        result.files.back().seen_bytes = seen;
      }
      continue;
    }
    formats::ZipProgress step;
    if (progress && member->size_bytes >= k_long_member_bytes) {
      step = [&](uint64_t done, uint64_t total) {
        progress(std::string(file_name(member->name)), done, total);
      };
    }
    Result<std::string> bytes = zip->read(*member, step);
    if (!bytes) {
      result.errors.push_back({name, bytes.error().text()});
      continue;
    }
    add_elf(name, MemorySource(name, std::move(*bytes)), false, result);
  }
}

void add_file(const host::Host& host, const std::string& path, bool always,
              const InspectProgress& progress, report::InspectResult& result) {
  Result<std::unique_ptr<ByteSource>> opened = host.open(path);
  if (!opened) {
    result.errors.push_back({path, opened.error().text()});
    return;
  }
  std::shared_ptr<const ByteSource> source = std::move(*opened);
  char magic[4] = {};
  Result<size_t> got = source->read(0, std::as_writable_bytes(std::span(magic)));
  if (!got) {
    result.errors.push_back({path, got.error().text()});
  } else if (*got == 4 && std::string_view(magic, 4) ==
                              "\x7f"
                              "ELF") {
    add_elf(path, *source, always, result);
  } else if (always && *got == 4 && magic[0] == 'P' && magic[1] == 'K') {
    add_wheel(path, std::move(source), progress, result);
  } else if (always) {
    result.errors.push_back({path, format("`{}` is neither an ELF file nor a wheel", path)});
  }
}

class Walk {
 public:
  Walk(const host::Host& host, const InspectProgress& progress, report::InspectResult& result)
      : host_(host), progress_(progress), result_(result) {}

  void directory(const std::string& path, int depth) {
    Result<std::string> real = host_.real_path(path);
    if (depth > k_max_depth || !real || !seen_.insert(*real).second) return;
    Result<std::vector<std::string>> names = host_.list(path);
    if (!names) {
      result_.errors.push_back({path, names.error().text()});
      return;
    }
    for (const std::string& name : *names) {
      const std::string child = (path == "/" ? "" : path) + "/" + name;
      Result<host::FileStatus> status = host_.status(child);
      if (!status) continue;  // a link to nowhere
      if (status->is_directory) {
        directory(child, depth + 1);
      } else if (status->is_regular && status->size_bytes >= k_min_elf_bytes && may_be_elf(name)) {
        Result<std::string> target = host_.real_path(child);
        if (target && seen_.insert(*target).second)
          add_file(host_, child, false, progress_, result_);
      }
    }
  }

 private:
  const host::Host& host_;
  const InspectProgress& progress_;
  report::InspectResult& result_;
  std::set<std::string> seen_;
};

}  // namespace

int inspect_url(const std::string& url, const InspectProgress& progress,
                report::InspectResult& result) {
  host::Interrupts interrupts;
  const std::string shown = formats::without_credentials(url);
  if (ends_with(url, "-variants.json")) {
    host::HttpRequest request;
    request.url = url;
    request.most_bytes = k_most_variants;
    const Result<host::HttpAnswer> answer = host::http_get(request, interrupts);
    if (!answer)
      result.errors.push_back({shown, answer.error().text()});
    else if (answer->status != 200)
      result.errors.push_back({shown, format("`{}` answers HTTP {}", shown, answer->status)});
    else
      add_variants(shown, answer->body, result);
    return interrupts.caught();
  }
  Result<std::unique_ptr<ByteSource>> source = host::open_http_source(url, interrupts);
  if (!source) {
    result.errors.push_back({shown, source.error().text()});
    return interrupts.caught();
  }
  add_wheel(shown, std::move(*source), progress, result, true);
  return interrupts.caught();
}

bool has_cuda_parts(const formats::ElfFile& elf) {
  if (elf.has_fatbin || elf.machine == 190) return true;  // EM_CUDA
  static const char* const k_prefixes[] = {
      "libcuda",       "libcublas",     "libcudnn",    "libnccl",     "libnvrtc",  "libcufft",
      "libcufile",     "libcurand",     "libcusolver", "libcusparse", "libcupti",  "libnvJitLink",
      "libnvshmem",    "libnvToolsExt", "libnvidia",   "libnpp",      "libnvjpeg", "libnvinfer",
      "libtorch_cuda", "libc10_cuda",   "libcutensor"};
  auto is_cuda = [](const std::string& name) {
    return std::any_of(std::begin(k_prefixes), std::end(k_prefixes),
                       [&](const char* prefix) { return starts_with(name, prefix); });
  };
  return is_cuda(elf.soname) || std::any_of(elf.needed.begin(), elf.needed.end(), is_cuda);
}

void inspect_path(const host::Host& host, const std::string& given, const InspectProgress& progress,
                  report::InspectResult& result) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  Result<host::FileStatus> status = host.status(path);
  if (!status) {
    result.errors.push_back({given, status.error().text()});
  } else if (status->is_directory) {
    Walk(host, progress, result).directory(path, 0);
  } else if (status->is_regular && ends_with(path, "variants.json")) {
    const Result<std::string> text = host.read_file(path, k_most_variants);
    if (text)
      add_variants(path, *text, result);
    else
      result.errors.push_back({given, text.error().text()});
  } else if (status->is_regular) {
    add_file(host, path, true, progress, result);
  } else {
    result.errors.push_back({given, format("`{}` is no regular file", given)});
  }
}

}  // namespace cufit::commands
