// SPDX-License-Identifier: Apache-2.0
#include "formats/model/safetensors.h"

#include <algorithm>

#include "base/format.h"
#include "base/json.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr uint64_t k_most_header = 100'000'000;  // the format's own bound
constexpr size_t k_most_tensors = 1'000'000, k_most_dimensions = 64, k_most_metadata = 1024;
constexpr size_t k_longest_tensor_name = 1024, k_safetensors_longest_text = 4096;
constexpr uint64_t k_safetensors_most_bytes = uint64_t{1} << 56;
constexpr std::string_view k_lfs = "version https://git-lfs";

struct Bits {
  std::string_view dtype;
  uint32_t bits;
};

// Names of the safetensors format, version 0.8.
constexpr Bits k_bits[] = {
    {"F64", 64},        {"I64", 64},    {"U64", 64},    {"C64", 64},    {"F32", 32},
    {"I32", 32},        {"U32", 32},    {"F16", 16},    {"BF16", 16},   {"I16", 16},
    {"U16", 16},        {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I8", 8},      {"U8", 8},      {"BOOL", 8},    {"F6_E2M3", 6},
    {"F6_E3M2", 6},     {"F4", 4},
};

// Takes the header as it is parsed: a tree of 100 MB of JSON would be some gigabytes.
class Header : public JsonEvents {
 public:
  Safetensors out;
  std::string wrong;  // why the parser was stopped
  size_t byte = 0;    // of the header, where the text is no JSON

  bool start_object() override {
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && list_ == 0)) return true;
    return stop("an object where a tensor's field should be");
  }
  bool end_object() override {
    if (depth_-- == 2 && !in_metadata_) return tensor();
    return true;
  }
  bool start_array() override {
    ++list_;
    const bool field = depth_ == 2 && !in_metadata_ && list_ == 1;
    if (field && (key_ == "shape" || key_ == "data_offsets")) {
      (key_ == "shape" ? has_shape_ : has_offsets_) = true;
      return true;
    }
    return stop("a list where none should be");
  }
  bool end_array() override {
    --list_;
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      in_metadata_ = text == "__metadata__";
      if (text.size() > k_longest_tensor_name) return stop("a name of more than 1024 bytes");
      if (!in_metadata_ && out.tensors.size() >= k_most_tensors) return stop("too many tensors");
      now_ = {};
      now_.name = std::move(text);
      begin_ = end_ = 0;
      offsets_ = 0;
      has_shape_ = has_offsets_ = false;
      return true;
    }
    key_ = std::move(text);
    return true;
  }
  bool text(std::string& value) override {
    if (depth_ == 2 && list_ == 0 && in_metadata_) {
      if (out.metadata.size() < k_most_metadata)
        out.metadata.emplace_back(printable(key_, k_longest_tensor_name),
                                  printable(value, k_safetensors_longest_text));
      return true;
    }
    if (depth_ != 2 || list_ != 0 || key_ != "dtype") return stop("a text where none should be");
    now_.dtype = printable(value, 32);
    return true;
  }
  bool natural(uint64_t value) override {
    if (list_ != 1) return stop("a number where none should be");
    if (key_ == "shape") {
      if (now_.shape.size() >= k_most_dimensions) return stop("too many dimensions");
      now_.shape.push_back(value);
      return true;
    }
    (offsets_++ == 0 ? begin_ : end_) = value;
    return offsets_ <= 2 || stop("more than two offsets");
  }
  bool integer(int64_t) override { return stop("a negative number"); }
  bool number(double) override { return stop("a fraction"); }
  bool null() override { return stop("null"); }
  bool boolean(bool) override { return stop("a truth value"); }
  void damaged(size_t at) override { byte = at; }
  uint64_t end() const { return last_; }
  bool is_object() const { return depth_ == 0; }

 private:
  bool stop(std::string why) {
    wrong = std::move(why);
    if (!now_.name.empty()) wrong += " (`" + printable(now_.name, 128) + "`)";
    return false;
  }
  bool tensor() {
    const std::optional<uint32_t> bits = dtype_bits(now_.dtype);
    if (!has_shape_ || offsets_ != 2 || now_.dtype.empty())
      return stop("a tensor without dtype, shape or offsets");
    if (!bits) return stop("the unknown type " + now_.dtype);
    if (end_ < begin_ || end_ > k_safetensors_most_bytes) return stop("offsets that lead nowhere");
    now_.elements = 1;
    for (const uint64_t size : now_.shape) {
      if (size != 0 && now_.elements > k_safetensors_most_bytes / size)
        return stop("a shape beyond any file");
      now_.elements *= size;
    }
    now_.bytes = end_ - begin_;
    if ((now_.elements * *bits + 7) / 8 != now_.bytes)
      return stop("a shape that its offsets contradict");
    last_ = std::max(last_, end_);
    now_.name = printable(now_.name, k_longest_tensor_name);
    out.tensors.push_back(std::move(now_));
    now_ = {};
    return true;
  }

  int depth_ = 0, list_ = 0;
  bool in_metadata_ = false, has_shape_ = false, has_offsets_ = false;
  std::string key_;
  Tensor now_;
  uint64_t begin_ = 0, end_ = 0, last_ = 0;
  int offsets_ = 0;
};

}  // namespace

std::optional<uint32_t> dtype_bits(std::string_view dtype) {
  for (const Bits& row : k_bits)
    if (row.dtype == dtype) return row.bits;
  return std::nullopt;
}

Result<Safetensors> read_safetensors(const ByteSource& source) {
  CUFIT_TRY(start, source.read_exact(0, std::min<uint64_t>(source.size_bytes(), k_lfs.size())));
  if (start == k_lfs)
    return fail(Code::unsupported, format("{}: a git-lfs pointer; the weights themselves were not "
                                          "fetched (`git lfs pull`)",
                                          source.name()));
  if (start.size() < 8)
    return fail(Code::malformed,
                format("{}: {} bytes are no safetensors file", source.name(), source.size_bytes()));
  const auto length = load_le<uint64_t>(start.data());
  if (length > k_most_header || length > source.size_bytes() - 8)
    return fail(Code::malformed,
                format("{}: byte 0: a header of {} bytes; not a safetensors file, or cut off",
                       source.name(), length));
  CUFIT_TRY(text, source.read_exact(8, length, k_most_header));
  Header header;
  if (!read_json(text, header) || !header.is_object()) {
    if (!header.wrong.empty())
      return fail(Code::malformed, format("{}: the header has {}", source.name(), header.wrong));
    return fail(Code::malformed,
                format("{}: byte {}: the header is no JSON", source.name(), 8 + header.byte));
  }
  const uint64_t there = source.size_bytes() - 8 - length;
  if (header.end() > there) header.out.missing_bytes = header.end() - there;
  return std::move(header.out);
}

Result<std::vector<std::string>> parse_safetensors_index(std::string_view text,
                                                         const std::string& name) {
  const Json root = Json::parse(text).value_or(Json());
  const auto map = root.is_object() ? root.find("weight_map") : root.end();
  if (!root.is_object() || map == root.end() || !map->is_object())
    return fail(Code::malformed, format("{}: no `weight_map`", name));
  std::vector<std::string> files;
  for (const Json& file : *map) {
    const std::string value = file.is_string() ? file.text() : std::string();
    if (value.empty() || value.size() > k_longest_tensor_name || value != printable(value) ||
        contains(value, "/") || value == "..")
      return fail(Code::malformed, format("{}: `weight_map` names no file of the folder", name));
    files.push_back(value);
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

}  // namespace cufit::formats
