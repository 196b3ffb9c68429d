// SPDX-License-Identifier: Apache-2.0
// The tickets of launches that wait for a GPU or were started on one: small files in one folder (formats/system/wait_ticket.h
// has their lines). There is no daemon: whoever waits reads them all and decides (resolve/quota/wait_queue.h), one at a time,
// under the folder's lock. A ticket lives while its process holds a record lock on it, which the program keeps over exec, or
// while that process is there; dead ones are nobody's and are removed by the next who looks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/system/wait_ticket.h"
#include "host/files/host.h"
#include "host/process/spawn.h"

namespace cufit::host {

struct LiveTicket {
  formats::WaitTicket ticket;
  std::string name;      // of its file
  uint32_t owner = 0;    // uid
  bool own = false;      // of this user
  bool stopped = false;  // its process is stopped (SIGSTOP, Ctrl-Z)
};

struct QueueReading {
  std::vector<LiveTicket> tickets;   // by number
  std::vector<std::string> damaged;  // names of files that are none, of processes that may live
};

// One look or one change at a time. The kernel frees it when the process ends.
class QueueLock {
 public:
  explicit QueueLock(FileHandle folder) : folder_(std::move(folder)) {}

 private:
  FileHandle folder_;
};

class WaitQueue {
 public:
  // FOLDER of CUFIT_QUEUE, which has to be there, for all users; else `queue` in the folder of quotas, made where it is
  // missing. Errors: it is no folder, or others may remove what is in it.
  static Result<WaitQueue> open(const Host& variables);

  // A folder of tickets, only to be read; it need not be there.
  static WaitQueue to_read(std::string folder);

  const std::string& folder() const { return folder_; }

  // Error{timeout}: another holds it for longer than `seconds`.
  Result<QueueLock> lock(double seconds) const;
  // All living tickets; `remove_dead`: only under the lock.
  enum class Dead { leave, remove };
  QueueReading read(Dead dead) const;

  // Under the lock. Files this launch's ticket and locks it: pid, start, boot and namespace are filled in, and the number:
  // later than all others. The file goes with the WaitQueue, unless the process ends before or becomes a program.
  Result<void> file(formats::WaitTicket ticket);
  // Under the lock: writes over what is there, which needs no room.
  Result<void> change(const formats::WaitTicket& ticket);
  const formats::WaitTicket& own() const { return own_; }
  // The ticket stays locked by the program that this process becomes.
  void keep_over_exec() const;

  WaitQueue(WaitQueue&& other) noexcept = default;
  WaitQueue& operator=(WaitQueue&& other) noexcept = delete;
  ~WaitQueue();

 private:
  WaitQueue() = default;
  Result<void> write_own();
  std::optional<LiveTicket> read_one(const std::string& name, Dead dead, bool& damaged) const;

  std::string folder_, name_;
  bool shared_ = false;
  FileHandle file_;  // of the own ticket: closing another one of it would drop the lock
  formats::WaitTicket own_;
};

// The first of the process and those that started it that is one of `pids`; 0 = none.
uint32_t ancestor_among(uint32_t process, const std::vector<uint32_t>& pids);

}  // namespace cufit::host
