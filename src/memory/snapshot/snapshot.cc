// SPDX-License-Identifier: Apache-2.0
#include "memory/snapshot/snapshot.h"

#include <algorithm>
#include <cstring>

#include "base/format.h"
#include "formats/pickle/pickle.h"
#include "formats/pickle/pickle_blocks.h"
#include "memory/snapshot/snapshot_builder.h"

namespace cufit::memory {
namespace {

struct Sign {
  std::string_view bytes;
  const char* what;
};

const char* sign_of(std::span<const std::byte> start, std::span<const Sign> signs) {
  for (const Sign& sign : signs)
    if (start.size() >= sign.bytes.size() &&
        std::memcmp(start.data(), sign.bytes.data(), sign.bytes.size()) == 0)
      return sign.what;
  return nullptr;
}

// Files that people hand in instead, told by their first bytes: a pickle would only fail later and
// with words about opcodes.
const char* another_file(std::span<const std::byte> start) {
  static constexpr Sign k_signs[] = {
      {"PK\x03\x04", "a zip archive (torch.save writes such)"},
      {"<!DOCTYPE",
       "an HTML page; the page of _memory_viz.py is made from the snapshot wanted here"},
      {"<html", "an HTML page; the page of _memory_viz.py is made from the snapshot wanted here"},
      {"\x7f"
       "ELF",
       "an ELF file"},
      {"BZh", "a bzip2 file (gzip and zstd are read)"},
      {"\xfd"
       "7zXZ",
       "an xz file (gzip and zstd are read)"},
      {"\x89PNG", "an image (PNG)"},
      {"\xff\xd8\xff", "an image (JPEG)"},
      {"%PDF", "a PDF file"},
      {"{", "JSON or another text"},
      {"[", "JSON or another text"},
  };
  if (const char* what = sign_of(start, k_signs)) return what;
  // Only a pickle of protocol 0 is text, and a dict or list in one begins with a bracket.
  const bool text = std::all_of(start.begin(), start.end(), [](std::byte b) {
    const auto c = static_cast<unsigned char>(b);
    return (c >= 0x20 && c < 0x7f) || c == '\n' || c == '\r' || c == '\t';
  });
  return text && start.size() >= 4 && start[0] != std::byte{'('} ? "a text" : nullptr;
}

// The same of what a compressed file holds. Damage is told later, at its byte.
Result<const char*> another_file_inside(std::shared_ptr<const ByteSource> source,
                                        const formats::ExpandLimits& limits) {
  static constexpr Sign k_compressed[] = {
      {"\x1f\x8b", "a gzip file inside another compressed file"},
      {"\x28\xb5\x2f\xfd", "a zstd file inside another compressed file"},
  };
  CUFIT_TRY(input, formats::CompressedInput::open(std::move(source), limits));
  std::byte bytes[16];
  const Result<size_t> got = input.read(bytes);
  if (!got) return nullptr;
  const std::span<const std::byte> start(bytes, *got);
  const char* const what = sign_of(start, k_compressed);
  return what != nullptr ? what : another_file(start);
}

// After STOP a compressed file has its checksum to come; a little more is read so that the library
// compares it. What follows a pickle is nobody's business otherwise.
Result<bool> check_end(formats::PickleBlocks& input) {
  for (int i = 0; i < 2; ++i) {
    CUFIT_TRY(block, input.next());
    if (block == nullptr) break;
  }
  return true;
}

}  // namespace

Result<Snapshot> read_snapshot(std::shared_ptr<const ByteSource> source,
                               const SnapshotLimits& limits) {
  std::byte start[16];
  CUFIT_TRY(got, source->read(0, start));
  if (got == 0) return fail(Code::malformed, format("{}: the file is empty", source->name()));
  const auto no_snapshot = [&](const char* found) {
    return fail(
        Code::malformed,
        format("{}: no PyTorch memory snapshot: expected a pickle, found {}; an error text is "
               "for `cufit explain`",
               source->name(), found));
  };
  if (const char* another = another_file({start, got})) return no_snapshot(another);
  CUFIT_TRY(input, formats::CompressedInput::open(source, limits.expand));
  const bool compressed = input.compression() != formats::Compression::none;
  if (compressed) {
    CUFIT_TRY(inside, another_file_inside(source, limits.expand));
    if (inside != nullptr) return no_snapshot(inside);
  }
  formats::PickleBlocks blocks(input, formats::pickle_threads(source->size_bytes(), compressed));
  SnapshotBuilder builder(limits);
  CUFIT_TRY(pickle, formats::read_pickle(blocks, builder.texts(), builder));
  if (compressed) {
    CUFIT_TRY(ended, check_end(blocks));
    (void)ended;
  }
  Result<Snapshot> snapshot = builder.finish(pickle.value);
  if (!snapshot) {
    return fail(snapshot.error().code, format("{}: {}", source->name(), snapshot.error().what));
  }
  snapshot->pickle_protocol = pickle.protocol;
  snapshot->compression = input.compression();
  snapshot->size_bytes = pickle.size_bytes;
  return snapshot;
}

}  // namespace cufit::memory
