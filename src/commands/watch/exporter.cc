// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/exporter.h"

#include <csignal>
#include <memory>
#include <mutex>

#include "base/format.h"
#include "base/shell_word.h"
#include "base/number.h"
#include "commands/watch/exporter_server.h"
#include "commands/watch/first_answer.h"
#include "commands/watch/live_samples.h"
#include "commands/watch/machine_state.h"
#include "commands/watch/sample_times.h"
#include "commands/watch/this_machine.h"
#include "commands/watch/web_settings.h"
#include "host/files/atomic_write.h"
#include "host/files/sample_file.h"
#include "host/process/signal_pause.h"
#include "host/serve/http_server.h"
#include "host/serve/prometheus_text.h"
#include "report/error_translation.h"
#include "report/metric_page.h"
#include "watch/dcgm_metrics.h"
#include "watch/metrics.h"
#include "watch/watcher.h"

namespace cufit::commands {
namespace {

constexpr Option k_exporter_options[] = {
    option<&ExporterRequest::listen>("--listen", "ADDRESS"),
    option<&ExporterRequest::textfile>("--textfile", "FILE"),
    option<&ExporterRequest::config>("--config", "FILE"),
    option<&ExporterRequest::interval>("--interval", "SECONDS"),
    option<&ExporterRequest::max_processes>("--max-processes", "N"),
    option<&ExporterRequest::dcgm_names>("--dcgm-names"),
    option<&ExporterRequest::once>("--once"),
    option<&ExporterRequest::from>("--from", "FILE"),
};

constexpr const char* k_default_address = "127.0.0.1:9836";
constexpr double k_default_interval = 5;
constexpr uint64_t k_most_processes = 100000;
constexpr double k_exporter_look_seconds = 0.5;  // at signals, while nothing else happens
constexpr double k_stalled_seconds = 1;

struct ExporterSettings {
  host::HttpServerOptions server;
  std::vector<std::string> exposed;  // keys that other users may read
  watch::MetricLimits limits;
  double interval = k_default_interval;
};

Result<ExporterSettings> read_settings(const Context& context, const ExporterRequest& request) {
  ExporterSettings out;
  if (request.from && !request.once)
    return fail(Code::usage, "`--from` goes with `--once`: a recording has no present");
  if (request.once && (request.listen || request.config || request.textfile))
    return fail(Code::usage, "`--once` prints the page; it listens and writes nowhere");
  if (request.textfile && !request.listen && request.config)
    return fail(Code::usage, "`--config` is for the address of `--listen`");
  CUFIT_TRY(address, host::parse_listen_address(request.listen.value_or(k_default_address)));
  out.server.address = address.first;
  out.server.port = address.second;
  if (request.config) {
    CUFIT_TRY(web, read_web_settings(context, *request.config));
    out.server.web = std::move(web.config);
    out.exposed = std::move(web.exposed);
  }
  CUFIT_TRY(interval, read_interval(request.interval, k_default_interval, k_most_alarm_interval));
  out.interval = interval;
  if (request.textfile) {
    // It is renamed into place: a device would be gone.
    const Result<host::FileStatus> status = context.files.status(*request.textfile);
    if (status && !status->is_regular)
      return fail(Code::usage, format("`--textfile {}`: not a regular file", *request.textfile));
  }
  if (request.max_processes) {
    const std::optional<uint64_t> count = parse_uint(*request.max_processes);
    if (!count || *count > k_most_processes)
      return fail(Code::usage, format("`--max-processes {}`: 0 to {}", *request.max_processes,
                                      k_most_processes));
    out.limits.processes = *count;
  }
  return out;
}

// What is known, for the threads that answer and the one that samples.
class ExporterPage {
 public:
  ExporterPage(const Context& context, const ExporterSettings& settings, bool dcgm_names,
               cufit_metric_page_function write)
      : context_(context),
        settings_(settings),
        dcgm_names_(dcgm_names),
        write_(write),
        host_name_(machine_name(context)) {}

  void add(const facts::GpuSample& sample, const watch::MachineState& state) {
    const std::lock_guard<std::mutex> lock(mutex_);
    watcher_.add(sample);
    state_ = state;
  }

  bool has_gpus() const { return !watcher_.now().gpus.empty(); }

  Result<std::string> text(double now) {
    // Copied, so that the page is made while sampling goes on.
    watch::WatchedMachine machine;
    watch::MachineState state;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      machine = watcher_.now();
      state = state_;
    }
    std::vector<watch::MetricFamily> families =
        watch::machine_metrics(machine, state, now, settings_.limits, context_.knowledge);
    if (dcgm_names_)
      for (watch::MetricFamily& family :
           watch::dcgm_metrics(machine, host_name_, context_.knowledge))
        families.push_back(std::move(family));
    return report::metric_page(families, write_);
  }
  double sample_time() const { return watcher_.now().time; }

 private:
  const Context& context_;
  const ExporterSettings& settings_;
  const bool dcgm_names_;
  const cufit_metric_page_function write_;
  const std::string host_name_;
  std::mutex mutex_;
  watch::Watcher watcher_;
  watch::MachineState state_;
};

class ExporterRun {
 public:
  ExporterRun(const Context& context, const ExporterRequest& request,
              const ExporterSettings& settings, cufit_metric_page_function write)
      : context_(context),
        request_(request),
        settings_(settings),
        page_(context, settings_, request.dcgm_names, write) {}

  Result<int> once() {
    if (request_.from) {
      CUFIT_TRY(samples, host::read_samples(context_.files, *request_.from));
      for (const facts::GpuSample& sample : samples) page_.add(sample, {});
      CUFIT_TRY(text, page_.text(page_.sample_time()));
      return context_.output.print(text, page_.has_gpus() ? k_ok : k_findings);
    }
    MachineStateReader state(context_);
    const host::SignalPause signals;
    LiveSamples live(context_, settings_.interval);
    FirstAnswer first(context_, live);
    while (first.is_awaited()) {
      if (const int signal = signals.pause(0); signal != 0) return interrupted_exit(signal);
      live.wait(k_exporter_look_seconds);
    }
    page_.add(live.newest(), state.read());
    CUFIT_TRY(text, page_.text(now()));
    return context_.output.print(text, page_.has_gpus() ? k_ok : k_findings);
  }

  Result<int> serve() {
    MachineStateReader state(context_);
    const host::SignalPause signals;
    // The sampler's child is made before there are threads.
    LiveSamples live(context_, settings_.interval);
    page_.add(live.newest(), state.read());
    std::optional<ExporterServer> server;
    if (request_.listen || !request_.textfile) {
      for (const std::string& file : settings_.exposed)
        context_.output.print_message(
            context_.message("watch.exposed", {{"file", file}, {"quoted", shell_word(file)}}));
      server.emplace(context_, settings_.server, request_.config.value_or(""),
                     [this](const std::string& path) { return answer(path); });
      if (Result<void> started = server->start(); !started) return started.error();
      context_.output.print_message(
          context_.message("exporter.listens", {{"url", url_of(server->port())}}));
    }
    double added = 0;
    while (true) {
      if (const int signal = signals.pause(0); signal != 0) {
        // Values of an exporter that is gone would look fresh for ever.
        if (request_.textfile) host::remove_file(*request_.textfile);
        return signal == SIGTERM ? static_cast<int>(k_ok) : interrupted_exit(signal);
      }
      const bool changed = live.wait(k_exporter_look_seconds);
      if (server) server->attend();
      // While the driver does not answer its age is told anew, and the quotas are.
      const double running = host::running_seconds();
      if (!changed && (!live.newest().stalled_seconds || running - added < k_stalled_seconds))
        continue;
      added = running;
      page_.add(live.newest(), state.read());
      say_problem(live.newest());
      // Also while the driver does not answer: the age of the values is in it.
      if (request_.textfile)
        if (Result<void> written = keep_textfile(); !written) return written.error();
    }
  }

 private:
  double now() const { return static_cast<double>(context_.now()); }

  std::string url_of(uint16_t port) const {
    const std::string& address = settings_.server.address;
    const std::string host = address.empty()          ? "localhost"
                             : contains(address, ":") ? "[" + address + "]"
                                                      : address;
    return format("{}://{}:{}/metrics", settings_.server.web.has_tls ? "https" : "http", host,
                  port);
  }

  host::HttpReply answer(const std::string& path) {
    if (path == "/") return {200, "text/html; charset=utf-8", report::exporter_home_page()};
    if (path == "/-/healthy") return {200, {}, "ok\n"};
    if (path != "/metrics") return {404, {}, "404: /metrics is what there is\n"};
    Result<std::string> page = page_.text(now());
    if (!page) return {503, {}, page.error().text() + "\n"};
    return {200, std::string(report::k_metric_page_type), std::move(*page)};
  }

  // Once, and again where it came back in between: the page has only that there are no GPUs.
  void say_problem(const facts::GpuSample& sample) {
    const facts::MissingValue* gone = watch::nvml_problem(sample.missing);
    if (gone != nullptr && !is_gone_)
      context_.output.print_message(context_.message("exporter.no_driver", {{"why", gone->why}}));
    const bool stalled = sample.stalled_seconds.has_value();
    if (stalled && !is_stalled_)
      context_.output.print_message(context_.message(
          sample.stalled_end.empty() ? "exporter.stalled" : "exporter.ended",
          {{"call", sample.stalled_call.empty() ? "NVML" : sample.stalled_call},
           {"end", report::translated_error(sample.stalled_end, context_.language(),
                                            context_.knowledge)}}));
    is_gone_ = gone != nullptr;
    is_stalled_ = stalled;
  }

  // The first must succeed. Later a disk may be full for a while: that is said once.
  Result<void> keep_textfile() {
    const Result<void> written = write_textfile();
    if (!written && !has_written_) return written.error();
    if (!written && !is_failing_) context_.output.print_error(written.error().text());
    has_written_ = true;
    is_failing_ = !written;
    return {};
  }

  // As node_exporter's collector wants it: renamed into place, readable for its user.
  Result<void> write_textfile() {
    CUFIT_TRY(text, page_.text(now()));
    const int problem = host::replace_file(*request_.textfile, text, {.mode = 0644});
    if (problem != 0)
      return fail(Code::io, format("`{}`: {}", *request_.textfile, std::strerror(problem)));
    return {};
  }

  const Context& context_;
  const ExporterRequest& request_;
  const ExporterSettings& settings_;
  bool has_written_ = false, is_failing_ = false, is_gone_ = false, is_stalled_ = false;
  ExporterPage page_;
};

}  // namespace

std::span<const Option> exporter_options() { return k_exporter_options; }

int run_exporter(const Context& context, const ExporterRequest& request) {
  const Output& output = context.output;
  const Result<ExporterSettings> settings = read_settings(context, request);
  if (!settings) return output.exit_code_for(settings.error());
  const Result<cufit_metric_page_function> write = host::open_prometheus_text();
  if (!write) return output.exit_code_for(write.error());
  ExporterRun run(context, request, *settings, *write);
  const Result<int> ended = request.once ? run.once() : run.serve();
  return ended ? *ended : output.exit_code_for(ended.error());
}

}  // namespace cufit::commands
