// SPDX-License-Identifier: Apache-2.0
// What several formats of `cufit export` say of a class, and the writers of each format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/export.h"
#include "report/export/export_template.h"

namespace cufit::report {

using ExportFiles = Result<std::vector<ExportFile>>;

// Every text that a template takes as it is: class names, versions, tags, file names.
Result<void> check_plain(const ExportView& view);

// "made" and "class" of the templates: version, classes, and per class name, torch, python, ...
Scope common_scope(const ExportView& view);
Scope class_scope(const ExportClass& one, const ExportView& view);
std::string filled(const char* name, const Scope& scope, const ExportView& view);

// An image of some of the lock's classes is built from a lock of these.
bool all_classes(const ExportView& view);
bool has_cpu(const ExportView& view);
bool has_gpu(const ExportView& view);

// "12.0" of CUDA 12.6: by minor-version compatibility any driver of the family runs it.
std::string family_floor_text(const Version& cuda);
// Lowest family of the classes; empty where a CPU class is inside.
std::string required_cuda(const ExportView& view);
std::optional<Version> driver_floor(const resolve::Wheel& wheel,
                                    const knowledge::Knowledge& knowledge);

// The GPUs that a class runs on, as the tables of GPUs know them.
struct Coverage {
  std::vector<ComputeCapability> by_code;  // with machine code
  std::vector<ComputeCapability> by_ptx;   // compiled by the driver of its toolkit or a newer one
};
Coverage coverage_of(const resolve::Wheel& wheel, const knowledge::Knowledge& knowledge);
// Capabilities of the table that machines of this platform can have, lowest first.
std::vector<ComputeCapability> known_capabilities(std::string_view platform,
                                                  const knowledge::Knowledge& knowledge);

// Packages of the lock that are folders of the user, relative to the lock's own: each once, as rows
// "folder" of the scope (package; path: "." or "lib"; argument: what `pip install` takes). Where
// such a path says more than letters can, Error{unsupported}.
Result<void> add_folders(const ExportView& view, Scope& scope);
// Whether all of them lie below the lock's folder, which is what a build context holds.
Result<void> folders_are_inside(const Scope& scope, const ExportView& view);

// An index's URL without "user:password@": a password does not belong into a file that is shared.
std::string without_password(const std::string& url);

// A URL as one word of a line: nothing that ends it, continues it or is expanded.
bool is_url_word(const std::string& url);
// The wheel that this class's Python on its platform takes; nullptr = none, or none with a URL.
const formats::PylockFile* wheel_with_url(const formats::PylockPackage& package,
                                          const ExportClass& one);
// "2.14.1+cu126": on no default index, which refuses local versions.
bool is_local(const formats::PylockPackage& package);

// What dockerfile and apptainer say of the image: base, notes, required CUDA, files that are copied.
Result<Scope> image_scope(const ExportView& view);
// An image with some of the classes needs a lock of these: `cufit run` would choose one that is not
// inside. Its text; empty where the image has the lock as it is.
std::string image_lock_text(const ExportView& view);
std::vector<ExportFile> with_lock(ExportFile file, const ExportView& view);
// `--to dockerfile --with jupyter,ssh`: the Dockerfile and what is copied beside the environments.
ExportFiles export_universal(const ExportView& view);
// CycloneDX 1.6 of the classes' packages. `lock_sha256`: of the lock in the image.
std::string sbom_text(const ExportView& view, const std::string& lock_sha256);

// One image serves one platform: Error{unsupported} where the classes differ.
Result<void> one_platform(const ExportView& view);
std::string base_image(const ExportView& view);
bool one_python(const ExportView& view);  // and one that official images have

// One file per writer, all in the table of export.cc.
ExportFiles export_uv(const ExportView& view);     // export_uv.cc
ExportFiles export_pip(const ExportView& view);    // export_pip.cc
ExportFiles export_conda(const ExportView& view);  // export_conda.cc
ExportFiles export_pixi(const ExportView& view);
ExportFiles export_dockerfile(const ExportView& view);  // export_container.cc
ExportFiles export_compose(const ExportView& view);
ExportFiles export_devcontainer(const ExportView& view);
ExportFiles export_apptainer(const ExportView& view);
ExportFiles export_k8s(const ExportView& view);  // export_cluster.cc
ExportFiles export_slurm(const ExportView& view);

}  // namespace cufit::report
