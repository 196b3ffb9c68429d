// SPDX-License-Identifier: Apache-2.0
#include "formats/model/gguf.h"

#include <algorithm>

#include "base/format.h"
#include "formats/prose/printable.h"

namespace cufit::formats {
namespace {

constexpr uint64_t k_gguf_most_entries = 65536, k_gguf_most_tensors = 1'000'000;
constexpr uint64_t k_gguf_most_header = uint64_t{1} << 30;  // tokenizers of some 100 MB were seen
constexpr uint64_t k_gguf_most_list = uint64_t{1} << 26, k_gguf_kept_numbers = 4096;
constexpr uint64_t k_gguf_longest_key = 65535, k_gguf_longest_name = 1024;
constexpr uint64_t k_gguf_kept_in_all = uint64_t{1} << 20;  // of all lists together
constexpr uint64_t k_gguf_kept_text = 4096;
constexpr uint64_t k_gguf_most_bytes = uint64_t{1} << 56;
constexpr size_t k_gguf_window = 1u << 20;
constexpr uint64_t k_gguf_default_alignment = 32;

enum GgufEntry : uint32_t {
  gguf_u8,
  gguf_i8,
  gguf_u16,
  gguf_i16,
  gguf_u32,
  gguf_i32,
  gguf_f32,
  gguf_truth,
  gguf_text,
  gguf_list,
  gguf_u64,
  gguf_i64,
  gguf_f64
};
constexpr uint32_t k_entry_bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

// Reads on through a window: headers hold hundreds of thousands of short texts.
class GgufReader {
 public:
  explicit GgufReader(const ByteSource& source) : source_(source) {}

  Result<Gguf> run() {
    if (!start() || !entries() || !tensors()) return std::move(*error_);
    return std::move(out_);
  }

 private:
  bool broken(const std::string& what, Code code = Code::malformed) {
    if (!error_) error_ = fail(code, format("{}: byte {}: {}", source_.name(), at_, what));
    return false;
  }

  // `size` bytes at at_, inside the window; null: there are not so many.
  const char* bytes(uint64_t size) {
    if (at_ + size > k_gguf_most_header) {
      (void)broken("a header of more than 1 GiB");
      return nullptr;
    }
    if (at_ < window_at_ || at_ + size > window_at_ + window_.size()) {
      const uint64_t end = source_.size_bytes();
      if (at_ > end || size > end - at_) {
        (void)broken("the file ends within its header");
        return nullptr;
      }
      const uint64_t length = std::min(end - at_, std::max<uint64_t>(size, k_gguf_window));
      Result<std::string> text = source_.read_exact(at_, length, k_gguf_most_header);
      if (!text) {
        error_ = text.error();
        return nullptr;
      }
      window_ = std::move(*text);
      window_at_ = at_;
    }
    const char* found = window_.data() + (at_ - window_at_);
    at_ += size;
    return found;
  }

  template <class T>
  bool take(T& value) {
    const char* found = bytes(sizeof value);
    if (found == nullptr) return false;
    value = load_le<T>(found);
    return true;
  }

  bool skip(uint64_t size) {
    if (size > source_.size_bytes() || at_ > source_.size_bytes() - size)
      return broken("the file ends within its header");
    at_ += size;
    return at_ <= k_gguf_most_header || broken("a header of more than 1 GiB");
  }

  bool take_text(std::string& out, uint64_t longest, uint64_t kept, const char* what) {
    uint64_t size = 0;
    if (!take(size)) return false;
    if (size > longest) return broken(format("{} of {} bytes", what, size));
    const uint64_t first = std::min(size, kept);
    const char* found = bytes(first);
    if (found == nullptr) return false;
    out = printable(std::string_view(found, first), kept);
    return skip(size - first);
  }

  bool start() {
    const char* found = bytes(4);
    if (found == nullptr) return false;
    if (!is_gguf(std::string_view(found, 4))) {
      at_ = 0;
      return broken("no GGUF file");
    }
    if (!take(out_.version)) return false;
    if (out_.version != 2 && out_.version != 3)
      return broken(format("GGUF version {}; versions 2 and 3 are read", out_.version),
                    Code::unsupported);
    if (!take(tensor_count_) || !take(entry_count_)) return false;
    if (tensor_count_ > k_gguf_most_tensors || entry_count_ > k_gguf_most_entries)
      return broken(format("{} tensors and {} entries", tensor_count_, entry_count_));
    return true;
  }

  bool scalar(uint32_t type, GgufValue& out) {
    const uint32_t size = k_entry_bytes[type];
    const char* found = bytes(size);
    if (found == nullptr) return false;
    if (type == gguf_f32 || type == gguf_f64) {
      out.kind = GgufValue::Kind::real;
      out.real = type == gguf_f32 ? load_le<float>(found) : load_le<double>(found);
      return true;
    }
    for (uint32_t i = 0; i < size; ++i)
      out.number |= uint64_t{static_cast<uint8_t>(found[i])} << (8 * i);
    const bool with_sign =
        type == gguf_i8 || type == gguf_i16 || type == gguf_i32 || type == gguf_i64;
    if (with_sign && out.number >> (8 * size - 1) != 0) out.number = 0;
    if (type == gguf_truth) {
      out.kind = GgufValue::Kind::truth;
      out.number = out.number != 0;
    }
    return true;
  }

  bool take_list(GgufValue& out) {
    uint32_t type = 0;
    if (!take(type) || !take(out.count)) return false;
    if (type > gguf_f64 || type == gguf_list)
      return broken(format("a list of elements of type {}", type));
    if (out.count > k_gguf_most_list) return broken(format("a list of {} elements", out.count));
    out.kind = GgufValue::Kind::other_list;
    if (type == gguf_text) {
      for (uint64_t i = 0; i < out.count; ++i) {
        uint64_t size = 0;
        if (!take(size) || !skip(size)) return false;
      }
      return true;
    }
    if (type == gguf_f32 || type == gguf_f64 || out.count > k_gguf_kept_numbers ||
        out.count > k_gguf_kept_in_all - kept_)
      return skip(out.count * k_entry_bytes[type]);
    kept_ += out.count;
    out.kind = GgufValue::Kind::numbers;
    for (uint64_t i = 0; i < out.count; ++i) {
      GgufValue one;
      if (!scalar(type, one)) return false;
      out.numbers.push_back(one.number);
    }
    return true;
  }

  bool entries() {
    for (uint64_t i = 0; i < entry_count_; ++i) {
      std::pair<std::string, GgufValue> entry;
      uint32_t type = 0;
      if (!take_text(entry.first, k_gguf_longest_key, k_gguf_longest_name, "a key") || !take(type))
        return false;
      if (type > gguf_f64) return broken(format("`{}` has the unknown type {}", entry.first, type));
      if (type == gguf_text) {
        entry.second.kind = GgufValue::Kind::text;
        if (!take_text(entry.second.text, k_gguf_most_header, k_gguf_kept_text, "a text"))
          return false;
      } else if (type == gguf_list ? !take_list(entry.second) : !scalar(type, entry.second)) {
        return false;
      }
      out_.metadata.push_back(std::move(entry));
    }
    return true;
  }

  bool tensor(uint64_t& end) {
    Tensor out;
    uint32_t dimensions = 0, type = 0;
    uint64_t offset = 0;
    if (!take_text(out.name, k_gguf_longest_name, k_gguf_longest_name, "a name") ||
        !take(dimensions))
      return false;
    if (dimensions > 8) return broken(format("`{}` has {} dimensions", out.name, dimensions));
    out.elements = 1;
    for (uint32_t i = 0; i < dimensions; ++i) {
      uint64_t size = 0;
      if (!take(size)) return false;
      if (size != 0 && out.elements > k_gguf_most_bytes / size)
        return broken(format("`{}` has a shape beyond any file", out.name));
      out.elements *= size;
      out.shape.push_back(size);
    }
    if (!take(type) || !take(offset)) return false;
    const GgmlType* known = ggml_type(type);
    if (known == nullptr)
      return broken(
          format("`{}` has type {} of ggml, which this cufit does not know", out.name, type),
          Code::unsupported);
    if (!out.shape.empty() && out.shape[0] % known->block != 0)
      return broken(format("a row of `{}` is no whole number of blocks", out.name));
    out.dtype = std::string(known->name);
    out.bytes = ggml_bytes(*known, out.elements);
    if (out.bytes > k_gguf_most_bytes || offset > k_gguf_most_bytes)
      return broken(format("`{}` leads beyond any file", out.name));
    end = std::max(end, offset + out.bytes);
    out_.tensors.push_back(std::move(out));
    return true;
  }

  bool tensors() {
    uint64_t end = 0;
    for (uint64_t i = 0; i < tensor_count_; ++i)
      if (!tensor(end)) return false;
    uint64_t alignment = out_.number("general.alignment", k_gguf_default_alignment);
    if (alignment == 0 || alignment > (1u << 20)) return broken("an alignment of no use");
    const uint64_t data = (at_ + alignment - 1) / alignment * alignment;
    const uint64_t size = source_.size_bytes();
    if (tensor_count_ != 0 && data + end > size) out_.missing_bytes = data + end - size;
    return true;
  }

  const ByteSource& source_;
  std::string window_;
  uint64_t window_at_ = 0, at_ = 0, tensor_count_ = 0, entry_count_ = 0;
  uint64_t kept_ = 0;  // numbers of lists
  Gguf out_;
  std::optional<Error> error_;
};

}  // namespace

const GgufValue* Gguf::find(std::string_view key) const {
  for (const auto& [name, value] : metadata)
    if (name == key) return &value;
  return nullptr;
}

uint64_t Gguf::number(std::string_view key, uint64_t otherwise) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->kind == GgufValue::Kind::number || value->kind == GgufValue::Kind::truth)
    return value->number;
  return otherwise;
}

std::string Gguf::text(std::string_view key) const {
  const GgufValue* value = find(key);
  return value != nullptr ? value->text : std::string();
}

bool is_gguf(std::string_view first_bytes) { return first_bytes.substr(0, 4) == "GGUF"; }

Result<Gguf> read_gguf(const ByteSource& source) {
  GgufReader reader(source);
  return reader.run();
}

}  // namespace cufit::formats
