#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501 (a case is a line)
"""Small environments, each broken one way, through `cufit doctor`; the environment's own Python says what is true.

usage: broken_test.py CUFIT

An environment is a venv without pip, with the metadata of torch 2.11.0+cu130 as its wheel writes it (cut to what
is asked of it) and modules of a few lines. Its Python imports torch and judges the requirements; cufit must agree.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

TORCH_NEEDS = [
    "filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", "networkx>=2.5.1", "jinja2", "fsspec>=0.8.5",
    'nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"', 'nvidia-nccl-cu13==2.28.9; platform_system == "Linux"',
    'triton==3.6.0; platform_system == "Linux"', 'optree>=0.13.0; extra == "optree"',
]  # fmt: skip
# name, version, requirements, modules: path -> text
PACKAGES = [
    ("torch", "2.11.0", TORCH_NEEDS, {
        "torch/__init__.py": "import typing_extensions\nfrom torch import functional, version\nfrom torch.nn import modules\n",
        "torch/version.py": "__version__ = '2.11.0+cu130'\ndebug = False\ncuda = '13.0'\ngit_version = 'x'\nhip = None\n",
        "torch/functional.py": "value = 1\n", "torch/nn/__init__.py": "", "torch/nn/modules/__init__.py": "value = 1\n",
        "torch/onnx/ops/symbolic.py": "value = 1\n"}),
    ("typing_extensions", "4.16.0", [], {"typing_extensions.py": "value = 1\n"}),
    ("filelock", "4.3.1", [], {"filelock/__init__.py": "value = 1\n"}),
    ("sympy", "1.14.0", [], {"sympy/__init__.py": "value = 1\n"}),
    ("networkx", "3.6.1", [], {"networkx/__init__.py": "value = 1\n"}),
    ("jinja2", "3.1.6", [], {"jinja2/__init__.py": "value = 1\n"}),
    ("fsspec", "2026.9.0", [], {"fsspec/__init__.py": "value = 1\n"}),
    ("nvidia-cudnn-cu13", "9.19.0.56", [], {"nvidia/cudnn/__init__.py": "value = 1\n"}),
    ("nvidia-nccl-cu13", "2.28.9", [], {"nvidia/nccl/__init__.py": "value = 1\n"}),
    ("triton", "3.6.0", [], {"triton/__init__.py": "value = 1\n"}),
    ("numpy", "2.4.6", [], {"numpy/__init__.py": "value = 1\n"}),
]  # fmt: skip


class Environment:
    def __init__(self, root: Path):
        self.root = root
        self.variables = {"PATH": "/usr/bin:/bin", "LANG": "C"}
        self.folder = root.parent
        venv.create(root, symlinks=True)
        self.python = root / "bin" / "python3"
        self.site = next(root.glob("lib/python3.*/site-packages"))
        for package in PACKAGES:
            self.install(*package)

    def info(self, name):
        return next(self.site.glob(f"{name.replace('-', '_')}-*.dist-info"))

    def install(self, name, version, needs=(), modules=None):
        files = dict(modules or {})
        info = f"{name.replace('-', '_')}-{version}.dist-info"
        head = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
        files[f"{info}/METADATA"] = (
            head + "".join(f"Requires-Dist: {one}\n" for one in needs) + "\ntext\n"
        )
        files[f"{info}/INSTALLER"] = "pip\n"
        record = "".join(f"{path},sha256=x,{len(text)}\n" for path, text in files.items())
        files[f"{info}/RECORD"] = record + f"{info}/RECORD,,\n"
        for path, text in files.items():
            (self.site / path).parent.mkdir(parents=True, exist_ok=True)
            (self.site / path).write_text(text)

    def uninstall(self, name):
        shutil.rmtree(self.info(name))
        for package, _, _, modules in PACKAGES:
            for path in modules if package == name else ():
                (self.site / path).unlink()

    def again(self, name, version, needs=()):
        """The same files, another version."""
        shutil.rmtree(self.info(name))
        self.install(
            name,
            version,
            needs,
            next(modules for package, _, _, modules in PACKAGES if package == name),
        )

    def remove(self, path):
        (self.site / path).unlink()

    def write(self, path, text):
        (self.site / path).write_text(text)

    def imports_torch(self):
        """True where `import torch` of this environment, in this folder and with these variables, gives 2.11.0."""
        code = "import torch, torch.version; assert torch.version.__version__ == '2.11.0+cu130'"
        try:
            done = subprocess.run(
                [self.python, "-c", code], env=self.variables, cwd=self.folder, capture_output=True
            )
        except OSError:
            return False
        return done.returncode == 0

    def doctor(self, cufit):
        command = [
            cufit,
            "doctor",
            "--env",
            self.root,
            "--gpu",
            "RTX 3060",
            "--driver",
            "580",
            "--json",
        ]
        done = subprocess.run(
            command, env=self.variables, cwd=self.folder, capture_output=True, text=True
        )
        return json.loads(done.stdout)


def base_gone(env):
    for name in ("python", "python3", *[p.name for p in (env.root / "bin").glob("python3.*")]):
        (env.root / "bin" / name).unlink()
    (env.root / "bin" / "python3").symlink_to("/opt/removed/bin/python3")


def python_path(version, cuda):
    def put(env):
        other = env.root.parent / "other"
        for path, text in PACKAGES[0][3].items():
            (other / path).parent.mkdir(parents=True, exist_ok=True)
            text = text.replace("2.11.0+cu130", version).replace("'13.0'", cuda)
            (other / path).write_text(text)
        env.variables["PYTHONPATH"] = str(other)

    return put


def pin(name, needs):
    return lambda env: env.install(name, "1.0", needs)


def without(name):
    return lambda env: env.uninstall(name)


def second_record(version):
    """The metadata of another torch beside the one whose files are there."""

    def copy(env):
        info = env.info("torch")
        other = info.with_name(f"torch-{version}.dist-info")
        shutil.copytree(info, other)
        for name in ("METADATA", "RECORD"):
            text = (other / name).read_text().replace("2.11.0", version)
            (other / name).write_text(text)

    return copy


def removed(path):
    return lambda env: env.remove(path)


def emptied(path):
    return lambda env: env.write(path, "")


# how it is broken, what is done to it, whether torch can be imported, the finding (None: none), a part of its step
CASES = [
    ("whole", lambda env: None, True, None, ""),
    ("base Python gone", base_gone, False, "python_gone", "venv"),
    ("PYTHONPATH with another torch", python_path("2.15.0+cu132", "'13.2'"), False, "pythonpath_hides_torch", "unset PYTHONPATH"),
    ("PYTHONPATH with a CPU torch", python_path("2.2.0+cpu", "None"), False, "pythonpath_hides_torch", "unset PYTHONPATH"),
    ("torch.py in the folder", lambda e: (e.folder / "torch.py").write_text(""), False, "local_module_hides", "mv torch.py"),
    ("torch/ in the folder", lambda e: ((e.folder / "torch").mkdir(), (e.folder / "torch/__init__.py").write_text("")), False, "local_module_hides", "cd .."),
    ("numpy.py in the folder", lambda e: (e.folder / "numpy.py").write_text(""), True, "local_module_hides", "mv numpy.py"),
    *[(f"{name} uninstalled", without(name), name != "typing_extensions", "requirement_missing", "install")
      for name in ("typing_extensions", "filelock", "sympy", "networkx", "jinja2", "fsspec", "nvidia-cudnn-cu13", "nvidia-nccl-cu13", "triton")],
    ("numpy uninstalled", without("numpy"), True, None, ""),
    *[(f"{path} deleted", removed(path), False, "torch_install_broken", "--force-reinstall")
      for path in ("torch/functional.py", "torch/version.py")],
    # Python takes the folder for a namespace package; of the real one it would miss the names.
    ("torch/nn/modules/__init__.py deleted", removed("torch/nn/modules/__init__.py"), True, "torch_install_broken", "--force-reinstall"),
    ("a module for later deleted", removed("torch/onnx/ops/symbolic.py"), True, "torch_install_broken", "--force-reinstall"),
    ("torch/functional.py emptied", emptied("torch/functional.py"), True, "torch_install_broken", "--force-reinstall"),
    ("typing_extensions.py deleted", removed("typing_extensions.py"), False, "package_half_removed", "typing-extensions==4.16.0"),
    *[(f"{name} half there", removed(f"{name}/__init__.py"), True, "package_half_removed", f"{name.replace('/', '-')}")
      for name in ("sympy", "networkx", "jinja2", "filelock", "fsspec", "numpy", "triton", "nvidia/cudnn", "nvidia/nccl")],
    *[(f"{name} emptied", emptied(f"{name}/__init__.py"), True, "package_half_removed", f"{name}==")
      for name in ("sympy", "networkx", "jinja2", "fsspec")],
    *[(f"{path} edited", lambda env, path=path: env.write(path, "value = 12345\n"), True, "package_files_changed", "install")
      for path in ("torch/functional.py", "sympy/__init__.py", "typing_extensions.py")],
    *[(f"a package wants {need}", pin("vllm", [need]), True, "requirement_unmet", "torch==")
      for need in ("torch==2.14.0", "torch>=2.12", "torch<2.11", "torch~=2.10.0", "torch (==2.9.1)")],
    *[(f"a package takes {need}", pin("tame", [need]), True, None, "")
      for need in ("torch", "torch>=2.4,<3", "torch==2.11.0", "torch==2.11.*", 'torch==2.9; extra == "old"', 'torch==2.9; python_version < "3"')],
    # torch pins the same package exactly: whichever is installed, one of the two lacks its own.
    ("a package wants another cuDNN than torch", pin("paddle", ["nvidia-cudnn-cu13==9.5.1.17"]), True, "requirement_unmet", "of its own for paddle"),
    ("a package wants torch's cuDNN", pin("paddle", ["nvidia-cudnn-cu13>=9.5"]), True, None, ""),
    ("numpy of another major", lambda env: env.again("numpy", "1.26.4") or env.install("newer", "1", ["numpy>=2"]), True, "requirement_unmet", "numpy>=2"),
    ("a second record, of an older torch", second_record("2.10.0"), True, "torch_install_broken", "pip uninstall -y torch && "),
    ("a second record, of a newer torch", second_record("2.12.0"), True, "torch_install_broken", "pip uninstall -y torch && "),
    ("cuDNN of another release", lambda env: env.again("nvidia-cudnn-cu13", "9.14.0.64"), True, "nvidia_pip_pkg_conflict", "nvidia-cudnn-cu13==9.19.0.56"),
    ("triton of another release", lambda env: env.again("triton", "3.4.0"), True, "torch_family_mismatch", "triton==3.6.0"),
]  # fmt: skip


def judge(env, cufit, imports, wanted, step):
    truth = env.imports_torch()
    if truth != imports:
        return f"the table says import={imports}, its Python {truth}"
    report = env.doctor(cufit)
    found = {
        one["id"]: one
        for one in report["findings"]
        if one["id"] not in ("nvcc_missing", "torch_code_unreadable")
    }
    if wanted is None:
        loud = [one["id"] for one in found.values() if one["severity"] in ("error", "warning")]
        return f"nothing is broken, found {loud}" if loud else ""
    if wanted not in found:
        return f"{wanted} is not among {sorted(found)}"
    if wanted == "pythonpath_hides_torch" and len(found) > 1:
        return f"beside the cause {sorted(found)}"
    if step not in found[wanted]["next"]:
        return f"the step is `{found[wanted]['next']}`, without `{step}`"
    if not truth and report["verdict"] == "works":
        return "says yes where torch cannot be imported"
    return ""


def main(cufit):
    failures = 0
    for name, break_it, imports, wanted, step in CASES:
        with tempfile.TemporaryDirectory() as folder:
            env = Environment(Path(folder).resolve() / "env")
            break_it(env)
            said = judge(env, cufit, imports, wanted, step)
            failures += bool(said)
            if said:
                print(f"{name}: {said}")
    print(f"{len(CASES)} environments, {failures} judged wrongly")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))
