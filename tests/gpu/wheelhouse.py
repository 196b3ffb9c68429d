#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wheels of what is installed, and a package index of them on loopback: for a machine without a network.

wheelhouse.py pack DIR NAME...        each NAME of this Python and all it requires, as wheels in DIR
wheelhouse.py rename DIR WHEEL VERSION  WHEEL of another folder under another version, in DIR
wheelhouse.py stand-in DIR VERSION    a wheel "torch" without code for machines without a GPU: it says its version, no more
wheelhouse.py serve DIR LOG           prints its port; DIR/INDEX/*.whl is at /INDEX/NAME/ (PEP 503, 691 and 658).
                                      DIR/hold: bodies of more than 64 MiB stop in their middle while it is there;
                                      DIR/spoil: the file of this name comes with one bit changed, in the
                                      date of its first entry, so that only its sum tells

A wheel is packed from its RECORD: what the installer made itself (byte code, starters of entry points, INSTALLER) is left
out, files beside site-packages go to .data. Nothing is compressed.
"""
import base64
import concurrent.futures
import hashlib
import http.server
import importlib.metadata
import json
import os
import re
import sys
import time
import zipfile

try:
    from packaging.requirements import Requirement
except ImportError:
    from pip._vendor.packaging.requirements import Requirement

BY_INSTALLER = {"INSTALLER", "REQUESTED", "RECORD", "RECORD.jws", "direct_url.json", "uv_cache.json"}
PIECE = 1 << 20
BIG = 64 << 20


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(names):
    """name -> distribution, for what is asked and all that its markers and extras demand here."""
    found, done, todo, absent = {}, set(), [Requirement(name) for name in names], []
    while todo:
        one = todo.pop()
        name = normal(one.name)
        if name not in found:
            try:
                found[name] = importlib.metadata.distribution(one.name)
            except importlib.metadata.PackageNotFoundError:
                absent.append(str(one))
                continue
        for extra in {"", *one.extras} - {extra for known, extra in done if known == name}:
            done.add((name, extra))
            for text in found[name].requires or []:
                wanted = Requirement(text)
                if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                    todo.append(wanted)
    for text in absent:
        print(f"  not installed here: {text}")
    return found


def tags_of(wheel):
    """"Tag:" lines -> the last part of a file name."""
    rows = [line.split(":", 1)[1].strip().split("-") for line in wheel.splitlines() if line.startswith("Tag:")]
    parts = [sorted({part for row in rows for part in row[i].split(".")}) for i in range(3)]
    return "-".join(".".join(part) for part in parts)


class Wheel:
    """A wheel that is being written; its RECORD comes last."""

    def __init__(self, path, info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED)
        self.info, self.rows = info, []

    def add(self, name, chunks, mode=0o644, size=0):
        entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        entry.external_attr = (0o100000 | mode) << 16
        digest, length = hashlib.sha256(), 0
        with self.zip.open(entry, "w", force_zip64=size >= 1 << 31) as out:
            for chunk in chunks:
                out.write(chunk)
                digest.update(chunk)
                length += len(chunk)
        coded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={coded},{length}\n")
        return coded

    def close(self):
        self.add(f"{self.info}/RECORD", ["".join([*self.rows, f"{self.info}/RECORD,,\n"]).encode()])
        self.zip.close()


def pieces(path):
    with open(path, "rb") as file:
        while chunk := file.read(PIECE):
            yield chunk


def script_text(path):
    text = b"".join(pieces(path))
    return re.sub(rb"\A#!\S*python\S*", b"#!python", text)


def pack_one(folder, distribution):
    name = distribution.metadata["Name"]
    files = distribution.files
    info = next((str(file).split("/")[0] for file in files or [] if str(file).split("/")[0].endswith(".dist-info")), None)
    text = distribution.read_text("WHEEL")
    if info is None or text is None:
        return f"  {name} {distribution.version}: was not installed from a wheel; left out"
    stem = info[: -len(".dist-info")]
    starters = {entry.name for entry in distribution.entry_points if entry.group.endswith("_scripts")}
    path = f"{folder}/{stem}-{tags_of(text)}.whl"
    wheel, missing, changed = Wheel(path, info), [], []
    for file in files:
        inside, source = str(file), str(distribution.locate_file(file))
        if inside.endswith(".pyc") or (inside.startswith(info + "/") and inside[len(info) + 1 :] in BY_INSTALLER):
            continue
        beside = re.fullmatch(r"(?:\.\./)+(bin/)?(.*)", inside)
        if beside and beside[1] and beside[2] in starters:
            continue
        if beside:
            inside = f"{stem}.data/{'scripts' if beside[1] else 'data'}/{beside[2]}"
        if not os.path.isfile(source):
            missing.append(inside)
            continue
        chunks = [script_text(source)] if beside and beside[1] else pieces(source)
        status = os.stat(source)
        coded = wheel.add(inside, chunks, status.st_mode & 0o777, status.st_size)
        if not beside and file.hash and file.hash.value != coded:
            changed.append(inside)
    wheel.close()
    said = [f"{len(rows)} files {what}: {', '.join(rows[:3])}" for rows, what in
            ((missing, "of its RECORD are missing"), (changed, "differ from its RECORD")) if rows]
    return f"  {os.path.basename(path)} {os.path.getsize(path) / 2**20:.1f} MiB" + "".join(f"; {text}" for text in said)


def pack(folder, names):
    os.makedirs(folder, exist_ok=True)
    found = closure(names)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for said in pool.map(lambda one: pack_one(folder, one), found.values()):
            print(said, flush=True)


def rename(folder, source, version):
    os.makedirs(folder, exist_ok=True)
    project, old, tags = os.path.basename(source).split("-", 2)
    wheel = Wheel(f"{folder}/{project}-{version}-{tags}", f"{project}-{version}.dist-info")
    with zipfile.ZipFile(source) as before:
        for entry in before.infolist():
            name = entry.filename.replace(f"{project}-{old}.", f"{project}-{version}.", 1)
            if name == f"{wheel.info}/RECORD":
                continue
            if name == f"{wheel.info}/METADATA":
                chunks = [re.sub(rb"(?m)^Version: .*$", b"Version: " + version.encode(), before.read(entry), count=1)]
            else:
                file = before.open(entry)
                chunks = iter(lambda file=file: file.read(PIECE), b"")
            wheel.add(name, chunks, (entry.external_attr >> 16) & 0o777, entry.file_size)
    wheel.close()


def stand_in(folder, version):
    os.makedirs(folder, exist_ok=True)
    python = "cp%d%d" % sys.version_info[:2]
    tag = f"{python}-{python}-manylinux_2_28_x86_64"
    wheel = Wheel(f"{folder}/torch-{version}-{tag}.whl", f"torch-{version}.dist-info")
    files = {"torch/__init__.py": "from .version import __version__, cuda\n",
             "torch/version.py": f"__version__ = '{version}'\ndebug = False\ncuda = None\ngit_version = 'x'\nhip = None\n",
             f"{wheel.info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
             f"{wheel.info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: wheelhouse\nRoot-Is-Purelib: false\nTag: {tag}\n"}
    for name, text in files.items():
        wheel.add(name, [text.encode()])
    with open(sys.executable, "rb") as file:  # any library will do: the head of an ELF file, and no sections
        head = file.read(64)
    wheel.add("torch/lib/libtorch.so", [head[:16] + b"\3\0" + head[18:24] + bytes(28) + head[52:54] + bytes(10)])
    wheel.close()


def read_shelf(folder):
    """index -> project -> rows of PEP 691; and path -> metadata."""
    shelf, metadata = {}, {}

    def one(path):
        with open(path, "rb") as file:
            sum_of_all = hashlib.file_digest(file, "sha256").hexdigest()
        with zipfile.ZipFile(path) as wheel:
            inside = next(name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
            return path, sum_of_all, wheel.read(inside)

    paths = [os.path.join(folder, index, name) for index in sorted(os.listdir(folder)) if os.path.isdir(os.path.join(folder, index))
             for name in sorted(os.listdir(os.path.join(folder, index))) if name.endswith(".whl")]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for path, digest, text in pool.map(one, paths):
            index, name = os.path.relpath(path, folder).split(os.sep)
            metadata[f"/{index}/{name}.metadata"] = text
            shelf.setdefault(index, {}).setdefault(normal(name.split("-")[0]), []).append(
                {"filename": name, "url": f"/{index}/{name.replace('+', '%2B')}", "hashes": {"sha256": digest}, "size": os.path.getsize(path),
                 "core-metadata": {"sha256": hashlib.sha256(text).hexdigest()}})
    return shelf, metadata


def serve(folder, log_path):
    shelf, metadata = read_shelf(folder)

    class Index(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def begin(self, status, kind, length):
            with open(log_path, "a", encoding="utf-8") as log:
                log.write(f"{self.command} {self.path} {status}\n")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def text(self, status, kind, body):
            self.begin(status, kind, len(body))
            if self.command != "HEAD":
                self.wfile.write(body)

        def wheel(self, path):
            left = size = os.path.getsize(path)
            self.begin(200, "application/octet-stream", size)
            if self.command == "HEAD":
                return
            spoil = os.path.join(folder, "spoil")
            spoiled = False
            if os.path.exists(spoil):
                with open(spoil, encoding="utf-8") as file:
                    spoiled = file.read().strip() == os.path.basename(path)
            for chunk in pieces(path):
                left -= len(chunk)
                while size > BIG and left < size // 2 and os.path.exists(os.path.join(folder, "hold")):
                    time.sleep(0.05)
                if spoiled:
                    chunk, spoiled = chunk[:12] + bytes([chunk[12] ^ 1]) + chunk[13:], False
                self.wfile.write(chunk)

        def do_GET(self):
            path = self.path.split("?")[0].replace("%2B", "+").replace("%2b", "+")
            words = path.strip("/").split("/")
            if path in metadata:
                self.text(200, "text/plain", metadata[path])
            elif path.endswith(".whl") and path + ".metadata" in metadata:
                self.wheel(folder + path)
            elif len(words) == 2 and (rows := shelf.get(words[0], {}).get(words[1])):
                self.text(200, "application/vnd.pypi.simple.v1+json", json.dumps(
                    {"meta": {"api-version": "1.1"}, "name": words[1], "files": rows}).encode())
            else:
                self.text(404, "text/plain", b"no")

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

        def handle(self):
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                pass  # a client that was ended

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    verb, target, *rest = sys.argv[1:]
    if verb == "pack":
        pack(target, rest)
    elif verb == "rename":
        rename(target, *rest)
    elif verb == "stand-in":
        stand_in(target, *rest)
    else:
        serve(target, *rest)
