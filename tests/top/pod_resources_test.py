# SPDX-License-Identifier: Apache-2.0
"""`cufit top` beside a kubelet that gRPC's own server plays: pod_resources_test.py CUFIT_ON_MACHINE BUILD.
Ends with 77 where there is no grpcio."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent import futures

try:
    import grpc
except ImportError:
    print("skipped: no grpcio (Debian: python3-grpcio)")
    sys.exit(77)

CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
METHOD = "/v1.PodResourcesLister/List"
UID = "5f413373-db04-4240-a645-993a3fbcff%02d"
NOBODY = 65534


def gpu(number):
    return "GPU-00000000-1111-2222-3333-4444444444%02d" % number


def number(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(place, inside):
    inside = inside.encode() if isinstance(inside, str) else inside
    return number(place << 3 | 2) + number(len(inside)) + inside


def pod(name, ids, resource="nvidia.com/gpu", container="main"):
    devices = field(1, resource) + b"".join(field(2, one) for one in ids)
    devices += field(3, field(1, b"\x08\x01"))  # topology
    inside = field(1, container) + field(2, devices) + number(3 << 3) + number(7)  # a CPU
    space, _, name = name.partition("/")
    return field(1, field(1, name) + field(2, space) + field(3, inside))


class Kubelet(grpc.GenericRpcHandler):
    """Answers List with what `say` is: bytes, or a function of the call's context."""

    def __init__(self, path, say):
        self.say, self.asked = say, 0
        self.server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[self])
        self.server.add_insecure_port("unix:" + path)
        self.server.start()

    def service(self, call):
        if call.method == METHOD:
            return grpc.unary_unary_rpc_method_handler(self.answer)
        return None

    def answer(self, request, context):
        self.asked += 1
        assert request == b"", request
        return self.say(context) if callable(self.say) else self.say


class PodResources(unittest.TestCase):
    def setUp(self):
        # A socket's path has at most 107 letters.
        self.folder = tempfile.mkdtemp(dir="/tmp")
        self.addCleanup(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o755)
        self.machine = os.path.join(self.folder, "machine")
        self.socket = self.machine + SOCKET
        os.makedirs(os.path.dirname(self.socket))
        self.write("/proc/stat", "cpu 1 2 3\nbtime 1700000000\n")
        self.described = ""
        self.gpus = 0

    def write(self, path, text):
        path = self.machine + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)

    def card(self, *lines):
        self.described += "[gpu]\nname = NVIDIA H200\nuuid = %s\npci = 0000:%02x:00.0\n" % (
            gpu(self.gpus),
            self.gpus + 1,
        )
        self.described += "memory = 150754820096\nused = 96600000000\n"
        self.described += "".join(line + "\n" for line in lines)
        self.gpus += 1

    def process(self, pid, uid=None, hostname="", container="e" * 64):
        self.described += "[process]\npid = %d\nused = 1000000000\n" % pid
        at = "/proc/%d" % pid
        after = "S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 9 0 5000 100 10 1"
        self.write("%s/task/%d/stat" % (at, pid), "%d (python) %s\n" % (pid, after))
        self.write(at + "/status", "Name:\tpython\nUid:\t0\t0\t0\t0\n")
        self.write(at + "/cmdline", "python\0train.py\0")
        self.write(at + "/environ", "A=1\0HOSTNAME=%s\0" % hostname if hostname else "A=1\0")
        cgroup = "0::/user.slice\n"
        if uid is not None:
            cgroup = "0::/kubepods.slice/kubepods-pod%s.slice/cri-containerd-%s.scope\n" % (
                (UID % uid).replace("-", "_"),
                container,
            )
        self.write(at + "/cgroup", cgroup)

    def kubelet(self, say):
        kubelet = Kubelet(self.socket, say)
        # stop() answers those who wait, but a thread that sleeps is not waited for.
        self.addCleanup(lambda: kubelet.server.stop(0).wait())
        return kubelet

    def top(self, *options, **how):
        described = os.path.join(self.folder, "driver")
        with open(described, "w") as file:
            file.write("live = 1\ndriver = 580.95.05\ncuda = 13000\n" + self.described)
        variables = {
            "PATH": os.environ["PATH"],
            "CUFIT_STANDIN": described,
            "CUFIT_TEST_MACHINE": self.machine,
            "LD_LIBRARY_PATH": self.folder + ":" + os.path.join(BUILD, "standin"),
            "LC_ALL": "C.UTF-8",
            "http_proxy": "http://127.0.0.1:9",  # of no concern to a socket
        }
        done = subprocess.run(
            [CUFIT, "top", *options], env=variables, capture_output=True, text=True, **how
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def picture(self, samples=4, **how):
        """Namespace and pod of each process, and what is said of names that are missing."""
        # The first sample waits 200 ms for the answer, and this machine may be busy.
        options = ["--samples", str(samples), "--interval", "0.2"]
        out = json.loads(self.top("--json", *options, **how))
        pods = {
            one["pid"]: one["pod"] and one["namespace"] + "/" + one["pod"]
            for one in out["processes"]
        }
        return pods, [one["why"] for one in out["missing"] if one["what"] == "pod names"]

    def problem(self, **how):
        """Of a kubelet that says nothing of use: the sample comes without the name."""
        self.card()
        self.process(11, 1)
        pods, missing = self.picture(**how)
        self.assertEqual(pods, {11: None})
        self.assertEqual(len(missing), 1, missing)
        return missing[0]

    def test_names_of_pods(self):
        kubelet = self.kubelet(
            pod("nlp/train-0", [gpu(0)], container="trainer") + pod("web/serve", [gpu(1)])
        )
        self.card()
        self.process(11, 1)
        self.process(12)  # of no pod
        self.card()
        self.process(13, 2)
        self.assertEqual(self.picture(), ({11: "nlp/train-0", 12: None, 13: "web/serve"}, []))
        self.assertEqual(kubelet.asked, 1)
        often = ["--samples", "4", "--interval", "0.2"]
        self.assertIn("nlp/train-0", self.top("--once", *often))
        processes = json.loads(self.top("--json", *often))["processes"]
        self.assertIn("trainer", [one["container_name"] for one in processes])

    def test_what_gpus_are_given_to(self):
        self.kubelet(pod("nlp/idle", [gpu(0)], container="api"))
        self.card()
        self.card()
        record = os.path.join(self.folder, "record")
        options = ["--samples", "4", "--interval", "0.2", "--record", record]
        gpus = json.loads(self.top("--json", *options))["gpus"]
        given = {"namespace": "nlp", "pod": "idle", "container": "api"}
        self.assertEqual([one["pods"] for one in gpus], [[given], []])
        with open(record) as file:
            last = json.loads(file.readlines()[-1])
        self.assertEqual(last["gpus"][0]["pods"][0]["pod"], "pod-1")

    def test_it_is_asked_seldom(self):
        kubelet = self.kubelet(pod("nlp/train-0", [gpu(0)]))
        self.card()
        self.process(11, 1)
        self.picture(samples=8)
        self.assertEqual(kubelet.asked, 1)

    def test_time_slicing(self):
        shared = [pod("a/p%d" % i, [gpu(0) + "::%d" % i], "nvidia.com/gpu.shared") for i in range(4)]
        self.kubelet(b"".join(shared))
        self.card()
        self.process(11, 1, hostname="p2")
        self.process(12, 2, hostname="node-7")
        self.assertEqual(
            self.picture(), ({11: "a/p2", 12: None}, ["several pods share GPU 0"])
        )

    def test_two_hundred_pods(self):
        pods = [pod("a/idle-%d" % i, ["mlx5_%d" % i], "rdma/hca") for i in range(192)]
        pods += [pod("b/train-%d" % i, [gpu(i)]) for i in range(8)]
        self.kubelet(b"".join(pods))
        for i in range(8):
            self.card()
            self.process(11 + i, i, container="%064x" % i)
        self.assertEqual(self.picture(), ({11 + i: "b/train-%d" % i for i in range(8)}, []))

    def test_no_socket_is_no_news(self):
        self.card()
        self.process(11, 1)
        self.assertEqual(self.picture(), ({11: None}, []))

    def test_an_error_status(self):
        def rejected(context):
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")

        self.kubelet(rejected)
        self.assertRegex(self.problem(), "kubelet.sock`: (gRPC status 8: rejected|Stream error)")

    def test_another_service(self):
        class Other(Kubelet):
            def service(self, call):
                return None

        other = Other(self.socket, b"")
        self.addCleanup(lambda: other.server.stop(0).wait())
        # gRPC says the status and resets the stream whose request it did not read. If both come at once, libcurl 7.88
        # tells the latter alone.
        self.assertRegex(self.problem(), "kubelet.sock`: (gRPC status 12|Stream error)")

    def test_a_slow_answer(self):
        ended = threading.Event()

        def slowly(context):
            ended.wait(20)
            return b""

        self.kubelet(slowly)
        self.addCleanup(ended.set)  # runs first
        self.assertIn("kubelet.sock`: no answer within 1 s", self.problem(samples=10))

    def test_a_huge_answer(self):
        self.kubelet(pod("a/b", ["x" * (5 << 20)]))
        self.assertIn("the answer is larger than 4 MiB", self.problem())

    def test_noise_in_gRPC(self):
        self.kubelet(b"\x0a\xff\xff\xff\xff\x0f")
        self.assertIn("byte 0: field 1 is longer than what is there", self.problem())

    def raw(self, say):
        """What is no gRPC at all."""
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.socket)
        server.listen()
        self.addCleanup(server.close)

        def serve():
            try:
                while True:
                    one, _ = server.accept()
                    one.recv(4096)
                    one.sendall(say)
                    one.close()
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()

    def test_what_is_no_grpc(self):
        self.raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno\n")
        self.assertIn("kubelet.sock`: ", self.problem())

    def test_a_daemon_that_hangs_up(self):
        self.raw(b"")
        self.assertIn("kubelet.sock`: ", self.problem())

    def test_nobody_listens(self):
        server = socket.socket(socket.AF_UNIX)
        server.bind(self.socket)
        server.close()
        self.assertIn("kubelet.sock`: Connection refused", self.problem())

    def test_without_libcurl(self):
        self.kubelet(pod("nlp/train-0", [gpu(0)]))
        for name in ("libcurl.so.4", "libcurl-gnutls.so.4"):
            with open(os.path.join(self.folder, name), "w") as file:
                file.write("no library")
        self.assertIn("needs a libcurl with HTTP/2 and unix sockets", self.problem())

    def test_without_the_right(self):
        self.kubelet(pod("nlp/train-0", [gpu(0)]))
        os.chmod(self.socket, 0o600 if os.geteuid() == 0 else 0)
        if os.geteuid() == 0 and subprocess.run(
            [CUFIT, "--version"], user=NOBODY, capture_output=True
        ).returncode:
            self.skipTest("nobody may not start the program")
        said = self.problem(**({"user": NOBODY} if os.geteuid() == 0 else {}))
        self.assertEqual(
            said, "`%s`: Permission denied; as root the kubelet can be asked" % SOCKET
        )


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
