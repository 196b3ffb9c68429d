#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/stub_cuda.py TORCH/lib: makes a PyTorch with CUDA import where its CUDA libraries (3 GB) are not.

Each library that those of torch need and that is not there is made anew: its functions are the ones that torch
refers to, each with the version that torch asks for, and every one answers "no device" (100). That is enough for
whoever asks whether there is a GPU, and for the tracer of `cufit fit`, which never calls them. Needs binutils and
a C compiler."""
import os
import re
import subprocess
import sys
import tempfile

NVIDIA = re.compile(r"lib(cu|nccl|nvrtc|nvshmem|nvToolsExt|nvJitLink|nvtx)[\w.-]*\.so")
FUNCTIONS = re.compile(r"(cu|nccl|nvrtc|__cuda|nvshmem|nvtx|nvJitLink)")
TEXTS = re.compile(r"(ErrorString|ErrorName|StatusName|StatusString)$")  # functions whose answer is read as a text


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout


def read(libraries):
    needed, wanted, there = set(), set(), set()
    for library in libraries:
        needed.update(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", library)))
        for line in output("nm", "-D", library).splitlines():
            *_, kind, symbol = line.split()
            name, _, version = symbol.replace("@@", "@").partition("@")
            if kind == "U":
                wanted.add((name, version))
            elif kind not in "w":
                there.add(name)
    return needed, {(name, version) for name, version in wanted if name not in there and FUNCTIONS.match(name)}


def source(functions):
    lines = []
    for name in sorted(functions):
        # cuGetErrorString writes its text where it is told to, and answers with a number.
        text = TEXTS.search(name) and not name.startswith("cuGet")
        answer = 'const char *%s(void) { return "no device"; }' if text else "long %s(void) { return 100; }"
        lines.append(answer % name)
    return "\n".join(lines) + "\n"


def make(path, functions):
    versions = {version for _, version in functions if version}
    with tempfile.TemporaryDirectory() as folder:
        code, script = os.path.join(folder, "stub.c"), os.path.join(folder, "versions")
        with open(code, "w") as out:
            out.write(source({name for name, _ in functions}))
        with open(script, "w") as out:
            for version in versions:
                names = " ".join(name + ";" for name, of in sorted(functions) if of == version)
                out.write("%s { global: %s };\n" % (version, names))
        options = ["-Wl,--version-script=" + script] if versions else []
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-w", "-fno-builtin", "-Wl,-soname," + os.path.basename(path),
                        *options, "-o", path, code], check=True)


def main(folder):
    names = [name for name in os.listdir(folder) if re.match(r"lib.*\.so", name)]
    needed, wanted = read([os.path.join(folder, name) for name in names if os.path.isfile(os.path.join(folder, name))])
    missing = sorted(name for name in needed - set(names) if NVIDIA.match(name))
    for name in missing:
        # The name of a version is that of its library, but for nvshmem; functions without one may be anywhere.
        own = {(function, version) for function, version in wanted
               if version == name or version.startswith("NVSHMEM") and "nvshmem" in name or not version and name == missing[0]}
        make(os.path.join(folder, name), own)
    print("made %d libraries without contents" % len(missing))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: tools/stub_cuda.py TORCH/lib")
    main(sys.argv[1])
