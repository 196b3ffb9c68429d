// SPDX-License-Identifier: Apache-2.0
#include "formats/model/trace_events.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"

namespace cufit::formats {
namespace {

constexpr std::string_view k_trace_events_magic = "CUFITEV1";
constexpr uint64_t k_max_number = UINT32_MAX - 1;  // of texts, sites and storages

// Bytes of the expanded file, one after the other. What cannot be read is either the end of the
// file (`ended`) or an error.
class Bytes {
 public:
  Bytes(ByteStream& stream, uint64_t limit) : stream_(stream), limit_(limit) {
    buffer_.resize(64u << 10);
  }

  bool take(uint8_t& byte) {
    if (at_ == end_ && !fill()) return false;
    byte = static_cast<uint8_t>(buffer_[at_++]);
    return true;
  }

  bool take(std::string& out, size_t size) {
    out.clear();
    while (out.size() < size) {
      if (at_ == end_ && !fill()) return false;
      const size_t part = std::min(size - out.size(), end_ - at_);
      out.append(reinterpret_cast<const char*>(buffer_.data()) + at_, part);
      at_ += part;
    }
    return true;
  }

  uint64_t position() const { return before_ + at_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool fill() {
    if (error_ || ended_) return false;
    before_ += end_;
    at_ = end_ = 0;
    if (before_ > limit_) return false;
    Result<size_t> got = stream_.read(buffer_);
    if (!got) {
      error_ = got.error();
      return false;
    }
    end_ = *got;
    ended_ = end_ == 0;
    return !ended_;
  }

  ByteStream& stream_;
  const uint64_t limit_;
  std::vector<std::byte> buffer_;
  size_t at_ = 0, end_ = 0;
  uint64_t before_ = 0;  // bytes of the file before the buffer
  bool ended_ = false;
  std::optional<Error> error_;
};

// What is freed together (autocast's copies of the weights, at its end) comes in the order of a
// hash table, another in each run; the allocator is left the same by each order.
void order_frees(std::vector<TraceEvent>& events) {
  const auto is_free = [](const TraceEvent& event) { return event.kind == TraceEventKind::free; };
  for (auto first = events.begin(); first != events.end();) {
    first = std::find_if(first, events.end(), is_free);
    const auto last = std::find_if_not(first, events.end(), is_free);
    std::sort(first, last,
              [](const TraceEvent& a, const TraceEvent& b) { return a.index < b.index; });
    first = last;
  }
}

class TraceEventsReader {
 public:
  TraceEventsReader(ByteStream& stream, const TraceLimits& limits)
      : bytes_(stream, limits.expand.total_bytes), limits_(limits), name_(stream.name()) {}

  Result<TraceEvents> run() {
    out_.name = name_;
    if (magic()) {
      while (!out_.complete && record()) {
      }
      if (out_.complete) nothing_after();
    }
    if (bytes_.error()) return *bytes_.error();
    if (error_) return *error_;
    out_.size_bytes = bytes_.position();
    order_frees(out_.events);
    return std::move(out_);
  }

 private:
  // Every reading function says whether to go on: false at the end of the file or after an error.
  bool broken(std::string_view what) {
    if (!error_)
      error_ =
          fail(Code::malformed, format("{}: no event file of cufit fit, or damaged: {} at byte {}",
                                       name_, what, record_at_));
    return false;
  }

  bool magic() {
    for (const char wanted : k_trace_events_magic) {
      uint8_t byte = 0;
      if (!bytes_.take(byte)) return false;
      if (byte != static_cast<uint8_t>(wanted)) return broken("it does not begin with CUFITEV1");
    }
    return true;
  }

  bool number(uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      uint8_t byte = 0;
      if (!bytes_.take(byte)) return false;
      if (shift == 63 && byte > 1) return broken("a number of more than 64 bit");
      value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80u) == 0) return true;
    }
    return broken("a number of more than 64 bit");
  }

  // The number of something that was said before; `count` of them were.
  bool reference(uint32_t& value, size_t count, std::string_view what) {
    uint64_t wide = 0;
    if (!number(wide)) return false;
    if (wide >= count) return broken(format("{} {} of {}", what, wide, count));
    value = static_cast<uint32_t>(wide);
    return true;
  }
  bool text(uint32_t& value) { return reference(value, out_.texts.size(), "text"); }

  bool storage(uint32_t& value) {
    uint32_t distance = 0;
    if (!reference(distance, out_.storage_count(), "a distance of storages:")) return false;
    value = static_cast<uint32_t>(out_.storage_count() - 1 - distance);
    if (live_[value] == k_gone) return broken(format("storage {} after its end", value));
    return true;
  }

  bool byte_below(uint8_t& value, uint8_t first, uint8_t end, std::string_view what) {
    if (!bytes_.take(value)) return false;
    if (value < first || value >= end) return broken(format("{} {}", what, value));
    return true;
  }

  template <class T>
  bool room(const std::vector<T>& rows, uint64_t limit, std::string_view what) {
    if (rows.size() < std::min(limit, k_max_number)) return true;
    return broken(format("more than {} {}", limit, what));
  }
  bool event_room() { return room(out_.events, limits_.events, "events"); }

  bool record() {
    record_at_ = bytes_.position();
    uint8_t kind = 0;
    if (!bytes_.take(kind)) return false;
    switch (kind) {
      case 1:
        return read_text();
      case 2:
        return read_site();
      case 3:
        return read_alloc();
      case 4:
        return read_free();
      case 5:
        return read_mark();
      case 6:
        return read_call();
      case 7:
        return read_category();
      case 8:
        return read_note();
      case 9:
        return read_fact();
      case 10:
        return read_end();
      case 12:
        return read_convolution();
      default:
        return broken(format("a record of the unknown kind {}", kind));
    }
  }

  bool read_text() {
    uint64_t size = 0;
    if (!room(out_.texts, limits_.rows, "texts") || !number(size)) return false;
    text_bytes_ += size;  // both are bounded before the next is added
    if (size > limits_.text_bytes || text_bytes_ > limits_.all_text_bytes)
      return broken(format("a text of {} bytes", size));
    std::string text;
    if (!bytes_.take(text, static_cast<size_t>(size))) return false;
    out_.texts.push_back(std::move(text));
    return true;
  }

  bool read_site() {
    TraceSite site;
    uint64_t number_of = 0;
    if (!room(out_.sites, limits_.rows, "sites") || !text(site.op) || !text(site.module) ||
        !text(site.source) || !number(number_of))
      return false;
    const uint64_t phase = number_of & 7, stream = number_of >> 3;
    if (phase > static_cast<uint8_t>(TracePhase::validation))
      return broken(format("phase {}", phase));
    if (stream >= k_first_graph_pool + k_graph_pools) return broken(format("stream {}", stream));
    site.stream = static_cast<uint8_t>(stream);
    site.phase = static_cast<TracePhase>(phase);
    out_.sites.push_back(site);
    return true;
  }

  bool read_alloc() {
    TraceEvent event{.kind = TraceEventKind::alloc};
    if (!event_room() || !number(event.bytes) || !reference(event.site, out_.sites.size(), "site"))
      return false;
    if (event.bytes > limits_.live_bytes - live_bytes_)
      return broken(format("a storage of {} bytes", event.bytes));
    live_bytes_ += event.bytes;
    event.index = static_cast<uint32_t>(out_.storage_count());
    out_.categories.push_back(StorageCategory::unknown);
    live_.push_back(event.bytes);
    out_.events.push_back(event);
    return true;
  }

  bool read_free() {
    TraceEvent event{.kind = TraceEventKind::free};
    if (!event_room() || !storage(event.index)) return false;
    live_bytes_ -= live_[event.index];
    live_[event.index] = k_gone;
    out_.events.push_back(event);
    return true;
  }

  bool read_mark() {
    TraceEvent event{.kind = TraceEventKind::mark};
    uint8_t mark = 0;
    constexpr uint8_t end = static_cast<uint8_t>(TraceMark::after_steps) + 1;
    if (!event_room() || !byte_below(mark, 0, end, "mark")) return false;
    event.index = mark;
    out_.events.push_back(event);
    return true;
  }

  // Adds them to those of the file; all or none.
  bool numbers(uint64_t count) {
    const size_t first = out_.numbers.size();
    if (first + count > std::min(limits_.numbers, k_max_number))
      return broken(format("more than {} numbers", limits_.numbers));
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t value = 0;
      if (!number(value)) {
        out_.numbers.resize(first);
        return false;
      }
      out_.numbers.push_back(value);
    }
    return true;
  }

  bool read_call() {
    TraceCall call;
    uint64_t count = 0;
    if (!event_room() || !reference(call.site, out_.sites.size(), "site") || !number(count))
      return false;
    if (count > limits_.call_numbers) return broken(format("a call with {} numbers", count));
    const size_t first = out_.numbers.size();
    if (!numbers(count)) return false;
    call.first = static_cast<uint32_t>(first);
    call.count = static_cast<uint32_t>(count);
    out_.events.push_back(
        {0, static_cast<uint32_t>(out_.calls.size()), call.site, TraceEventKind::call});
    out_.calls.push_back(call);
    return true;
  }

  bool number_below(uint64_t& value, uint64_t end, std::string_view what) {
    if (!number(value)) return false;
    return value < end || broken(format("{} {}", what, value));
  }

  bool read_workspace(TraceWorkspace& out) {
    const uint64_t end = limits_.workspace_bytes + 1;
    uint64_t tile = 0, cluster = 0, divides = 0, engine = 0;
    if (!number_below(out.batch, end, "a batch size of") ||
        !number_below(out.bytes, end, "a workspace of bytes:") ||
        !number_below(out.most, end, "a workspace of bytes:") ||
        !number_below(tile, 1024, "a tile") ||
        !number_below(cluster, 1024, "a cluster of blocks:") ||
        !number_below(divides, 2, "a flag") || !number_below(engine, 1u << 16, "an engine"))
      return false;
    out.tile = static_cast<uint32_t>(tile);
    out.cluster = static_cast<uint32_t>(cluster);
    out.engine = static_cast<uint32_t>(engine);
    out.divides = divides != 0;
    return true;
  }

  // What was read of one that is cut off is left out.
  bool read_convolution() {
    const size_t numbers_before = out_.numbers.size(), rows_before = out_.workspaces.size();
    if (whole_convolution()) return true;
    out_.numbers.resize(numbers_before);
    out_.workspaces.resize(rows_before);
    return false;
  }

  bool whole_convolution() {
    TraceConvolution out;
    uint64_t capability = 0, pass = 0, count = 0, workspaces = 0;
    if (!room(out_.convolutions, limits_.rows, "convolutions") ||
        !number_below(capability, 10000, "a compute capability of") ||
        !number_below(pass, 3, "a pass") || !number(count))
      return false;
    if (count > limits_.call_numbers) return broken(format("a call with {} numbers", count));
    out.first = static_cast<uint32_t>(out_.numbers.size());
    if (!numbers(count) || !number(workspaces)) return false;
    out.first_workspace = static_cast<uint32_t>(out_.workspaces.size());
    for (uint64_t i = 0; i < workspaces; ++i) {
      TraceWorkspace workspace;
      if (!room(out_.workspaces, limits_.rows, "workspaces") || !read_workspace(workspace))
        return false;
      out_.workspaces.push_back(workspace);
    }
    out.capability = static_cast<uint32_t>(capability);
    out.pass = static_cast<uint8_t>(pass);
    out.count = static_cast<uint32_t>(count);
    out.workspace_count = static_cast<uint32_t>(workspaces);
    out_.convolutions.push_back(out);
    return true;
  }

  bool read_category() {
    uint32_t number = 0;
    uint8_t category = 0;
    if (!storage(number) || !byte_below(category, 1, 8, "category")) return false;
    out_.categories[number] = static_cast<StorageCategory>(category);
    return true;
  }

  bool read_note() {
    TraceNote note;
    if (!room(out_.notes, limits_.notes, "notes") || !text(note.kind) || !text(note.detail) ||
        !text(note.source))
      return false;
    out_.notes.push_back(note);
    return true;
  }

  bool read_fact() {
    TraceFact fact;
    if (!room(out_.facts, limits_.rows, "facts") || !text(fact.key) || !text(fact.value))
      return false;
    out_.facts.push_back(fact);
    return true;
  }

  bool read_end() {
    uint8_t end = 0;
    if (!byte_below(end, 0, 3, "end")) return false;
    out_.end = static_cast<TraceEnd>(end);
    out_.complete = true;
    return true;
  }

  void nothing_after() {
    record_at_ = bytes_.position();
    uint8_t byte = 0;
    if (bytes_.take(byte)) broken("something after the end");
  }

  static constexpr uint64_t k_gone = UINT64_MAX;

  Bytes bytes_;
  const TraceLimits& limits_;
  const std::string name_;
  TraceEvents out_;
  std::vector<uint64_t> live_;  // bytes by storage, or k_gone
  uint64_t live_bytes_ = 0;
  uint64_t text_bytes_ = 0;
  uint64_t record_at_ = 0;
  std::optional<Error> error_;
};

}  // namespace

std::string_view TraceEvents::fact(std::string_view key) const {
  for (size_t i = facts.size(); i-- > 0;)
    if (texts[facts[i].key] == key) return texts[facts[i].value];
  return {};
}

Result<TraceEvents> read_trace_events(std::shared_ptr<const ByteSource> source,
                                      const TraceLimits& limits) {
  CUFIT_TRY(input, CompressedInput::open(std::move(source), limits.expand));
  TraceEventsReader reader(input, limits);
  return reader.run();
}

}  // namespace cufit::formats
