// SPDX-License-Identifier: Apache-2.0
#include "formats/archive/zip.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/format.h"
#include "formats/archive/zip_library.h"

namespace cufit::formats {
namespace {

constexpr size_t k_end_record = 22, k_end64_record = 56,
                 k_end64_locator = 20;  // APPNOTE 4.3.14 to 4.3.16
constexpr uint64_t k_max_comment = 0xffff;
constexpr size_t k_read_bytes = 1u << 20;

// State of the libzip source: reads of the archive go through the ByteSource.
struct Input {
  std::shared_ptr<const ByteSource> source;
  uint64_t position = 0;
  mutable std::optional<Error> problem;  // of the source: says more than libzip's "Read error"
  zip_error_t error;
  Input() { zip().error_init(&error); }
  ~Input() { zip().error_fini(&error); }
};

zip_int64_t seek_input(Input& input, void* data, zip_uint64_t length) {
  zip_int64_t position = zip().source_seek_compute_offset(
      input.position, input.source->size_bytes(), data, length, &input.error);
  if (position < 0) return -1;
  input.position = static_cast<uint64_t>(position);
  return 0;
}

zip_int64_t serve(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  Input& input = *static_cast<Input*>(state);
  switch (command) {
    case ZIP_SOURCE_SUPPORTS:
      return ZIP_SOURCE_SUPPORTS_SEEKABLE;
    case ZIP_SOURCE_OPEN:
      input.position = 0;
      return 0;
    case ZIP_SOURCE_READ: {
      Result<size_t> got =
          input.source->read(input.position, {static_cast<std::byte*>(data), length});
      if (!got) {
        input.problem = got.error();
        zip().error_set(&input.error, ZIP_ER_READ, 0);
        return -1;
      }
      input.position += *got;
      return static_cast<zip_int64_t>(*got);
    }
    case ZIP_SOURCE_SEEK:
      return seek_input(input, data, length);
    case ZIP_SOURCE_TELL:
      return static_cast<zip_int64_t>(input.position);
    case ZIP_SOURCE_STAT: {
      if (length <
          sizeof(zip_stat_t)) {  // ZIP_SOURCE_GET_ARGS would call libzip by its linked name
        zip().error_set(&input.error, ZIP_ER_INVAL, 0);
        return -1;
      }
      zip_stat_t* stat = static_cast<zip_stat_t*>(data);
      zip().stat_init(stat);
      stat->valid = ZIP_STAT_SIZE;
      stat->size = input.source->size_bytes();
      return sizeof(zip_stat_t);
    }
    case ZIP_SOURCE_ERROR:
      return zip().error_to_data(&input.error, data, length);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE:
      return 0;
    default:
      zip().error_set(&input.error, ZIP_ER_OPNOTSUPP, 0);
      return -1;
  }
}

// Number of members by the end record, before libzip allocates for each of them.
Result<uint64_t> count_members(const ByteSource& source) {
  const uint64_t size = source.size_bytes();
  const uint64_t tail = std::min<uint64_t>(size, k_end_record + k_max_comment + k_end64_locator);
  CUFIT_TRY(end, source.read_exact(size - tail, tail));
  size_t at = end.rfind("PK\x05\x06");
  if (at == std::string::npos || end.size() - at < k_end_record) {
    return fail(Code::malformed, format("`{}`: no zip directory at the end of its {} bytes; the "
                                        "file is cut off or no zip archive",
                                        source.name(), size));
  }
  uint64_t count = load_le<uint16_t>(end.data() + at + 10);
  if (count != 0xffff || at < k_end64_locator) return count;
  const char* locator = end.data() + at - k_end64_locator;
  if (std::memcmp(locator, "PK\x06\x07", 4) != 0) return count;
  uint64_t end64 = load_le<uint64_t>(locator + 8);
  CUFIT_TRY(record, source.read_exact(end64, k_end64_record));
  if (std::memcmp(record.data(), "PK\x06\x06", 4) != 0)
    return fail(Code::malformed,
                format("`{}`: broken zip64 directory record at byte {}", source.name(), end64));
  return load_le<uint64_t>(record.data() + 32);
}

struct CloseMember {
  void operator()(zip_file_t* file) const { zip().fclose(file); }
};
using OpenMember = std::unique_ptr<zip_file_t, CloseMember>;

}  // namespace

struct ZipFile::State {
  Input input;
  ZipLimits limits;
  zip_t* archive = nullptr;
  std::vector<ZipMember> members;
  ~State() {
    if (archive) zip().discard(archive);
  }

  Error error_at(const ZipMember& member, const std::string& what, uint64_t position) const {
    if (input.problem) return Error(*input.problem).in(format("member `{}`", member.name));
    return fail(Code::malformed,
                format("`{}`: member `{}`: {} (after {} of {} bytes)", input.source->name(),
                       member.name, what, position, member.size_bytes));
  }

  Result<OpenMember> open(const ZipMember& member) const {
    if (member.encrypted) {
      return fail(Code::unsupported,
                  format("`{}`: member `{}` is encrypted", input.source->name(), member.name));
    }
    input.problem.reset();  // of another member
    OpenMember file(zip().fopen_index(archive, member.index, 0));
    if (!file) return error_at(member, zip().error_strerror(zip().get_error(archive)), 0);
    return file;
  }
};

ZipFile::ZipFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ZipFile::ZipFile(ZipFile&&) noexcept = default;
ZipFile& ZipFile::operator=(ZipFile&&) noexcept = default;
ZipFile::~ZipFile() = default;
const std::vector<ZipMember>& ZipFile::members() const { return state_->members; }

Result<ZipFile> ZipFile::open(std::shared_ptr<const ByteSource> source, const ZipLimits& limits) {
  const std::string name = source->name();
  auto library = zip_library();
  if (!library) return Error(library.error()).in(format("`{}`", name));
  CUFIT_TRY(count, count_members(*source));
  if (count > limits.members) {
    return fail(Code::unsupported, format("`{}`: a zip archive of {} members; at most {} are read",
                                          name, count, limits.members));
  }
  auto state = std::make_unique<State>();
  state->input.source = std::move(source);
  state->limits = limits;
  zip_error_t error;
  zip().error_init(&error);
  zip_source_t* input = zip().source_function_create(serve, &state->input, &error);
  if (input) state->archive = zip().open_from_source(input, ZIP_RDONLY, &error);
  if (!state->archive) {
    if (input) zip().source_free(input);
    if (state->input.problem) {
      zip().error_fini(&error);
      return *state->input.problem;
    }
    Error out = fail(Code::malformed,
                     format("`{}`: {} (in the directory at the end of its {} bytes)", name,
                            zip().error_strerror(&error), state->input.source->size_bytes()));
    zip().error_fini(&error);
    return out;
  }
  zip().error_fini(&error);
  uint64_t compressed = 0;
  const zip_int64_t entries = zip().get_num_entries(state->archive, 0);
  for (zip_int64_t i = 0; i < entries && static_cast<uint64_t>(i) < limits.members; ++i) {
    zip_stat_t stat;
    zip().stat_init(&stat);
    if (zip().stat_index(state->archive, static_cast<zip_uint64_t>(i), ZIP_FL_ENC_RAW, &stat) != 0)
      continue;
    ZipMember member;
    member.name = stat.name ? stat.name : "";
    member.index = static_cast<uint64_t>(i);
    member.size_bytes = stat.size;
    member.compressed_bytes = stat.comp_size;
    member.encrypted =
        (stat.valid & ZIP_STAT_ENCRYPTION_METHOD) && stat.encryption_method != ZIP_EM_NONE;
    const uint64_t file_bytes = state->input.source->size_bytes();
    compressed += std::min(member.compressed_bytes, file_bytes + 1);
    if (compressed > file_bytes)
      return fail(Code::malformed,
                  format("`{}`: its members share their bytes: up to `{}` they claim more than the "
                         "{} bytes of the file",
                         name, member.name, file_bytes));
    state->members.push_back(std::move(member));
  }
  return ZipFile(std::move(state));
}

Result<std::string> ZipFile::read_start(const ZipMember& member, size_t size) const {
  const uint64_t limit = state_->limits.member_bytes;
  if (member.size_bytes > limit)
    return state_->error_at(member, format("over the limit of {} bytes", limit), 0);
  CUFIT_TRY(file, state_->open(member));
  std::string out(size, '\0');
  zip_int64_t got = zip().fread(file.get(), out.data(), size);
  if (got < 0)
    return state_->error_at(member, zip().error_strerror(zip().file_get_error(file.get())), 0);
  out.resize(static_cast<size_t>(got));
  return out;
}

Result<std::string> ZipFile::read(const ZipMember& member, const ZipProgress& progress) const {
  const ZipLimits& limits = state_->limits;
  if (member.size_bytes > limits.member_bytes)
    return state_->error_at(member, format("over the limit of {} bytes", limits.member_bytes), 0);
  // The compressed size is a claim as well; more than the archive it cannot be.
  const uint64_t compressed = std::min(member.compressed_bytes, state_->input.source->size_bytes());
  if (member.size_bytes > limits.ratio_from && member.size_bytes / limits.ratio > compressed) {
    return state_->error_at(member,
                            format("expands {} compressed bytes more than {} times; not read",
                                   compressed, limits.ratio),
                            0);
  }
  CUFIT_TRY(file, state_->open(member));
  std::string out;
  out.reserve(static_cast<size_t>(member.size_bytes));  // bounded by the checks above
  std::vector<char> buffer(
      static_cast<size_t>(std::clamp<uint64_t>(member.size_bytes, 1, k_read_bytes)));
  while (true) {
    zip_int64_t got = zip().fread(file.get(), buffer.data(), buffer.size());
    if (got < 0)
      return state_->error_at(member, zip().error_strerror(zip().file_get_error(file.get())),
                              out.size());
    if (got == 0) break;
    out.append(buffer.data(), static_cast<size_t>(got));
    if (out.size() > member.size_bytes)
      return state_->error_at(member, "longer than its directory says", out.size());
    if (progress) progress(out.size(), member.size_bytes);
  }
  if (out.size() != member.size_bytes) return state_->error_at(member, "ends early", out.size());
  return out;
}

}  // namespace cufit::formats
