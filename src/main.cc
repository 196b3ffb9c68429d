// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "base/reading.h"
#include "commands/command.h"
#include "commands/exit.h"

namespace {

// Of a limit (`ulimit -v`, a job's) or a file that asks for more than there is: nothing here may ask
// for memory again.
void say_out_of_memory() {
  const char* file = cufit::reading_now();
  std::fprintf(stderr, "cufit: not enough memory%s%s%s\n",
               file[0] == '\0' ? "" : " (the last file that was read: `", file,
               file[0] == '\0' ? "" : "`)");
}

// Where it is thrown by a thread or a destructor, no catch below sees it.
[[noreturn]] void terminated() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      say_out_of_memory();
      std::_Exit(cufit::commands::k_failed);
    } catch (...) {
    }
  }
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  std::set_terminate(terminated);
  try {
    return cufit::commands::run(argc, argv);
  } catch (const std::bad_alloc&) {
    say_out_of_memory();
    return cufit::commands::k_failed;
  }
}
