// SPDX-License-Identifier: Apache-2.0
// The texts are written for this test in the shape of the eras that torch_preload.h names.
#include "formats/python/torch_preload.h"

#include <gtest/gtest.h>

#include "base/format.h"

namespace cufit::formats {
namespace torch_preload_test {

std::string names(const std::vector<PreloadStep>& steps) {
  std::string out;
  for (const PreloadStep& step : steps)
    out += step.folder + "/" + step.pattern.substr(0, step.pattern.find('.')) +
           (step.required ? " " : "? ");
  return out;
}

TEST(TorchPreload, OldTorchHasNone) {
  TorchPreload preload = parse_torch_preload("def _load_global_deps():\n  pass\n");
  EXPECT_TRUE(preload.after_success.empty());
  EXPECT_TRUE(preload.after_failure.empty());
}

TEST(TorchPreload, CallsOnSuccessAndDictOnFailure) {
  TorchPreload preload = parse_torch_preload(R"(
def _preload_cuda_deps(lib_folder, lib_name):
    """Opens one."""
    assert platform.system() == "Linux", "Linux only"

def _load_global_deps():
    try:
            if "nvidia/cuda_runtime/lib/libcudart.so" not in _maps:
                return
            _preload_cuda_deps("cuda_nvrtc", "libnvrtc.so.*[0-9]")
            # _preload_cuda_deps("commented", "libout.so.*[0-9]")
            _preload_cuda_deps("nvjitlink", "libnvJitLink.so.*[0-9]")
    except OSError as err:
        cuda_libs = {
            "cublas": "libcublas.so.*[0-9]",
            "cudnn": "libcudnn.so.*[0-9]",
        }
        if t_major >= 12:
                cuda_libs["cufile"] = "libcufile.so.*[0-9]"
        for lib_folder, lib_name in cuda_libs.items():
            _preload_cuda_deps(lib_folder, lib_name)
if (USE_RTLD_GLOBAL_WITH_LIBTORCH or os.getenv("x")):
    x = {"late": "liblate.so.*"}
)");
  EXPECT_EQ(names(preload.after_success), "cuda_nvrtc/libnvrtc nvjitlink/libnvJitLink ");
  EXPECT_EQ(names(preload.after_failure), "cublas/libcublas cudnn/libcudnn cufile/libcufile ");
  EXPECT_EQ(preload.maps_marker, "nvidia/cuda_runtime/lib/libcudart.so");
  EXPECT_FALSE(preload.looks_in_cuda_major_folder);
}

TEST(TorchPreload, OneListForBoth) {
  TorchPreload preload = parse_torch_preload(R"(
        os.path.join(path, "nvidia", f"cu{maj_cuda_version}", "lib", lib_name)
def _preload_cuda_deps(err=None):
    cuda_libs = [
        # NOTE: order
        ("cublas", "libcublasLt.so.*[0-9]"),
        ("cublas", "libcublas.so.*[0-9]"),
    ]
    for lib_folder, lib_name in cuda_libs:
        _preload_cuda_lib(lib_folder, lib_name)
    _preload_cuda_lib("nvtx", "libnvToolsExt.so.*[0-9]", required=False)

def _load_global_deps():
            if "libcudart.so" not in _maps:
                return
            _preload_cuda_deps()
    except OSError as err:
        _preload_cuda_deps(err)
)");
  EXPECT_EQ(names(preload.after_success),
            "cublas/libcublasLt cublas/libcublas nvtx/libnvToolsExt? ");
  EXPECT_EQ(names(preload.after_failure), names(preload.after_success));
  EXPECT_EQ(preload.maps_marker, "libcudart.so");
  EXPECT_TRUE(preload.looks_in_cuda_major_folder);
}

TEST(TorchPreload, Patterns) {
  EXPECT_TRUE(matches_pattern("libcublas.so.12", "libcublas.so.*[0-9]"));
  EXPECT_TRUE(matches_pattern("libnvrtc-builtins.so.13.0", "libnvrtc-builtins.so.*[0-9]"));
  EXPECT_FALSE(matches_pattern("libcublas.so", "libcublas.so.*[0-9]"));
  EXPECT_FALSE(matches_pattern("libcublasLt.so.12", "libcublas.so.*[0-9]"));
  EXPECT_FALSE(matches_pattern("libcublas.so.12.bak", "libcublas.so.*[0-9]"));
}

}  // namespace torch_preload_test
}  // namespace cufit::formats
