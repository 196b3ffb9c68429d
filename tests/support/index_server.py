#!/usr/bin/env python3
"""A package index on loopback, for tests. Prints its port, then serves until it is ended.

/simple/torch/   JSON with an ETag; "hits" of the log tell what was asked
/html/torch/     HTML, whatever the client accepts
/garbage/torch/  says JSON, is none
/broken/torch/   HTTP 500
/slow/torch/     sends headers and then nothing
/huge/torch/     more than any page
/private/torch/  wants user "me", password "secret"
/moved/torch/    redirects to /simple/torch/
/variants/torch/ 2.8.0 for Python 3.12 alone; 2.7.1, 2.7.0 and 2.0.1 in several variants, as a mirror of PyTorch's own has them, and a
                 2.10.0 that nobody knows
FILE (argument): one line per request: path, status, If-None-Match
"""
import base64
import http.server
import json
import sys
import time

ETAG = '"one"'
PAGE = {
    "meta": {"api-version": "1.1"},
    "name": "torch",
    "files": [
        {"filename": "torch-2.7.1-cp311-cp311-manylinux_2_28_x86_64.whl", "url": "torch-2.7.1.whl",
         "hashes": {"sha256": "00"}, "size": 1000},
        {"filename": "torch-2.11.0-cp311-cp311-manylinux_2_28_x86_64.whl", "url": "torch-2.11.0.whl",
         "hashes": {"sha256": "00"}, "size": 1000, "yanked": "broken"},
    ],
}
VARIANTS = {
    "meta": {"api-version": "1.1"},
    "name": "torch",
    "files": [{"filename": f"torch-{version}-{python}-{python}-{platform}_x86_64.whl", "url": "x.whl", "hashes": {"sha256": "00"}}
              for version, python, platform in (
                  ("2.8.0+cu128", "cp312", "manylinux_2_28"), ("2.7.1+cu118", "cp311", "manylinux_2_28"),
                  ("2.10.0+local", "cp311", "manylinux_2_28"), ("2.7.1+cu126", "cp311", "manylinux_2_28"), ("2.7.0+cu128", "cp311", "manylinux_2_28"),
                  ("2.0.1+cu117", "cp311", "manylinux1"), ("2.0.1+cu118", "cp311", "manylinux1"))],
}


class Index(http.server.BaseHTTPRequestHandler):
    def answer(self, status, kind, body, **headers):
        with open(sys.argv[1], "a", encoding="utf-8") as log:
            log.write(f"{self.path} {status} {self.headers.get('If-None-Match', '-')}\n")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        json_type = "application/vnd.pypi.simple.v1+json"
        page = json.dumps(PAGE).encode()
        where = self.path.split("/")[1]
        if not self.path.endswith("/torch/"):
            self.answer(404, "text/plain", b"no")
        elif where == "simple" and self.headers.get("If-None-Match") == ETAG:
            self.answer(304, json_type, b"", ETag=ETAG)
        elif where == "simple":
            self.answer(200, json_type, page, ETag=ETAG)
        elif where == "variants":
            self.answer(200, json_type, json.dumps(VARIANTS).encode())
        elif where == "html":
            self.answer(200, "text/html", b"<!DOCTYPE html>")
        elif where == "garbage":
            self.answer(200, json_type, b"\x00\xff{")
        elif where == "huge":
            self.answer(200, json_type, b" " * (65 << 20))
        elif where == "private":
            wanted = "Basic " + base64.b64encode(b"me:secret").decode()
            good = self.headers.get("Authorization") == wanted
            self.answer(200 if good else 401, json_type, page if good else b"")
        elif where == "moved":
            self.answer(302, "text/plain", b"", Location="/simple/torch/")
        elif where == "slow":
            self.send_response(200)
            self.send_header("Content-Type", json_type)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.flush()
            time.sleep(30)
        else:
            self.answer(500, "text/plain", b"no")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
