// SPDX-License-Identifier: Apache-2.0
#include "formats/pickle/pickle_blocks.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace cufit::formats {
namespace {

constexpr unsigned k_most_threads = 8;  // more of them wait for the thread that runs the machine
constexpr uint64_t k_worth_a_thread = 4u << 20, k_worth_a_thread_compressed = 32u << 10;
constexpr size_t k_in_use = 2;  // blocks that the machine holds: one and the one before

}  // namespace

struct PickleBlocks::State {
  State(ByteStream& from, size_t bytes, unsigned helpers)
      : input(from), block_bytes(bytes), slots(k_in_use + 1 + 2 * helpers), scans(helpers + 1) {}

  enum class Stage { empty, unseen, at_work, ready };
  struct Slot {
    PickleBlock block;
    std::unique_ptr<unsigned char[]> bytes;
    Stage stage = Stage::empty;
  };

  ByteStream& input;
  const size_t block_bytes;
  std::mutex mutex;
  // Waking a thread costs as much as looking through some kilobytes: one at a time.
  std::condition_variable helpers_wait, machine_waits;
  // A ring. Blocks [taken, filled) were read and not handed out. Stages and counters change under
  // the mutex; a block belongs to who made it at_work, a ready one to the reader.
  std::vector<Slot> slots;
  size_t filled = 0, taken = 0;
  bool reading = false, ended = false, stop = false;
  std::optional<Error> error;
  std::shared_ptr<const PickleRowForm> form;
  std::vector<PickleRowScan> scans;  // one for each thread, the machine's last
  std::vector<std::thread> threads;

  Slot& slot(size_t number) { return slots[number % slots.size()]; }

  // The first block that could be looked through; `filled` if there is none.
  size_t unseen() {
    size_t at = taken;
    while (at < filled && (form == nullptr || slot(at).stage != Stage::unseen)) ++at;
    return at;
  }
  bool may_read() const { return !reading && !ended && filled - taken + k_in_use < slots.size(); }

  void read_one(std::unique_lock<std::mutex>& lock) {
    reading = true;
    Slot& into = slot(filled);
    lock.unlock();
    PickleBlock& block = into.block;
    if (!into.bytes) {
      into.bytes.reset(new unsigned char[PickleBlock::k_headroom + block_bytes + k_scan_margin]);
      block.begin = into.bytes.get() + PickleBlock::k_headroom;
    }
    block.size = 0;
    block.form = nullptr;
    block.rows.clear();
    Result<size_t> got = size_t{0};
    while (block.size < block_bytes) {
      got = input.read(
          {reinterpret_cast<std::byte*>(block.begin) + block.size, block_bytes - block.size});
      if (!got || *got == 0) break;
      block.size += *got;
    }
    std::memset(block.begin + block.size, 0, k_scan_margin);
    lock.lock();
    reading = false;
    if (!got) error = std::move(got.error());
    ended = error.has_value() || block.size < block_bytes;
    if (block.size > 0) {
      into.stage = Stage::unseen;
      ++filled;
    }
    machine_waits.notify_one();
    helpers_wait.notify_one();
  }

  void look_through(size_t number, PickleRowScan& scan, std::unique_lock<std::mutex>& lock) {
    Slot& mine = slot(number);
    mine.stage = Stage::at_work;
    std::shared_ptr<const PickleRowForm> looked_for = form;
    lock.unlock();
    try {
      scan.find({mine.block.begin, mine.block.size}, *looked_for, mine.block.rows);
    } catch (const std::bad_alloc&) {  // the machine needs no rows
      mine.block.rows.clear();
    }
    lock.lock();
    mine.block.form = std::move(looked_for);
    mine.stage = Stage::ready;
    machine_waits.notify_one();
  }

  // Some work that is there; false: there is none.
  bool work(PickleRowScan& scan, std::unique_lock<std::mutex>& lock) {
    if (const size_t number = unseen(); number < filled) {
      look_through(number, scan, lock);
      return true;
    }
    if (!may_read()) return false;
    read_one(lock);
    return true;
  }

  void help(PickleRowScan& scan) {
    std::unique_lock lock(mutex);
    while (!stop)
      if (!work(scan, lock)) helpers_wait.wait(lock);
  }

  bool next_is_there() {
    if (taken == filled) return false;
    const Stage stage = slot(taken).stage;
    return stage == Stage::ready || (stage == Stage::unseen && form == nullptr);
  }
};

PickleBlocks::PickleBlocks(ByteStream& input, unsigned threads, size_t block_bytes)
    : state_(std::make_unique<State>(input, block_bytes, threads)) {
  State& state = *state_;
  try {
    for (unsigned i = 0; i < threads; ++i)
      state.threads.emplace_back([&state, &scan = state.scans[i]] { state.help(scan); });
  } catch (const std::system_error&) {  // no more threads to be had: those there are do it all
  }
}

PickleBlocks::~PickleBlocks() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->helpers_wait.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

const std::string& PickleBlocks::name() const { return state_->input.name(); }

Result<PickleBlock*> PickleBlocks::next() {
  State& s = *state_;
  std::unique_lock lock(s.mutex);
  while (!s.next_is_there()) {
    if (s.taken == s.filled && s.ended) {
      if (s.error) return *s.error;
      return nullptr;
    }
    if (!s.work(s.scans.back(), lock)) s.machine_waits.wait(lock);
  }
  State::Slot& slot = s.slot(s.taken++);
  slot.stage = State::Stage::ready;
  s.helpers_wait.notify_one();
  return &slot.block;
}

void PickleBlocks::look_for(std::shared_ptr<const PickleRowForm> form) {
  std::lock_guard lock(state_->mutex);
  state_->form = std::move(form);
  state_->helpers_wait.notify_all();
}

unsigned pickle_threads(uint64_t bytes, bool compressed) {
  if (bytes <= (compressed ? k_worth_a_thread_compressed : k_worth_a_thread)) return 0;
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  return std::clamp(processors - 1, 1u, k_most_threads);
}

}  // namespace cufit::formats
