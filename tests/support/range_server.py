#!/usr/bin/env python3
"""Files on loopback, by ranges, for tests. Prints its port, then serves until it is ended.

FOLDER LOG: /NAME is FOLDER/NAME; one line per request into LOG: path, Range, bytes of the answer
/whole/NAME    no ranges: the whole file
/changes/NAME  another ETag each time
/wrong/NAME    other bytes than asked for
/moved/NAME    redirects to /NAME
/simple/torch/ FOLDER/page.json as the page of a package index
"""
import http.server
import os
import re
import sys

FOLDER, LOG = sys.argv[1:3]
count = 0


class Files(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body, **headers):
        with open(LOG, "a", encoding="utf-8") as log:
            log.write(f"{self.path} {self.headers.get('Range', '-')} {len(body)}\n")
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        global count
        count += 1
        parts = self.path.strip("/").split("/")
        kind, name = (parts[0], parts[-1]) if len(parts) > 1 else ("", parts[-1])
        if kind == "moved":
            return self.answer(302, b"", Location="/" + name)
        if self.path == "/simple/torch/":
            name = "page.json"
        path = os.path.join(FOLDER, name)
        if not os.path.isfile(path):
            return self.answer(404, b"no")
        with open(path, "rb") as file:
            data = file.read()
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None or kind == "whole":
            return self.answer(200, data, Content_Type="application/vnd.pypi.simple.v1+json")
        first, last = asked.groups()
        if first == "":
            first, last = max(0, len(data) - int(last)), len(data) - 1
        else:
            first, last = int(first), min(int(last or len(data) - 1), len(data) - 1)
        if kind == "wrong":
            first = max(0, first - 1)
        etag = f'"{count}"' if kind == "changes" else '"one"'
        self.answer(206, data[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}", ETag=etag)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()
