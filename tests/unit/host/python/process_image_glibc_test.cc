// SPDX-License-Identifier: Apache-2.0
// The simulated link map against the real one: small shared objects are built, a program that needs
// or opens them is run under this machine's glibc and lists its objects; process_image must list
// the same files in the same order, and fail where glibc fails. LoaderSettings come from the same
// machine, so its ld.so.cache takes part.
#include "host/python/process_image.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "base/format.h"
#include "unit/host/temporary_tree.h"

namespace cufit::host {
namespace process_image_glibc_test {

struct Object {
  const char* path;  // "A/libx.so"
  const char* needed =
      "";  // paths of other objects, in order; a leading "!" is given to the linker as it is
  const char* flags = "";  // linker flags; the text @ stands for the temporary folder
  const char* opens = "";  // its constructor calls dlopen with this name
};

struct Case {
  const char* name;
  std::vector<Object>
      objects;  // in the order in which they can be linked; the last one is the program
  const char* ld_library_path = "";
  const char* ld_preload = "";
  std::vector<const char*> arguments = {};  // the program calls dlopen with each
  const char* after_build = "";             // shell commands in the temporary folder
  const char* runs = "";                    // path by which the program is started, if not its own
};

#define RPATH(dirs) "-Wl,--disable-new-dtags,-rpath,'" dirs "'"
#define RUNPATH(dirs) "-Wl,--enable-new-dtags,-rpath,'" dirs "'"

// Both copies of three libraries that need each other as CUDA's do: cuBLAS has RUNPATH $ORIGIN and
// needs cuBLASLt.
std::vector<Object> cuda_like(std::initializer_list<Object> rest) {
  std::vector<Object> out = {{"A/librt.so"},
                             {"B/librt.so"},
                             {"A/liblt.so"},
                             {"B/liblt.so"},
                             {"A/libblas.so", "A/liblt.so", RUNPATH("$ORIGIN")},
                             {"B/libblas.so", "B/liblt.so", RUNPATH("$ORIGIN")}};
  out.insert(out.end(), rest);
  return out;
}

std::vector<Case> make_cases() {
  return {
      {"torch_rpath_against_ld_library_path",
       cuda_like({{"W/libw.so", "A/librt.so A/libblas.so", RPATH("$ORIGIN/../A")},
                  {"main", "W/libw.so", RPATH("@/W")}}),
       "@/B"},
      {"torch_runpath_against_ld_library_path",
       cuda_like({{"W/libw.so", "A/librt.so A/libblas.so", RUNPATH("$ORIGIN/../A")},
                  {"main", "W/libw.so", RPATH("@/W")}}),
       "@/B"},
      {"lt_needed_directly_before_blas",
       cuda_like({{"W/libw.so", "A/liblt.so A/libblas.so", RPATH("$ORIGIN/../A")},
                  {"main", "W/libw.so", RPATH("@/W")}}),
       "@/B"},
      {"lt_needed_directly_after_blas",
       cuda_like({{"W/libw.so", "A/libblas.so A/liblt.so", RPATH("$ORIGIN/../A")},
                  {"main", "W/libw.so", RPATH("@/W")}}),
       "@/B"},
      {"lt_needed_one_level_deeper_than_blas_needs_it",
       cuda_like({{"W/libv.so", "A/liblt.so", RPATH("$ORIGIN/../A")},
                  {"W/libw.so", "A/libblas.so W/libv.so", RPATH("$ORIGIN/../A:$ORIGIN")},
                  {"main", "W/libw.so", RPATH("@/W")}}),
       "@/B"},
      {"preload_by_path_repairs_lt",
       cuda_like({{"W/libw.so", "A/librt.so A/libblas.so", RPATH("$ORIGIN/../A")}, {"main"}}),
       "@/B",
       "",
       {"@/A/liblt.so", "@/W/libw.so"}},
      {"rpath_is_inherited",
       {{"A/libb.so"}, {"A/liba.so", "A/libb.so"}, {"main", "A/liba.so", RPATH("$ORIGIN/A")}}},
      {"runpath_is_not_inherited",
       {{"A/libb.so"}, {"A/liba.so", "A/libb.so"}, {"main", "A/liba.so", RUNPATH("$ORIGIN/A")}}},
      {"chain_passes_through_an_object_with_runpath",
       {{"R/libc1.so"},
        {"X/libb.so", "R/libc1.so"},
        {"R/liba.so", "X/libb.so", RUNPATH("@/X")},
        {"main", "R/liba.so", RPATH("@/R")}}},
      {"runpath_of_requester_hides_rpath_of_its_loaders",
       {{"R/libb.so"},
        {"R/liba.so", "R/libb.so", RUNPATH("@/X")},
        {"main", "R/liba.so", RPATH("@/R")}}},
      {"rpath_order_is_requester_then_loader",
       {{"A/libb.so"},
        {"B/libb.so"},
        {"A/liba.so", "A/libb.so", RPATH("@/A")},
        {"main", "A/liba.so", RPATH("@/B:@/A")}}},
      {"diamond_first_requester_wins",
       {{"C/libx.so"},
        {"D/libx.so"},
        {"L/liba.so", "C/libx.so", RUNPATH("@/D")},
        {"L/libb.so", "C/libx.so", RUNPATH("@/C")},
        {"main", "L/libb.so L/liba.so", RUNPATH("@/L")}}},
      {"breadth_before_depth",
       {{"C/libx.so"},
        {"D/libx.so"},
        {"L/libdeep.so", "C/libx.so", RUNPATH("@/C")},
        {"L/liba.so", "L/libdeep.so", RUNPATH("@/L")},
        {"L/libb.so", "C/libx.so", RUNPATH("@/D")},
        {"main", "L/liba.so L/libb.so", RUNPATH("@/L")}}},
      {"dlopen_uses_runpath_of_caller",
       {{"P/libsub.so"},
        {"L/libopener.so", "", RUNPATH("@/P"), "libsub.so"},
        {"main", "L/libopener.so", RUNPATH("@/L")}}},
      {"dlopen_prefers_ld_library_path_to_runpath_of_caller",
       {{"P/libsub.so"},
        {"Q/libsub.so"},
        {"L/libopener.so", "", RUNPATH("@/P"), "libsub.so"},
        {"main", "L/libopener.so", RUNPATH("@/L")}},
       "@/Q"},
      {"dlopen_prefers_rpath_of_caller_to_ld_library_path",
       {{"P/libsub.so"},
        {"Q/libsub.so"},
        {"L/libopener.so", "", RPATH("@/P"), "libsub.so"},
        {"main", "L/libopener.so", RUNPATH("@/L")}},
       "@/Q"},
      {"dlopen_uses_rpath_of_the_callers_loader",
       {{"L/libsub.so"},
        {"L/libopener.so", "", "", "libsub.so"},
        {"main", "L/libopener.so", RPATH("@/L")}}},
      {"dlopen_does_not_use_runpath_of_the_callers_loader",
       {{"L/libsub.so"},
        {"L/libopener.so", "", "", "libsub.so"},
        {"main", "L/libopener.so", RUNPATH("@/L")}}},
      {"dependencies_of_a_dlopened_object_do_not_inherit_rpath_of_the_caller",
       {{"P/libdep.so"},
        {"P/libsub.so", "P/libdep.so"},
        {"L/libopener.so", "", RPATH("@/P"), "libsub.so"},
        {"main", "L/libopener.so", RUNPATH("@/L")}}},
      {"dependencies_of_a_dlopened_object_do_not_inherit_runpath_of_the_caller",
       {{"P/libdep.so"},
        {"P/libsub.so", "P/libdep.so"},
        {"L/libopener.so", "", RUNPATH("@/P"), "libsub.so"},
        {"main", "L/libopener.so", RUNPATH("@/L")}}},
      {"object_opened_by_path_inherits_rpath_of_the_program",
       {{"P/libdep.so"}, {"L/libsub.so", "P/libdep.so"}, {"main", "", RPATH("@/P")}},
       "",
       "",
       {"@/L/libsub.so"}},
      {"opened_by_path_is_reused_by_soname",
       {{"P/libdep.so"}, {"Q/libdep.so"}, {"L/libsub.so", "Q/libdep.so", RPATH("@/Q")}, {"main"}},
       "",
       "",
       {"@/P/libdep.so", "@/L/libsub.so"}},
      {"one_file_under_two_names_is_one_object",
       {{"P/libdep.so"}, {"L/libsub.so", "P/libdep.so", RPATH("@/Q")}, {"main"}},
       "",
       "",
       {"@/Q/other.so", "@/L/libsub.so"},
       "mkdir Q; ln -s ../P/libdep.so Q/other.so; ln -s ../P/libdep.so Q/libdep.so"},
      {"failed_dlopen_leaves_nothing_behind",
       {{"A/libgood.so"},
        {"A/libbad.so"},
        {"A/liba.so", "A/libgood.so A/libbad.so", RUNPATH("@/A")},
        {"A/libz1.so", "A/libgood.so"},
        {"main"}},
       "",
       "",
       {"@/A/liba.so", "libgood.so", "@/A/libz1.so"},
       "rm A/libbad.so"},
      {"ld_preload_is_reused",
       {{"A/liba.so"},
        {"B/liba.so"},
        {"C/libc1.so"},
        {"main", "C/libc1.so A/liba.so", RPATH("@/A:@/C")}},
       "",
       "@/B/liba.so"},
      {"ld_preload_brings_its_own_needs_after_the_programs",
       {{"A/libx.so"},
        {"B/libx.so"},
        {"B/libpre.so", "B/libx.so", RUNPATH("@/B")},
        {"main", "A/libx.so", RUNPATH("@/A")}},
       "",
       "@/B/libpre.so:libnotthere.so"},
      {"ld_library_path_takes_semicolons_and_slashes",
       {{"A/liba.so"}, {"B/liba.so"}, {"main", "A/liba.so"}},
       "@/nowhere;@/B//:@/A"},
      {"origin_in_ld_library_path_is_the_programs",
       {{"A/liba.so"}, {"main", "A/liba.so"}},
       "$ORIGIN/A"},
      {"other_machine_is_passed_over",
       {{"A/liba.so"}, {"B/liba.so"}, {"main", "A/liba.so", RUNPATH("@/A:@/B")}},
       "",
       "",
       {},
       "printf '\\267' | dd of=A/liba.so bs=1 seek=18 conv=notrunc 2>/dev/null"},
      {"other_class_is_passed_over",
       {{"A/liba.so"}, {"B/liba.so"}, {"main", "A/liba.so", RUNPATH("@/A:@/B")}},
       "",
       "",
       {},
       "printf '\\001' | dd of=A/liba.so bs=1 seek=4 conv=notrunc 2>/dev/null"},
      {"text_file_ends_the_search",
       {{"A/liba.so"}, {"B/liba.so"}, {"main", "A/liba.so", RUNPATH("@/A:@/B")}},
       "",
       "",
       {},
       "printf 'INPUT(-lsomething_long_enough_to_be_read_as_a_whole_header_of_an_object)' > "
       "A/liba.so"},
      {"empty_file_ends_the_search",
       {{"A/liba.so"}, {"B/liba.so"}, {"main", "A/liba.so", RUNPATH("@/A:@/B")}},
       "",
       "",
       {},
       ": > A/liba.so"},
      {"folder_of_that_name_ends_the_search",
       {{"A/liba.so"}, {"B/liba.so"}, {"main", "A/liba.so", RUNPATH("@/A:@/B")}},
       "",
       "",
       {},
       "rm A/liba.so; mkdir A/liba.so"},
      {"needed_name_with_a_slash",
       {{"A/libplain.so", "", "-Wl,-soname,@/A/libplain.so"}, {"main", "A/libplain.so"}},
       "@/B"},
      {"origin_of_a_linked_folder_is_not_resolved",
       {{"real/libb.so"},
        {"real/liba.so", "real/libb.so", RUNPATH("$ORIGIN/../B")},
        {"main", "real/liba.so", RPATH("@/x/L")}},
       "",
       "",
       {},
       "mkdir -p x/B B; ln -s ../real x/L; mv real/libb.so x/B/; cp x/B/libb.so B/"},
      {"origin_of_a_linked_program_is_resolved",
       {{"A/liba.so"}, {"main", "A/liba.so", RPATH("$ORIGIN/A")}},
       "",
       "",
       {},
       "mkdir bin; ln -s ../main bin/python",
       "bin/python"},
      {"hwcaps_folder_comes_first",
       {{"A/liba.so"}, {"main", "A/liba.so", RPATH("@/A")}},
       "",
       "",
       {},
       "mkdir -p A/glibc-hwcaps/x86-64-v2 A/glibc-hwcaps/x86-64-v9; cp A/liba.so "
       "A/glibc-hwcaps/x86-64-v2/;"
       "cp A/liba.so A/glibc-hwcaps/x86-64-v9/"},
      {"hwcaps_best_level_first",
       {{"A/liba.so"}, {"main", "A/liba.so"}},
       "@/A",
       "",
       {},
       "for v in 2 3 4; do mkdir -p A/glibc-hwcaps/x86-64-v$v; cp A/liba.so "
       "A/glibc-hwcaps/x86-64-v$v/; done"},
      {"system_library_from_the_cache",
       {{"A/liba.so", "!-lm !-lpthread"}, {"main", "A/liba.so", RPATH("@/A")}}},
      {"nodefaultlib_skips_the_system",
       {{"A/liba.so", "!-lm", "-Wl,-z,nodefaultlib"}, {"main", "A/liba.so", RPATH("@/A")}}},
      {"token_lib",
       {{"A/lib/x86_64-linux-gnu/liba.so"},
        {"main", "A/lib/x86_64-linux-gnu/liba.so", RPATH("@/A/$LIB")}}},
      {"braces_around_origin", {{"A/liba.so"}, {"main", "A/liba.so", RUNPATH("${ORIGIN}/A")}}},
      {"missing_everywhere", {{"A/liba.so"}, {"main", "A/liba.so"}}},
  };
}

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

struct Output {
  std::string text;
  int status = -1;
};

Output run(const std::string& command) {
  Output out;
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return out;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.text.append(buffer, got);
  out.status = pclose(pipe);
  return out;
}

const char* const k_program = R"(
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
static int print(struct dl_phdr_info* info, size_t size, void* data) { (void)size; (void)data; puts(info->dlpi_name); return 0; }
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) if (!dlopen(argv[i], RTLD_NOW | RTLD_GLOBAL)) printf("FAILED %s\n", argv[i]);
  dl_iterate_phdr(print, 0);
  return 0;
}
)";
const char* const k_opener = R"(
#include <dlfcn.h>
#include <stdio.h>
__attribute__((constructor)) static void open_it(void) { if (!dlopen(NAME, RTLD_NOW)) printf("FAILED %s\n", NAME); }
)";

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

class GlibcAgreement : public testing::TestWithParam<Case> {
 protected:
  std::string here(const std::string& text) const { return replace_all(text, "@", tree.root()); }

  void build() {
    tree.write("/empty.c", "");
    tree.write("/program.c", k_program);
    tree.write("/opener.c", k_opener);
    std::string script = "set -e; cd " + tree.root() + "; gcc -fPIC -c empty.c; ";
    for (const Object& object : GetParam().objects) {
      bool program = std::string(object.path) == "main";
      std::string needed, path = object.path;
      for (std::string_view name : split(object.needed, ' ')) {
        if (name.empty()) continue;
        needed += name[0] == '!' ? " " + std::string(name.substr(1))
                                 : " " + tree.at("/" + std::string(name));
      }
      if (path.find('/') != std::string::npos)
        script += "mkdir -p " + path.substr(0, path.rfind('/')) + "; ";
      script += "gcc -o " + path + " -Wl,--no-as-needed -Wl,--unresolved-symbols=ignore-all ";
      bool needs_libc =
          program || *object.opens || std::string(object.needed).find('!') != std::string::npos;
      if (!program) script += "-shared -fPIC ";
      if (!needs_libc) script += "-nostdlib ";
      if (!program && std::string(object.flags).find("-soname") == std::string::npos)
        script += "-Wl,-soname," + file_name(path) + " ";
      if (*object.opens) script += "-DNAME='\"" + here(object.opens) + "\"' ";
      script += program ? "program.c" : *object.opens ? "opener.c" : "empty.o";
      script += needed + " " + here(object.flags) + " 2>> log; ";
    }
    script += here(GetParam().after_build);
    tree.write("/build.sh", script);
    ASSERT_EQ(run("bash " + tree.at("/build.sh")).status, 0) << run("cat " + tree.at("/log")).text;
  }

  std::string program_path() const {
    return tree.at("/" + std::string(*GetParam().runs ? GetParam().runs : "main"));
  }

  // What glibc did: paths in load order, "FAILED name" for each dlopen, or "DEAD name" if the
  // program did not start.
  std::vector<std::string> real() const {
    std::string command = "env -i";
    if (*GetParam().ld_library_path)
      command += " 'LD_LIBRARY_PATH=" + here(GetParam().ld_library_path) + "'";
    if (*GetParam().ld_preload) command += " 'LD_PRELOAD=" + here(GetParam().ld_preload) + "'";
    command += " " + program_path();
    for (const char* argument : GetParam().arguments) command += " " + here(argument);
    Output output = run(command + " 2>" + tree.at("/errors"));
    std::vector<std::string> out;
    if (output.status != 0) {
      // "./main: error while loading shared libraries: libb.so: cannot open shared object file:
      // ..."
      std::string errors = run("grep 'error while loading' " + tree.at("/errors")).text;
      std::string rest = errors.substr(std::min(errors.size(), errors.find("libraries: ") + 11));
      out.push_back("DEAD " + file_name(rest.substr(0, rest.find(':'))));
      return out;
    }
    for (std::string_view line : split_lines(output.text)) {
      if (line.empty() || contains(line, "linux-vdso") || contains(line, "/ld-linux")) continue;
      out.emplace_back(line);
    }
    std::stable_partition(out.begin(), out.end(),
                          [](const std::string& line) { return starts_with(line, "FAILED"); });
    return out;
  }

  std::vector<std::string> simulated() const {
    std::map<std::string, std::string> variables;
    if (*GetParam().ld_library_path)
      variables["LD_LIBRARY_PATH"] = here(GetParam().ld_library_path);
    if (*GetParam().ld_preload) variables["LD_PRELOAD"] = here(GetParam().ld_preload);
    RealHost host("", variables);
    LibrarySearch search(host, read_loader_settings(host));
    ProcessImage image(host, search, [&](const std::string& path, std::string& why) {
      std::shared_ptr<const formats::ElfFile> none;
      auto source = host.open(path);
      if (!source) return why = source.error().text(), none;
      formats::ElfOptions options;
      options.device_code = false;
      auto elf = formats::read_elf(**source, options);
      if (!elf) return why = elf.error().text(), none;
      return std::shared_ptr<const formats::ElfFile>(
          std::make_shared<formats::ElfFile>(std::move(*elf)));
    });
    std::vector<std::string> out;
    std::vector<LoadFailure> failures = image.start(program_path());
    if (!failures.empty()) return {"DEAD " + file_name(failures[0].name)};
    run_constructors(image, 0, out);
    for (const char* argument : GetParam().arguments) {
      size_t before = image.objects().size();
      if (!image.open(here(argument), &image.objects()[0], ProcessImage::OnFailure::undo).empty()) {
        out.push_back("FAILED " + here(argument));
      } else {
        run_constructors(image, before, out);
      }
    }
    for (size_t i = 1; i < image.objects().size(); ++i)
      if (!contains(image.objects()[i].path, "/ld-linux")) out.push_back(image.objects()[i].path);
    return out;
  }

  void run_constructors(ProcessImage& image, size_t first, std::vector<std::string>& out) const {
    for (size_t i = first; i < image.objects().size(); ++i) {
      for (const Object& object : GetParam().objects) {
        if (!*object.opens || image.objects()[i].path != tree.at("/" + std::string(object.path)))
          continue;
        std::string name = here(object.opens);
        if (!image.open(name, &image.objects()[i], ProcessImage::OnFailure::undo).empty())
          out.push_back("FAILED " + name);
      }
    }
  }

  TemporaryTree tree;
};

TEST_P(GlibcAgreement, SameFilesInTheSameOrder) {
#if !defined(__x86_64__) || !defined(__GLIBC__)
  GTEST_SKIP() << "the layouts are made for glibc on x86-64";
#endif
  if (run("gcc --version 2>/dev/null").status != 0)
    GTEST_SKIP() << "no gcc to build the objects with";
  build();
  if (HasFatalFailure()) return;
  std::vector<std::string> expected = real();
  if (!expected.empty() && expected[0].empty()) expected.erase(expected.begin());
  EXPECT_EQ(join(simulated(), "\n"), join(expected, "\n"));
  EXPECT_FALSE(expected.empty());
}

INSTANTIATE_TEST_SUITE_P(Layouts, GlibcAgreement, testing::ValuesIn(make_cases()),
                         [](const auto& param) { return std::string(param.param.name); });

}  // namespace process_image_glibc_test
}  // namespace cufit::host
