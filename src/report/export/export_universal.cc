// SPDX-License-Identifier: Apache-2.0
// `--to dockerfile --with jupyter,ssh`: one image with several environments that share files, a
// Jupyter kernel for each, and sshd. All environments are made by one RUN from one cache of the
// installer, so that what they have in common is one file with several names (hard links). That
// holds within a layer only, therefore there is no stage that they are copied from.
#include <algorithm>

#include "base/format.h"
#include "base/sha256.h"
#include "base/shell_word.h"
#include "report/export/export_values.h"
#include "report/json/json_value.h"
#include "report/report.h"

namespace cufit::report {
namespace {

constexpr const char* k_jupyter_port = "8888";
constexpr const char* k_ssh_port = "2222";

bool serves(const ExportView& view, std::string_view service) {
  return std::find(view.with.begin(), view.with.end(), service) != view.with.end();
}

std::string torch_line(const resolve::LockClass& one) {
  return format("torch {}, {}", one.wheel.torch,
                one.wheel.cuda ? "CUDA " + one.wheel.cuda->text() : std::string("CPU"));
}

// Sentences of the script, each one word of a shell.
void set_sentences(const ExportView& view, Scope& scope) {
  for (const char* name : {"root", "state", "private", "bad_key", "unreadable", "no_keys", "short",
                           "characters", "token", "nothing", "ended"})
    scope.values[std::string("say_") + name] =
        shell_word(message(view.knowledge, std::string("export.say.") + name, view.lang));
}

Result<Scope> universal_scope(const ExportView& view, const std::string& lock_sha256) {
  CUFIT_TRY(scope, image_scope(view));
  const bool jupyter = serves(view, "jupyter"), ssh = serves(view, "ssh");
  std::vector<std::string> names, quoted{"\"auto\""}, torches, ports, published;
  for (const ExportClass& one : view.classes) {
    names.push_back(one.lock.name);
    quoted.push_back("\"" + one.lock.name + "\"");
    torches.push_back(one.lock.name + ": " + torch_line(one.lock));
  }
  if (jupyter) ports.push_back(k_jupyter_port);
  if (ssh) ports.push_back(k_ssh_port);
  for (const std::string& port : ports)
    published.push_back(format("-p 127.0.0.1:{}:{}", port, port));
  scope.values["jupyter"] = jupyter ? "yes" : "";
  scope.values["ssh"] = ssh ? "yes" : "";
  scope.values["ports"] = " " + join(ports, " ");
  scope.values["publish"] = join(published, " ");
  scope.values["create"] = join(names, " ");
  scope.values["kernels"] = join(quoted, ", ");
  scope.values["title"] = "PyTorch: " + join(names, ", ");
  scope.values["description"] = join(torches, "; ");
  scope.values["lock_sha256"] = lock_sha256;
  scope.values["lock_short"] = lock_sha256.substr(0, 12);
  set_sentences(view, scope);
  return scope;
}

// A kernel of one class, or of the class that `cufit run` takes on the machine at hand.
ExportFile kernel_file(const ExportView& view, const resolve::LockClass* one) {
  const std::string name = one == nullptr ? "auto" : one->name;
  Json out;
  std::vector<std::string> words{"cufit", "run", "-q", "--", "python"};
  if (one != nullptr) {
    const std::string folder = "/opt/cufit/.cufit/envs/" + one->name;
    words = {folder + "/bin/python"};
    out["env"] = {
        {"VIRTUAL_ENV", folder}, {"CUFIT_CLASS", one->name}, {"PATH", folder + "/bin:${PATH}"}};
  }
  words.insert(words.end(), {"/opt/cufit/image/kernel.py", "-f", "{connection_file}"});
  out["argv"] = words;
  out["display_name"] = one == nullptr ? message(view.knowledge, "export.jupyter.auto", view.lang)
                                       : one->name + ": " + torch_line(*one);
  out["language"] = "python";
  out["metadata"] = {{"debugger", true}};
  return {"image/jupyter/kernels/" + name + "/kernel.json", out.dump(2) + "\n"};
}

}  // namespace

ExportFiles export_universal(const ExportView& view) {
  const std::string own_lock = image_lock_text(view);
  const std::string sum = own_lock.empty() ? view.lock_sha256 : sha256(own_lock);
  for (const ExportClass& one : view.classes)
    if (one.lock.name == "auto")
      return tl::unexpected(
          fail(Code::unsupported, format("{}: a class `auto` cannot have a Jupyter kernel of that "
                                         "name: the one that `cufit run` chooses is called so",
                                         view.lock.path)));
  CUFIT_TRY(scope, universal_scope(view, sum));
  std::vector<ExportFile> out =
      with_lock({"Dockerfile", filled("universal.Dockerfile", scope, view)}, view);
  out.push_back({"image/services", filled("services", scope, view), true});
  out.push_back({"image/sbom.cdx.json", sbom_text(view, sum)});
  if (serves(view, "ssh")) {
    out.push_back({"image/sshd_config", filled("sshd_config", scope, view)});
    out.push_back({"image/profile.sh", filled("profile.sh", scope, view)});
  }
  if (serves(view, "jupyter")) {
    // A word of a shell in single quotes is one of Python's as well, but for what a quote becomes.
    Scope python = scope;
    python.values["say_short"] =
        Json(message(view.knowledge, "export.say.short", view.lang)).dump();
    out.push_back(
        {"image/jupyter_server_config.py", filled("jupyter_server_config.py", python, view)});
    out.push_back({"image/kernel.py", filled("kernel.py", scope, view)});
    out.push_back(kernel_file(view, nullptr));
    for (const ExportClass& one : view.classes) out.push_back(kernel_file(view, &one.lock));
  }
  return out;
}

}  // namespace cufit::report
