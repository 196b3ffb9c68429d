# SPDX-License-Identifier: Apache-2.0
"""An Xid on its way: stand-in driver, `cufit exporter`, Prometheus, Alertmanager, webhook. chain_test.py CUFIT BUILD.

All on loopback, in a folder of its own, with the files that `cufit export` writes. Ends with 77 where Prometheus or
Alertmanager is not installed.
"""

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
GPU = """[gpu]
name = NVIDIA H200
uuid = GPU-00000000-1111-2222-3333-44444444444{0}
pci = 0000:6{0}:00.0
memory = 150754820096
xid.79 = {1}
"""
PROMETHEUS = """global: {{scrape_interval: 2s, evaluation_interval: 2s}}
rule_files: [cufit.rules.yml]
alerting: {{alertmanagers: [{{static_configs: [{{targets: ['127.0.0.1:{alertmanager}']}}]}}]}}
scrape_configs:
- {{job_name: cufit, static_configs: [{{targets: ['127.0.0.1:{exporter}']}}]}}
- {{job_name: node, static_configs: [{{targets: ['127.0.0.1:{node}']}}]}}
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Receiver(http.server.BaseHTTPRequestHandler):
    got = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Receiver.got.append((time.time(), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *words):
        pass


class Chain(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.describe(0)
        self.ports = {name: free_port() for name in ("exporter", "prometheus", "alertmanager", "node")}
        self.hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=self.hook.serve_forever, daemon=True).start()
        self.addCleanup(self.hook.shutdown)
        self.environment = dict(
            os.environ,
            CUFIT_STANDIN=self.path("machine"),
            LD_LIBRARY_PATH=os.path.join(BUILD, "standin"),
            CUFIT_LANG="en",
        )

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)

    def describe(self, xid):
        text = "live = 1\ndriver = 580.95.05\ncuda = 13000\n" + GPU.format(0, 0) + GPU.format(1, xid)
        self.write("machine.new", text)
        os.rename(self.path("machine.new"), self.path("machine"))

    def start(self, *words):
        with open(self.path(os.path.basename(words[0]) + ".log"), "w") as log:
            one = subprocess.Popen(words, env=self.environment, stdout=log, stderr=log, cwd=self.folder)
        self.addCleanup(one.wait)
        self.addCleanup(one.send_signal, signal.SIGTERM)

    def export(self, kind):
        words = [CUFIT, "export", "--to", kind]
        return subprocess.run(words, check=True, capture_output=True, text=True, env=self.environment).stdout

    def start_all(self):
        at = "127.0.0.1:%d"
        self.write("cufit.rules.yml", self.export("prometheus-rules"))
        self.write("prometheus.yml", PROMETHEUS.format(**self.ports))
        rewritten = self.export("alertmanager").replace("127.0.0.1:9099", at % self.hook.server_port)
        self.assertIn(str(self.hook.server_port), rewritten)
        self.write("alertmanager.yml", rewritten)
        os.mkdir(self.path("texts"))
        self.start(CUFIT, "exporter", "--interval", "1", "--listen", at % self.ports["exporter"],
                   "--textfile", self.path("texts/cufit.prom"))  # fmt: skip
        self.start("prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=alerts",
                   "--cluster.listen-address=", "--web.listen-address=" + at % self.ports["alertmanager"])  # fmt: skip
        self.start("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                   "--web.listen-address=" + at % self.ports["prometheus"])  # fmt: skip
        if shutil.which("prometheus-node-exporter"):
            self.start("prometheus-node-exporter", "--collector.disable-defaults", "--collector.textfile",
                       "--collector.textfile.directory=texts", "--web.listen-address=" + at % self.ports["node"])  # fmt: skip

    def query(self, text):
        address = "http://127.0.0.1:%d/api/v1/query?query=%s" % (self.ports["prometheus"], urllib.request.quote(text))
        try:
            with urllib.request.urlopen(address, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except OSError:
            return []

    def wait_for(self, wanted, seconds=60):
        end = time.time() + seconds
        while time.time() < end:
            found = wanted()
            if found:
                return found
            time.sleep(0.1)
        logs = "".join(open(self.path(name)).read()[-2000:] for name in os.listdir(self.folder) if name.endswith(".log"))
        self.fail("not within %d s\n%s" % (seconds, logs))

    def alert(self, status):
        for when, body in Receiver.got:
            for one in body["alerts"]:
                if one["labels"]["alertname"] == "CufitGpuXidFatal" and one["status"] == status:
                    return when, one
        return None

    def test_an_xid_reaches_the_webhook(self):
        self.start_all()
        xid = 'cufit_xid_errors_total{job="cufit",gpu="1",xid="79"}'
        # Two scrapes of the zero that it begins with: increase() sees nothing else.
        self.wait_for(lambda: [one for one in self.query("count_over_time(%s[1m])" % xid) if float(one["value"][1]) >= 2])
        self.assertFalse(self.alert("firing"))
        begun = time.time()
        self.describe(1)
        when, alert = self.wait_for(lambda: self.alert("firing"))
        print("from the Xid to the webhook: %.1f s, with a scrape each 2 s" % (when - begun))
        self.assertEqual((alert["labels"]["gpu"], alert["labels"]["severity"]), ("1", "critical"))
        self.assertRegex(alert["annotations"]["summary"], r"^127\.0\.0\.1:\d+: GPU 1 reported Xid 79$")
        self.assertEqual(alert["annotations"]["runbook"], "sudo cufit doctor")
        # Nothing that this machine has is an alarm but this one.
        names = {one["labels"]["alertname"] for _, body in Receiver.got for one in body["alerts"]}
        self.assertEqual(names, {"CufitGpuXidFatal"})
        down = self.query('up{job="cufit"} == 1')
        self.assertEqual(len(down), 1)
        if shutil.which("prometheus-node-exporter"):
            self.wait_for(lambda: self.query('cufit_gpu_info{job="node",gpu="1"}'))


if __name__ == "__main__":
    if not shutil.which("prometheus") or not shutil.which("prometheus-alertmanager"):
        print("skipped: no Prometheus or no Alertmanager here")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
