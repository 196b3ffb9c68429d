# SPDX-License-Identifier: Apache-2.0
"""The image of `cufit export --to dockerfile --with jupyter,ssh`, built and logged into. universal_image_test.py CUFIT.

Needs root, buildah, debootstrap, Debian's and the Python index, and a folder for some 8 GB that CUFIT_TEST_IMAGE names;
without one of them it says so and ends with 77. Two classes: torch 1.13.1 for CUDA 11.7 from the default index, and
Debian's torch 1.13.1 for the CPU (the default index has none for x86_64), packed into a wheel here. Both come from an
index on loopback, as in a closed network. Everything in the folder is removed at the end, unless CUFIT_TEST_KEEP is set.
"""

import base64
import functools
import hashlib
import http.server
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile

CUFIT = os.path.abspath(sys.argv[1])
TOKEN = "0123456789abcdef0123"
CUDA = [
    "torch==1.13.1", "nvidia-cublas-cu11==11.10.3.66", "nvidia-cudnn-cu11==8.5.0.96",
    "nvidia-cuda-runtime-cu11==11.7.99", "nvidia-cuda-nvrtc-cu11==11.7.99",
]  # fmt: skip
COMMON = ["numpy==1.26.4", "typing-extensions==4.12.2"]
KERNELS = """
import sys
from jupyter_client.manager import start_new_kernel
for name in sys.argv[1:]:
    manager, client = start_new_kernel(kernel_name=name, startup_timeout=180)
    def show(message):
        text = message["content"].get("text") or message["content"].get("evalue") or ""
        if message["msg_type"] in ("stream", "error"):
            print(name, text.strip(), flush=True)
    client.execute_interactive("import os, torch; print(torch.__version__, torch.version.cuda, os.environ['CUFIT_CLASS'])",
                               timeout=300, output_hook=show)
    client.stop_channels()
    manager.shutdown_kernel(now=True)
"""


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))[:300]}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Test:
    def __init__(self, work):  # no blanks in its path
        self.work = pathlib.Path(work).absolute()
        self.work.mkdir(parents=True, exist_ok=True)
        self.wheels = self.work / "wheels"
        driver = os.environ.get("CUFIT_TEST_STORAGE", "vfs")
        self.buildah = ["buildah", "--root", self.work / "store", "--runroot", self.work / "run", "--storage-driver", driver]
        self.failed = 0

    def check(self, what, good, detail=""):
        print(("ok: " if good else "FAILED: ") + what, detail, flush=True)
        self.failed += not good

    # A Debian 12 with Python; that of CUFIT_TEST_ROOT where there is one.
    def make_root(self, name, *packages):
        root = self.work / name
        given = os.environ.get("CUFIT_TEST_ROOT")
        if given:
            run("cp", "-a", given, root)
        else:
            run("debootstrap", "--variant=minbase", "bookworm", root)
        shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
        for file in pathlib.Path("/etc/apt/apt.conf.d").glob("99*"):
            shutil.copy(file, root / "etc/apt/apt.conf.d")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("chroot", root, "apt-get", "update", env=environment)
        run("chroot", root, "apt-get", "install", "-y", "--no-install-recommends", "python3-venv", "python3-pip",
            "ca-certificates", *packages, env=environment)  # fmt: skip
        certificates = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
        if certificates.exists():
            shutil.copy(certificates, root / "etc/ssl/certs")
        for mark in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            mark.unlink()
        (root / "usr/bin/python").unlink(missing_ok=True)
        (root / "usr/bin/python").symlink_to("python3")
        return root

    # Debian's torch: its Python files, and each library that it needs beside them, found by $ORIGIN.
    def make_cpu_wheel(self):
        root = self.make_root("torchroot", "python3-torch", "patchelf")
        tree, site = root / "tmp/wheel", root / "usr/lib/python3/dist-packages"
        for name in ("torch", "torchgen", "functorch"):
            shutil.copytree(site / name, tree / name, symlinks=True,
                            ignore=shutil.ignore_patterns("__pycache__", "test", "include", "lib", "bin"))  # fmt: skip
        lib = tree / "torch/lib"
        lib.mkdir()
        (tree / "torch/bin").mkdir()
        manager = next(root.glob("usr/**/torch_shm_manager"), None)
        shutil.copy2(manager, tree / "torch/bin/torch_shm_manager") if manager else shutil.copy2(
            root / "bin/true", tree / "torch/bin/torch_shm_manager"
        )
        modules = [*tree.glob("torch/*.so"), *tree.glob("functorch/*.so")]
        deps = "/usr/lib/x86_64-linux-gnu/libtorch_global_deps.so.1.13"
        needed = {"libtorch_global_deps.so": deps}
        for path in [deps, *("/" + str(module.relative_to(root)) for module in modules)]:
            said = subprocess.run(["chroot", root, "ldd", path], text=True, capture_output=True, check=False).stdout
            needed.update(re.findall(r"(\S+) => (/\S+)", said))
        system = re.compile(r"(libc|libm|libpthread|libdl|librt|libutil|libresolv|ld-linux.*)\.so")
        for name, path in needed.items():
            if not system.match(name):
                real = run("chroot", root, "readlink", "-f", path).strip()
                shutil.copy2(root / real.lstrip("/"), lib / name)
        for file in [*lib.iterdir(), *modules]:
            folder = "$ORIGIN" if file.parent == lib else "$ORIGIN/lib:$ORIGIN/../torch/lib"
            run("chroot", root, "patchelf", "--force-rpath", "--set-rpath", folder, "/" + str(file.relative_to(root)))
        (tree / "torch/version.py").write_text(
            "__version__ = '1.13.1+cpu'\ndebug = False\ncuda = None\ngit_version = 'Debian'\nhip = None\n"
        )
        info = tree / "torch-1.13.1+cpu.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.13.1+cpu\n")
        (info / "WHEEL").write_text("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\n")
        rows, record = [], f"{info.name}/RECORD"
        wheel = self.wheels / "torch-1.13.1+cpu-cp311-cp311-linux_x86_64.whl"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
            for file in sorted(path for path in tree.rglob("*") if path.is_file()):
                name, data = str(file.relative_to(tree)), file.read_bytes()
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                rows.append(f"{name},sha256={digest},{len(data)}")
                out.write(file, name)
            out.writestr(record, "\n".join([*rows, f"{record},,"]) + "\n")
        shutil.rmtree(root)

    def make_lock(self, folder, index):
        folder.mkdir()
        rows = []
        for name, tag, glibc, parts in (
            ("cu117", 'tag = "cu117"\ncuda = "11.7"\ndriver-min = "450.80.02"\ndriver-full = "515.43.04"\n'
             'cubins = ["37", "50", "60", "70", "75", "80", "86"]', "2.17",
             ["torch-1.13.1-", "nvidia_cublas", "nvidia_cudnn", "nvidia_cuda_runtime", "nvidia_cuda_nvrtc"]),
            ("cpu", 'tag = "cpu"', "2.36", ["torch-1.13.1+cpu-"]),
        ):  # fmt: skip
            text = 'lock-version = "1.0"\ncreated-by = "test"\n'
            files = [next(self.wheels.glob(part + "*")) for part in [*parts, "numpy-", "typing_extensions-"]]
            for file in files:
                project, version = file.name.split("-")[:2]
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                text += (
                    f'\n[[packages]]\nname = "{project.replace("_", "-")}"\nversion = "{version}"\n'
                    f'wheels = [{{ name = "{file.name}", url = "{index}/{file.name.replace("+", "%2B")}", '
                    f'size = {file.stat().st_size}, hashes = {{ sha256 = "{digest}" }} }}]\n'
                )
            (folder / f"pylock.{name}.toml").write_text(text)
            rows.append(
                f'[[class]]\nname = "{name}"\nfile = "pylock.{name}.toml"\n'
                f'sha256 = "{hashlib.sha256(text.encode()).hexdigest()}"\ntorch = "1.13.1"\n{tag}\npython = "3.11"\n'
                f'platform = "linux_x86_64"\nglibc = "{glibc}"\npackages = {len(files)}\n'
                f'download-bytes = {sum(file.stat().st_size for file in files)}\nserves = ["test"]\nwhy = "test"\n'
            )
        (folder / "cufit.lock").write_text(
            'schema = "cufit.lock/1"\ncreated-by = "test"\nrequirements = ["torch"]\ntargets = ["cpu"]\n\n'
            + "\n".join(rows)
        )

    def build(self):
        self.wheels.mkdir()
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", self.wheels, "--python-version", "3.11",
            "--only-binary", ":all:", "--platform", "manylinux2014_x86_64", "--platform", "manylinux1_x86_64",
            *CUDA, *COMMON)  # fmt: skip
        self.make_cpu_wheel()
        handler = functools.partial(Quiet, directory=self.wheels)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.make_lock(self.work / "context", f"http://127.0.0.1:{server.server_address[1]}")
        root = self.make_root("root")
        base = run(*self.buildah, "from", "scratch").strip()
        run(*self.buildah, "add", "-q", base, root, "/")
        # A network with a certificate of its own: uv has a list of its own, too.
        run(*self.buildah, "config", "--env", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", base)
        run(*self.buildah, "commit", "-q", "--format", "docker", "--rm", base, "localhost/base:1")
        shutil.rmtree(root)
        context = self.work / "context"
        run(CUFIT, "export", "--to", "dockerfile", "--with", "jupyter,ssh", "--lock", context, "--base", "localhost/base:1",
            "-o", self.work / "out")  # fmt: skip
        shutil.copytree(self.work / "out", context, dirs_exist_ok=True)
        shutil.copy2(CUFIT, context / "cufit")
        run(*self.buildah, "build", "--isolation", "chroot", "--format", "docker", "--pull-never", "--network", "host",
            "-t", "localhost/torch:1", context)  # fmt: skip
        server.shutdown()
        shutil.rmtree(self.wheels)
        shutil.rmtree(context)

    def sizes(self):
        mount = pathlib.Path(run(*self.buildah, "mount", self.container).strip()) / "opt/cufit/.cufit/envs"

        def files(name):
            found = {}
            for folder, _, names in os.walk(mount / name):
                for one in names:
                    status = os.lstat(os.path.join(folder, one))
                    found[status.st_ino] = status.st_blocks * 512
            return found

        first, second = files("cu117"), files("cpu")
        added = sum(size for inode, size in second.items() if inode not in first)
        shared = sum(size for inode, size in second.items() if inode in first)
        mib = 1 << 20
        print(f"first {sum(first.values()) // mib} MiB, second alone {(added + shared) // mib}, added {added // mib}")
        self.check("the second class shares its common packages", shared > 50 * mib, f"{shared // mib} MiB")
        run(*self.buildah, "umount", self.container)

    def serve(self):
        self.ssh_port, self.jupyter_port = free_port(), free_port()
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.work / "key")
        key = self.work / "key.pub"
        key.chmod(0o644)
        variables = {"JUPYTER_TOKEN": TOKEN, "SSH_ADDRESS": "127.0.0.1", "JUPYTER_ADDRESS": "127.0.0.1",
                     "SSH_PORT": self.ssh_port, "JUPYTER_PORT": self.jupyter_port}  # fmt: skip
        command = [*self.buildah, "run", "--isolation", "chroot", "--user", "1000:1000",
                   "-v", f"{key}:/run/secrets/authorized_keys:ro"]  # fmt: skip
        for name, value in variables.items():
            command += ["--env", f"{name}={value}"]
        # The image's own entry point and command; `buildah run` takes neither from it.
        command += [self.container, "--", "cufit", "run", "--", "bash", "/opt/cufit/image/services"]
        self.log = open(self.work / "services.log", "w")
        return subprocess.Popen([str(word) for word in command], stdout=self.log, stderr=self.log)

    # The script itself: ends it as the end of a container does, by its own port no other's.
    def end_services(self):
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                mine = f"JUPYTER_PORT={self.jupyter_port}".encode() in (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mine and words[:2] == [b"bash", b"/opt/cufit/image/services"]:
                os.kill(int(folder.name), signal.SIGTERM)

    def ssh(self, *command, user="app", options=(), text=None):
        base = ["ssh", "-F", "none", "-p", self.ssh_port, "-i", self.work / "key", "-o", "IdentitiesOnly=yes",
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                *options, f"{user}@127.0.0.1", *command]  # fmt: skip
        return subprocess.run([str(word) for word in base], input=text, text=True, capture_output=True, timeout=900, check=False)

    def status(self, query):
        try:
            address = f"http://127.0.0.1:{self.jupyter_port}/api/kernelspecs{query}"
            with urllib.request.urlopen(address, timeout=30) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def look(self):
        services = self.serve()
        try:
            until = time.monotonic() + 120
            while self.status(f"?token={TOKEN}") != 200 and time.monotonic() < until:
                time.sleep(1)
            said = self.ssh("id -u; python -c 'import torch; print(torch.__version__)'; cufit preflight -q; echo $?")
            self.check("SSH with the key", said.stdout.split() == ["1000", "1.13.1+cpu", "0"], said.stdout + said.stderr)
            password = ("-o", "PubkeyAuthentication=no", "-o", "PreferredAuthentications=password,keyboard-interactive")
            said = self.ssh("true", options=password)
            self.check("SSH by password is refused", "Permission denied (publickey)" in said.stderr, said.stderr.strip())
            self.check("SSH as root is refused", self.ssh("true", user="root").returncode == 255)
            self.check("Jupyter with the token", self.status(f"?token={TOKEN}") == 200)
            self.check("Jupyter without it: 403", (self.status(""), self.status("?token=")) == (403, 403))
            said = self.ssh("JUPYTER_PATH=/opt/cufit/image/jupyter /opt/cufit/jupyter/bin/python - auto cpu cu117", text=KERNELS)
            self.check("each kernel imports its torch", said.stdout.splitlines() == [
                "auto 1.13.1+cpu None cpu", "cpu 1.13.1+cpu None cpu", "cu117 1.13.1+cu117 11.7 cu117"],
                said.stdout + said.stderr)  # fmt: skip
            said = self.ssh("cufit env check cpu")
            self.check("the environment is as it was locked", said.returncode == 0, said.stdout[-300:])
            self.end_services()
            services.wait(timeout=60)
            self.check("a signal ends it", self.status(f"?token={TOKEN}") == 0)
        finally:
            self.end_services()
            services.terminate()

    def audit(self):
        image = self.work / "torch.tar.gz"
        run(*self.buildah, "rm", self.container)
        push = " ".join(map(str, self.buildah)) + " push -q localhost/torch:1 docker-archive:/dev/stdout:torch:1"
        run("bash", "-c", f"set -o pipefail; {push} | gzip -1 >{image}")
        answers = [
            subprocess.run([CUFIT, *words], text=True, capture_output=True, check=False)
            for words in (["export", "--to", "dockerfile", "--check", image, "--json"],
                          ["image", "audit", "--check", image, "--json"])
        ]  # fmt: skip
        found = json.loads(answers[0].stdout)
        self.check("both commands say the same", answers[0].stdout == answers[1].stdout)
        self.check("the image keeps the rules", found["rules_kept"] and answers[0].returncode == 0,
                   [one for one in found["rules"] if one["state"] != "kept"])  # fmt: skip
        self.check("torch of each environment", sorted((one["torch"], one["cuda"]) for one in found["torch"])
                   == [("1.13.1+cpu", None), ("1.13.1+cu117", "11.7")])  # fmt: skip

    def all(self):
        self.build()
        self.container = run(*self.buildah, "from", "--pull-never", "localhost/torch:1").strip()
        self.sizes()
        self.look()
        self.audit()

    def clean(self):
        subprocess.run([*map(str, self.buildah), "rm", "-a"], capture_output=True, check=False)
        subprocess.run([*map(str, self.buildah), "rmi", "-a", "-f"], capture_output=True, check=False)
        shutil.rmtree(self.work, ignore_errors=True)


def main():
    work = os.environ.get("CUFIT_TEST_IMAGE")
    if not work:
        skip("CUFIT_TEST_IMAGE names no folder for the image")
    if os.geteuid() != 0:
        skip("not root")
    for program in ("buildah", "debootstrap", "ssh-keygen", "ssh"):
        if not shutil.which(program):
            skip(f"no {program} here")
    test = Test(work)
    try:
        test.all()
    finally:
        if not os.environ.get("CUFIT_TEST_KEEP"):
            test.clean()
    print("FAILED" if test.failed else "OK")
    sys.exit(1 if test.failed else 0)


main()
