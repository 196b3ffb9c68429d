// SPDX-License-Identifier: Apache-2.0
#include "commands/watch/exporter_server.h"

#include "base/format.h"
#include "base/shell_word.h"
#include "host/process/signal_pause.h"
#include "report/error_translation.h"

namespace cufit::commands {
namespace {

constexpr double k_files_look_seconds = 3;

}  // namespace

ExporterServer::ExporterServer(const Context& context, host::HttpServerOptions options,
                               std::string config, Answer answer)
    : context_(context),
      options_(std::move(options)),
      config_(std::move(config)),
      answer_(std::move(answer)) {}

Result<void> ExporterServer::start() {
  // Before they are read: what is written meanwhile is seen at the next look.
  if (!config_.empty() && stamp_.empty()) stamp_ = web_stamp(config_, options_.web);
  CUFIT_TRY(started, host::HttpServer::start(options_, answer_));
  server_.emplace(std::move(started));
  options_.port = server_->port();
  looked_ = host::running_seconds();
  return {};
}

Result<void> ExporterServer::try_settings(const WebSettings& settings) const {
  host::HttpServerOptions trial;
  trial.web = settings.config;
  CUFIT_TRY(started, host::HttpServer::start(trial, [](const std::string&) {
              return host::HttpReply{503, {}, {}};
            }));
  (void)started;
  return {};
}

void ExporterServer::take(const std::string& stamp) {
  stamp_ = stamp;
  Result<WebSettings> settings = read_web_settings(context_, config_);
  Result<void> good = settings ? try_settings(*settings) : Result<void>(settings.error());
  if (!good) {
    context_.output.print_message(
        context_.message("exporter.not_taken",
                         {{"why", report::translated_error(good.error().text(), context_.language(),
                                                           context_.knowledge)}}));
    return;
  }
  for (const std::string& file : settings->exposed)
    context_.output.print_message(
        context_.message("watch.exposed", {{"file", file}, {"quoted", shell_word(file)}}));
  options_.web = std::move(settings->config);
  stamp_ = web_stamp(config_, options_.web);  // it may name other files now
  server_.reset();
  if (const Result<void> started = start(); !started)
    context_.output.print_error(started.error().text());
  else
    context_.output.print_message(context_.message("exporter.taken", {{"file", config_}}));
}

void ExporterServer::attend() {
  const double now = host::running_seconds();
  if (config_.empty() || now - looked_ < k_files_look_seconds) return;
  looked_ = now;
  if (!server_) {  // somebody had the port at that moment
    if (start())
      context_.output.print_message(context_.message("exporter.taken", {{"file", config_}}));
    return;
  }
  const std::string stamp = web_stamp(config_, options_.web);
  if (stamp != stamp_ && stamp == changed_) take(stamp);
  changed_ = stamp;
}

}  // namespace cufit::commands
