// SPDX-License-Identifier: Apache-2.0
#include "host/image/image_layer.h"

#include <algorithm>
#include <new>
#include <set>

#include "base/format.h"
#include "base/path.h"
#include "formats/archive/compressed_input.h"
#include "formats/binary/elf.h"
#include "formats/binary/elf_symbols.h"
#include "formats/prose/printable.h"
#include "formats/python/python_metadata.h"
#include "host/image/image_sources.h"
#include "host/image/setup_names.h"

namespace cufit::host {
namespace {

using formats::TarEntry;
using formats::TarType;

constexpr uint64_t k_whole_library = 256u << 10;  // smaller ones are kept whole
constexpr size_t k_believed = 32u << 20;  // bytes that have come, from which on a size is believed
constexpr uint64_t k_table_without_section = 1u << 20;  // its size is not told; small libraries
constexpr size_t k_most_parts = 200, k_longest_path = 16384;

// "/usr/lib/x" of "./usr/lib//x"; empty for what leaves the image or is absurd.
std::string image_path(std::string_view path) {
  if (path.size() > k_longest_path) return {};
  std::string out;
  size_t parts = 0;
  for (const std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." || ++parts > k_most_parts) return {};
    out += "/";
    out += part;
  }
  return out.empty() ? "/" : out;
}

// What the probes read as text (host/python/python_prefix, distributions, python_envs, loader,
// system, toolkits).
bool is_wanted_text(const std::string& path) {
  static const std::set<std::string_view> k_names = {
      "METADATA",    "PKG-INFO",         "RECORD",       "WHEEL",
      "INSTALLER",   "version.py",       "pyvenv.cfg",   "os-release",
      "ld.so.cache", "patchlevel.h",     "version.json", "version.txt",
      "cuda.h",      "nv_tegra_release", "history",      "direct_url.json"};
  const std::string_view name = file_name(path);
  if (k_names.count(name) != 0) return true;
  if (ends_with(path, "/torch/__init__.py") || ends_with(path, "/torch/cuda/__init__.py"))
    return true;
  if (contains(path, "/conda-meta/")) return ends_with(name, ".json");
  if (is_setup_text(path)) return true;
  return ends_with(name, ".egg-info") || ends_with(name, ".pth") ||
         (starts_with(path, "/etc/ld.so.conf")) || name == ".python-version" ||
         (contains(path, "/.pyenv/") && name == "version");
}

class LayerReader {
 public:
  LayerReader(std::shared_ptr<const ByteSource> source, bool again, const LayerProgress& progress,
              std::vector<std::string>& problems, uint64_t& held, const LayerLimits& limits)
      : source_(std::move(source)),
        again_(again),
        progress_(progress),
        problems_(problems),
        limits_(limits),
        kept_(held) {}

  Result<facts::ImageLayer> read() {
    layer_.name = source_->name();
    layer_.stored_bytes = source_->size_bytes();
    formats::ExpandLimits expand;
    expand.total_bytes = limits_.expanded_bytes;
    expand.ratio = 20'000;  // layers hold files of zeros; the total is what bounds them
    const auto counted = std::make_shared<CountedSource>(source_);
    CUFIT_TRY(input, formats::CompressedInput::open(counted, expand));
    layer_.plain = input.compression() == formats::Compression::none;
    plain_ = layer_.plain && again_;
    SourceStream direct(source_);
    const auto jump = [&direct](uint64_t size) { return direct.jump(size); };
    formats::TarReader tar =
        plain_ ? formats::TarReader(direct, {}, jump) : formats::TarReader(input, {});
    while (true) {
      CUFIT_TRY(entry, tar.next());
      if (!entry) break;
      CUFIT_TRY(added, add(*entry, tar));
      (void)added;
      if (progress_) progress_(plain_ ? tar.position() : counted->done());
    }
    if (tar.position() == 0)  // an empty layer is two blocks of zeros
      return fail(Code::malformed, format("{}: holds no bytes: no layer", layer_.name));
    layer_.expanded_bytes = tar.position();
    if (plain_) {
      CUFIT_TRY(sum, sum_of_plain());
      layer_.sha256 = std::move(sum);
    } else {
      CUFIT_TRY(drained, drain(input));
      (void)drained;
      if (progress_) progress_(counted->done());
      layer_.sha256 = counted->sha256();
    }
    return std::move(layer_);
  }

 private:
  // Checksums stand behind the end of the tar archive.
  static Result<bool> drain(formats::CompressedInput& input) {
    std::vector<std::byte> piece(64u << 10);
    while (true) {
      CUFIT_TRY(got, input.read(piece));
      if (got == 0) return true;
    }
  }

  // Most bytes of a plain layer are never read; those of a small one are, for its digest alone.
  Result<std::string> sum_of_plain() const {
    if (source_->size_bytes() > k_most_hashed) return std::string();
    const CountedSource counted(source_);
    std::vector<std::byte> piece(256u << 10);
    while (counted.done() < counted.size_bytes()) {
      CUFIT_TRY(got, counted.read(counted.done(), piece));
      if (got == 0) break;  // shorter than it said: no digest
    }
    return counted.sha256();
  }

  Result<bool> add(const TarEntry& entry, formats::TarReader& tar) {
    facts::LayerFile file;
    file.path = image_path(entry.path);
    if (file.path.empty()) {
      complain(format("{}: a file with an impossible path is left out: `{}`", layer_.name,
                      formats::printable(entry.path, 200)));
      return true;
    }
    file.type = entry.type;
    file.link = entry.type == TarType::hardlink ? image_path(entry.link) : entry.link;
    file.size_bytes = entry.size_bytes;
    file.mode = entry.mode;
    file.device_major = entry.device_major;
    file.device_minor = entry.device_minor;
    if (entry.type == TarType::file) {
      CUFIT_TRY(kept, content_of(file, entry, tar));
      file.content = std::move(kept);
    }
    layer_.files.push_back(std::move(file));
    return true;
  }

  using Content = std::shared_ptr<const ByteSource>;

  Result<Content> content_of(const facts::LayerFile& file, const TarEntry& entry,
                             formats::TarReader& tar) {
    if (plain_)
      return Content(
          std::make_shared<RangeSource>(file.path, source_, entry.offset, entry.size_bytes));
    const bool library = formats::is_shared_object_name(file.path);
    const bool text = !library && is_wanted_text(file.path);
    if (!library && !text) return Content();
    if ((text && entry.size_bytes > limits_.text_bytes) || !fits(entry.size_bytes)) {
      not_read(file);
      return Content();
    }
    std::string bytes;
    try {
      CUFIT_TRY(all, whole(entry.size_bytes, tar));
      bytes = std::move(all);
    } catch (const std::bad_alloc&) {  // under `ulimit -v`; the tar reader skips what is left
      not_read(file);
      return Content();
    }
    const bool small = bytes.size() <= k_whole_library;
    // Names of libraries whose texts are searched as a whole (host/machine/system_libraries.cc).
    const bool searched = starts_with(file_name(file.path), "libc.so.6") ||
                          starts_with(file_name(file.path), "libc-2.") ||
                          starts_with(file_name(file.path), "libstdc++.so");
    if (text || small || (searched && bytes.size() < limits_.text_bytes)) {
      kept_ += bytes.size();
      return Content(std::make_shared<MemorySource>(file.path, std::move(bytes)));
    }
    return pages_of(file, std::move(bytes));
  }

  bool fits(uint64_t size) const {
    return kept_ <= limits_.held_bytes && size <= limits_.held_bytes - kept_;
  }

  void not_read(const facts::LayerFile& file) {
    complain(format("{}: `{}` ({}) is not read: it is over what is kept of compressed layers",
                    layer_.name, formats::printable(file.path, 200),
                    format_bytes(file.size_bytes)));
  }

  // Grows with what really comes, whatever the header says.
  Result<std::string> whole(uint64_t size, formats::TarReader& tar) const {
    std::string out;
    while (out.size() < size) {
      const size_t had = out.size();
      // Doubling would take twice the room of a large library; a claim alone takes none.
      if (had >= k_believed) out.reserve(static_cast<size_t>(size));
      const size_t step = static_cast<size_t>(
          std::min<uint64_t>(size - had, std::max<size_t>(had, size_t{1} << 20)));
      out.resize(had + step);
      size_t done = 0;
      while (done < step) {
        CUFIT_TRY(
            got, tar.read(std::as_writable_bytes(std::span(out.data() + had + done, step - done))));
        if (got == 0)
          return fail(Code::malformed,
                      format("{}: the archive ends before its contents do", layer_.name));
        done += got;
      }
    }
    return Result<std::string>(std::move(out));
  }

  // Reads the library as the probes will and keeps what they read.
  Result<Content> pages_of(const facts::LayerFile& file, std::string bytes) {
    const std::string& path = file.path;
    const uint64_t size = bytes.size();
    auto noted = std::make_shared<NotedSource>(path, std::move(bytes));
    noted->note(0, k_page);
    if (!formats::is_elf(*noted)) return Content(noted->kept(kept_));
    const bool of_nvidia = contains(path, "/nvidia/") || contains(path, "/targets/");
    formats::ElfOptions options;
    options.device_code = !of_nvidia;
    options.abi = options.symbols = !of_nvidia;
    (void)formats::read_elf(*noted, options);  // what is wrong with it is said when it is needed
    std::vector<formats::Damage> damage;
    const Result<formats::ElfImage> image = formats::ElfImage::open(*noted, damage);
    if (image && !of_nvidia) note_symbols(*image, *noted);
    if (!fits(size + noted->noted_bytes())) {  // both are in memory while the pages are copied
      not_read(file);
      return Content();
    }
    return Content(noted->kept(kept_));
  }

  // What a look-up of any symbol reads. Tools that change a RUNPATH move single tables to the end
  // of the file, so each is kept for itself.
  static void note_symbols(const formats::ElfImage& image, NotedSource& noted) {
    if (const std::optional<formats::FileRange> strings = image.string_table())
      noted.note(strings->offset, strings->size);
    const std::pair<const char*, uint64_t> tables[] = {{".dynsym", formats::k_tag_symtab},
                                                       {".gnu.hash", formats::k_tag_gnu_hash},
                                                       {".hash", formats::k_tag_hash}};
    for (const auto& [name, tag] : tables) {
      if (const formats::Section* section = image.find_section(name)) {
        noted.note(section->offset, section->size);
        continue;
      }
      const std::optional<uint64_t> address = image.dynamic_value(tag);
      const auto range = address ? image.find_address(*address) : std::nullopt;
      if (range) noted.note(range->offset, std::min(range->size, k_table_without_section));
    }
  }

  void complain(std::string what) {
    if (problems_.size() < 64) problems_.push_back(std::move(what));
  }

  std::shared_ptr<const ByteSource> source_;
  bool again_, plain_ = false;
  const LayerProgress& progress_;
  std::vector<std::string>& problems_;
  const LayerLimits& limits_;
  uint64_t& kept_;
  facts::ImageLayer layer_;
};

}  // namespace

Result<facts::ImageLayer> read_layer(std::shared_ptr<const ByteSource> source, bool again,
                                     const LayerProgress& progress,
                                     std::vector<std::string>& problems, uint64_t& held,
                                     const LayerLimits& limits) {
  return LayerReader(std::move(source), again, progress, problems, held, limits).read();
}

}  // namespace cufit::host
