# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium over the DevTools protocol, with nothing but Python's own library."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
import urllib.request


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class WebSocket:
    """A client's side of RFC 6455, text frames only."""

    def __init__(self, address):
        host, path = address[len("ws://"):].split("/", 1)
        name, port = host.split(":")
        self.socket = socket.create_connection((name, int(port)), timeout=60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self.socket.recv(4096)
        if b" 101 " not in answer.split(b"\r\n", 1)[0]:
            raise ConnectionError(answer.decode("latin-1"))
        self.rest = answer.split(b"\r\n\r\n", 1)[1]

    def take(self, count):
        while len(self.rest) < count:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("the browser closed the connection")
            self.rest += more
        out, self.rest = self.rest[:count], self.rest[count:]
        return out

    def send(self, text):
        data = text.encode()
        mask = os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x81, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
        self.socket.sendall(head + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(data)))

    def receive(self):
        message = b""
        while True:
            first, second = self.take(2)
            size = second & 127
            if size == 126:
                size = struct.unpack("!H", self.take(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self.take(8))[0]
            message += self.take(size)
            if first & 0x80:
                return message.decode()


class Browser:
    """One Chromium with one tab. Errors of the page gather in `errors`."""

    def __init__(self, program, width=1280, height=900):
        self.folder = tempfile.mkdtemp(prefix="cufit-view-")
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-extensions", "--remote-allow-origins=*", "--remote-debugging-port=0",
             f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.errors = []
        self.number = 0
        self.socket = WebSocket(self.tab_address())
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.size(width, height)

    def tab_address(self):
        port_file = os.path.join(self.folder, "DevToolsActivePort")
        for _ in range(300):
            try:
                port = open(port_file, encoding="utf-8").read().split()[0]
                tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=5))
                for tab in tabs:
                    if tab["type"] == "page":
                        return tab["webSocketDebuggerUrl"]
            except (OSError, IndexError, ValueError):
                pass
            time.sleep(0.1)
        raise TimeoutError("chromium did not start")

    def call(self, method, **arguments):
        self.number += 1
        number = self.number
        self.socket.send(json.dumps({"id": number, "method": method, "params": arguments}))
        while True:
            message = json.loads(self.socket.receive())
            self.note(message)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def note(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = values["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning"):
            self.errors.append(" ".join(str(a.get("value", a)) for a in values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.errors.append(values["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            address = values["request"]["url"]
            if not address.startswith(("file:", "data:", "about:", "blob:")):
                self.errors.append("the page asked the network for " + address)

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def open(self, path):
        """Opens a page and waits until it is complete; milliseconds of its marks since navigation began."""
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        for _ in range(1200):
            marks = self.evaluate("Object.fromEntries(performance.getEntriesByType('mark').map(m => [m.name, m.startTime]))")
            if marks and "complete" in marks and self.evaluate("location.protocol") == "file:":
                return marks
            if self.errors:
                raise RuntimeError("; ".join(self.errors))
            time.sleep(0.05)
        raise TimeoutError(path)

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def size(self, width, height, ratio=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=False)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.frame()

    def key(self, key, code=0, text="", modifiers=0):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, text=text, modifiers=modifiers)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code, modifiers=modifiers)
        self.frame()

    def picture(self, path, whole=True):
        arguments = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            arguments = {"captureBeyondViewport": True,
                         "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        answer = self.call("Page.captureScreenshot", format="png", **arguments)
        with open(path, "wb") as out:
            out.write(base64.b64decode(answer["data"]))

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
