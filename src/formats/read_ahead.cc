// SPDX-License-Identifier: Apache-2.0
#include "formats/read_ahead.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace cufit::formats {
namespace {

constexpr size_t k_piece = 256u << 10;
constexpr size_t k_pieces = 4;

}  // namespace

struct ReadAhead::State {
  explicit State(ByteStream& from) : input(from) {}

  ByteStream& input;
  std::mutex mutex;
  std::condition_variable changed;
  // A ring: pieces [taken, filled) are ready. Counters change under the mutex; the bytes of a piece
  // belong to the thread before it is ready and to the reader after.
  std::array<std::vector<std::byte>, k_pieces> pieces;
  size_t filled = 0, taken = 0;
  bool ended = false, stop = false;
  std::optional<Error> error;
  size_t at = 0;  // within the piece that is being handed out
  std::thread thread;

  void work() {
    for (;;) {
      size_t mine = 0;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stop || filled - taken < k_pieces; });
        if (stop) return;
        mine = filled % k_pieces;
      }
      std::vector<std::byte>& piece = pieces[mine];
      piece.resize(k_piece);
      Result<size_t> got = input.read(piece);
      piece.resize(got ? *got : 0);
      std::lock_guard lock(mutex);
      if (!got) error = std::move(got.error());
      ended = !got || *got == 0;
      if (!ended) ++filled;
      changed.notify_all();
      if (ended) return;
    }
  }
};

ReadAhead::ReadAhead(ByteStream& input) : state_(std::make_unique<State>(input)) {
  try {
    state_->thread = std::thread([state = state_.get()] { state->work(); });
  } catch (const std::system_error&) {  // no thread to be had: read() works without one
  }
}

ReadAhead::~ReadAhead() {
  if (!state_->thread.joinable()) return;
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

const std::string& ReadAhead::name() const { return state_->input.name(); }

Result<size_t> ReadAhead::read(std::span<std::byte> out) {
  State& s = *state_;
  if (!s.thread.joinable()) return s.input.read(out);
  {
    std::unique_lock lock(s.mutex);
    s.changed.wait(lock, [&] { return s.filled > s.taken || s.ended; });
    if (s.filled == s.taken) {
      if (s.error) return *s.error;
      return size_t{0};
    }
  }
  const std::vector<std::byte>& piece = s.pieces[s.taken % k_pieces];
  size_t size = std::min(out.size(), piece.size() - s.at);
  std::memcpy(out.data(), piece.data() + s.at, size);
  s.at += size;
  if (s.at == piece.size()) {
    std::lock_guard lock(s.mutex);
    s.at = 0;
    ++s.taken;
    s.changed.notify_all();
  }
  return size;
}

}  // namespace cufit::formats
