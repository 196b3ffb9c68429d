// SPDX-License-Identifier: Apache-2.0
#include "host/quota/mps_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/format.h"
#include "base/number.h"
#include "base/path.h"
#include "base/variables.h"
#include "host/process/process_tree.h"
#include "host/process/spawn.h"
#include "host/quota/quota_folder.h"

namespace cufit::host {
namespace {

constexpr const char* k_control = "nvidia-cuda-mps-control";
constexpr int k_up_seconds = 10, k_quit_seconds = 10, k_force_seconds = 5;
constexpr useconds_t k_step = 10'000;
// The longest name there is "control_privileged"; sun_path has 108 bytes.
constexpr size_t k_most_pipe_folder = 107 - sizeof "/control_privileged";

bool listens(const std::string& pipes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = pipes + "/control";
  if (path.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  // Drivers differ in the kind of socket; nothing is said on it.
  for (const int kind : {SOCK_STREAM, SOCK_SEQPACKET}) {
    FileHandle socket(::socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.get() < 0) continue;
    const int result =
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    if (result == 0 || errno == EAGAIN) return true;  // EAGAIN: it is there and busy
  }
  return false;
}

std::vector<std::string> with_folders(const std::vector<std::string>& variables,
                                      const OwnMps& mps) {
  std::vector<std::string> out;
  for (const std::string& each : variables) {
    bool kept = true;
    for (const char* name : {"CUDA_MPS_PIPE_DIRECTORY=", "CUDA_MPS_LOG_DIRECTORY=",
                             "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=", "LD_PRELOAD="})
      kept = kept && !starts_with(each, name);
    if (kept) out.push_back(each);
  }
  out.push_back("CUDA_MPS_PIPE_DIRECTORY=" + mps_pipe_folder(mps));
  out.push_back("CUDA_MPS_LOG_DIRECTORY=" + mps_log_folder(mps));
  return out;
}

// -1: not yet.
int exit_code_within(pid_t pid, int seconds) {
  for (int i = 0; i * k_step < static_cast<useconds_t>(seconds) * 1'000'000; ++i) {
    int status = 0;
    const pid_t got = ::waitpid(pid, &status, WNOHANG);
    if (got == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (got < 0 && errno != EINTR) return 127;
    ::usleep(k_step);
  }
  return -1;
}

void remove_folder(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void end_child(pid_t pid) {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// Reads `words` as its standard input; false where it did not end in time.
bool tell_daemon(const OwnMps& mps, const std::string& program, const std::string& words,
                 int seconds) {
  Result<Pipe> input = open_pipe();
  if (!input) return true;
  // Before anybody could close the other end.
  (void)!::write(input->write_end.get(), words.data(), words.size());
  input->write_end.reset();
  SpawnOptions options;
  options.command = {program.empty() ? k_control : program};
  options.variables = {{"CUDA_MPS_PIPE_DIRECTORY", mps_pipe_folder(mps)},
                       {"CUDA_MPS_LOG_DIRECTORY", mps_log_folder(mps)},
                       {"LD_PRELOAD", std::nullopt}};
  options.own_group = true;  // Ctrl-C is for the program
  FileHandle nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  options.out = options.err = nowhere.get();
  const int from = input->read_end.get();
  options.before = [from] { ::dup2(from, STDIN_FILENO); };
  Result<SpawnedProgram> child = spawn_program(options);
  if (!child || child->start_error(true) != 0) {
    if (child) end_child(child->pid);
    return true;
  }
  if (exit_code_within(child->pid, seconds) >= 0) return true;
  end_child(child->pid);
  return false;
}

// Of PIPES/nvidia-cuda-mps-control.pid, if that is the daemon of these pipes; else 0. The number may be another process's by
// now, of a daemon too.
pid_t daemon_of(const OwnMps& mps) {
  const std::string text = read_small(mps_pipe_folder(mps) + "/nvidia-cuda-mps-control.pid");
  const std::optional<uint64_t> pid = parse_uint(trim(text));
  if (!pid || *pid < 2 || *pid >= (uint64_t{1} << 31)) return 0;
  const std::string command = read_small(format("/proc/{}/cmdline", *pid));
  if (command.find("nvidia-cuda-mps") == std::string::npos) return 0;
  const std::string text_of_variables = read_small(format("/proc/{}/environ", *pid));
  std::vector<std::string> variables;
  for (const std::string_view each : split(text_of_variables, '\0')) variables.emplace_back(each);
  const bool is_ours = variable_value(variables, "CUDA_MPS_PIPE_DIRECTORY") == mps_pipe_folder(mps);
  return is_ours ? static_cast<pid_t>(*pid) : 0;
}

std::string last_line_of_log(const std::string& path) {
  const std::string text = read_small(path);
  const std::string_view all = trim(text);
  return std::string(all.substr(all.rfind('\n') + 1)).substr(0, 300);  // npos + 1 is 0
}

// "`PATH` (its last line)"
std::string log_text(const std::string& path) {
  const std::string line = last_line_of_log(path);
  return "`" + path + "`" + (line.empty() ? "" : " (" + line + ")");
}

Result<void> run_daemon(const std::string& program, const OwnMps& mps,
                        const std::vector<std::string>& variables) {
  const std::string log = mps_log_folder(mps) + "/control.log";
  const std::string said = mps_log_folder(mps) + "/start.log";
  FileHandle out(::open(said.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Without a file the daemon would write to this process's terminal.
  if (out.get() < 0) return fail(Code::io, format("`{}`: {}", said, std::strerror(errno)));
  SpawnOptions options;
  options.command = {program, "-d"};
  options.environment = with_folders(variables, mps);
  options.empty_input = true;
  options.out = options.err = out.get();
  options.own_group = true;
  CUFIT_TRY(child, spawn_program(options));
  if (const int why = child.start_error(true)) {
    end_child(child.pid);
    return fail(Code::io, format("`{}`: {}", program, std::strerror(why)));
  }
  const int code = exit_code_within(child.pid, k_up_seconds);
  if (code > 0)
    return fail(Code::io, format("the MPS control daemon ended with exit code {}; its log: {}",
                                 code, log_text(said)));
  for (int i = 0; code == 0 && i * k_step < k_up_seconds * 1'000'000u; ++i) {
    if (listens(mps_pipe_folder(mps))) return {};
    ::usleep(k_step);
  }
  if (code < 0) end_child(child.pid);
  return fail(Code::timeout,
              format("the MPS control daemon did not come up within {} s; its log: {}",
                     k_up_seconds, log_text(log)));
}

}  // namespace

std::string mps_pipe_folder(const OwnMps& mps) { return mps.folder + "/pipe"; }
std::string mps_log_folder(const OwnMps& mps) { return mps.folder + "/log"; }

std::string reachable_mps(const std::vector<std::string>& variables) {
  std::string pipes = variable_value(variables, "CUDA_MPS_PIPE_DIRECTORY");
  if (pipes.empty()) pipes = "/tmp/nvidia-mps";
  return listens(pipes) ? pipes : std::string();
}

Result<OwnMps> start_mps(const std::string& program, const std::string& quota_folder,
                         const std::vector<std::string>& variables) {
  OwnMps mps{format("{}/{}{}", quota_folder, k_mps_folder, this_launch())};
  if (mps_pipe_folder(mps).size() > k_most_pipe_folder)
    return fail(
        Code::unsupported,
        format("`{}`: too long a path for the sockets of MPS; CUFIT_RUN_DIR can name a shorter one",
               mps_pipe_folder(mps)));
  for (const std::string& each : {mps.folder, mps_pipe_folder(mps), mps_log_folder(mps)})
    if (Result<void> made = own_folder(each); !made) {
      remove_folder(mps.folder);
      return made.error();
    }
  if (Result<void> up = run_daemon(program, mps, variables); !up) {
    tell_daemon(mps, program, "quit\n", 1);
    remove_folder(mps_pipe_folder(mps));
    return up.error();
  }
  return mps;
}

void stop_mps(const OwnMps& mps, const std::string& program) {
  if (mps.folder.empty()) return;
  const pid_t daemon = daemon_of(mps);
  if (listens(mps_pipe_folder(mps)) && !tell_daemon(mps, program, "quit\n", k_quit_seconds))
    tell_daemon(mps, program, "quit -t 1\n", k_force_seconds);
  if (daemon != 0 && daemon_of(mps) == daemon) ::kill(daemon, SIGTERM);
  remove_folder(mps.folder);
}

}  // namespace cufit::host
