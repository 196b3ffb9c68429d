# SPDX-License-Identifier: Apache-2.0
"""`cufit watch` and its receivers, over loopback and the stand-in driver: watch_test.py CUFIT BUILD."""

import http.server
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SECRET = "T0/B0/verysecret"
GPU = """[gpu]
name = NVIDIA H200
uuid = GPU-00000000-1111-2222-3333-444444444440
pci = 0000:61:00.0
memory = 150754820096
used = 96600000000
utilization = 97
"""
OK = (200, b'{"errcode":0,"errmsg":"ok","code":0}')


class Receiver:
    """Answers with `answers` one after another, then with OK; keeps (path, time, body)."""

    def __init__(self, answers=(), delay=0):
        self.posts, self.answers = queue.Queue(), list(answers)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posts.put((self.path, time.monotonic(), json.loads(body)))
                time.sleep(delay)
                status, text = outer.answers.pop(0) if outer.answers else OK
                try:
                    self.send_response(status)
                    if status == 302:
                        self.send_header("Location", "/elsewhere")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, kind):
        return "%s+http://127.0.0.1:%d/%s" % (kind, self.server.server_address[1], SECRET)

    def next(self, seconds=20):
        return self.posts.get(timeout=seconds)

    def none_within(self, seconds):
        try:
            return self.posts.get(timeout=seconds)
        except queue.Empty:
            return None


class Watch(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.machine = os.path.join(self.folder, "machine")
        self.describe()
        self.env = dict(
            os.environ,
            CUFIT_STANDIN=self.machine,
            LD_LIBRARY_PATH=os.path.join(BUILD, "standin"),
            CUFIT_LANG="en",
            no_proxy="127.0.0.1",
        )

    def describe(self, *lines):
        with open(self.machine + ".new", "w") as file:
            file.write("live = 1\ndriver = 580.95.05\ncuda = 13000\n" + GPU)
            file.write("".join(line + "\n" for line in lines))
        os.rename(self.machine + ".new", self.machine)

    def receiver(self, *args, **words):
        out = Receiver(*args, **words)
        self.addCleanup(out.server.server_close)
        self.addCleanup(out.server.shutdown)
        return out

    def start(self, *options):
        out = open(os.path.join(self.folder, "out"), "w+")
        err = open(os.path.join(self.folder, "err"), "w+")
        self.addCleanup(out.close)
        self.addCleanup(err.close)
        self.program = subprocess.Popen(
            [CUFIT, "watch", "--interval", "0.1", *options], stdout=out, stderr=err, env=self.env
        )
        self.addCleanup(self.program.wait)
        self.addCleanup(self.program.kill)
        deadline = time.monotonic() + 30
        while "watching:" not in self.read("err"):
            self.assertLess(time.monotonic(), deadline, self.read("err"))
            time.sleep(0.02)

    def read(self, name):
        with open(os.path.join(self.folder, name)) as file:
            return file.read()

    def end(self):
        self.program.send_signal(signal.SIGINT)
        code = self.program.wait(timeout=20)
        said = self.read("out") + self.read("err")
        self.assertNotIn("verysecret", said)
        return code

    def wait_for(self, name, text, seconds=20):
        deadline = time.monotonic() + seconds
        while text not in self.read(name):
            self.assertLess(time.monotonic(), deadline, "%r is not in %r" % (text, self.read(name)))
            time.sleep(0.05)

    def test_a_receiver_that_fails_twice_then_accepts(self):
        receiver = self.receiver([(500, b"no"), (503, b"")])
        self.start("--notify", receiver.url("slack"))
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        posts = [receiver.next() for _ in range(3)]
        self.assertEqual(posts[0][2], posts[2][2])
        self.assertIn("could not be replaced", posts[0][2]["text"])
        self.assertEqual(posts[0][0], "/" + SECRET)
        # 1 s, then 2 s: later and later.
        self.assertGreaterEqual(posts[1][1] - posts[0][1], 0.9)
        self.assertGreaterEqual(posts[2][1] - posts[1][1], 1.9)
        self.assertIsNone(receiver.none_within(1.5))  # told once
        self.assertEqual(self.end(), 130)
        self.assertEqual(self.read("err").count("no message arrived yet (HTTP 500: no)"), 1)
        self.assertEqual(self.read("out").count("critical"), 1)

    def test_a_slow_receiver_holds_up_nothing(self):
        slow, quick = self.receiver(delay=30), self.receiver()
        self.start("--notify", slow.url("slack"), "--notify", quick.url("feishu"), "--json")
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        slow.next()
        self.assertEqual(quick.next()[2]["msg_type"], "post")
        self.describe("remapped.corrected = 0", "remapped.failed = 1", "xid.79 = 1")
        self.assertIn("Xid 79", json.dumps(quick.next(5)[2]))
        end = time.monotonic() + 10  # it is sent first and printed then
        while self.read("out").count("\n") < 2 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.read("out").count("\n"), 2)
        begun = time.monotonic()
        self.assertEqual(self.end(), 130)
        self.assertLess(time.monotonic() - begun, 15)
        self.assertIn("messages that were not sent any more: 2", self.read("err"))

    def test_recovery_is_told(self):
        receiver = self.receiver()
        self.start("--notify", receiver.url("webhook"))
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        begun = receiver.next()[2]
        self.assertEqual((begun["version"], begun["status"]), ("4", "firing"))
        alert = begun["alerts"][0]
        self.assertEqual(alert["labels"]["alertname"], "CufitGpuRemapFailed")
        self.assertEqual(alert["endsAt"], "0001-01-01T00:00:00Z")
        time.sleep(1.1)  # times are told in whole seconds
        # It comes and goes: nothing is told.
        self.describe("remapped.corrected = 0", "remapped.failed = 0")
        time.sleep(1)
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        self.assertIsNone(receiver.none_within(2))
        self.describe("remapped.corrected = 0", "remapped.failed = 0")
        over = receiver.next(90)[2]
        self.assertEqual(over["status"], "resolved")
        self.assertEqual(over["alerts"][0]["fingerprint"], alert["fingerprint"])
        self.assertGreater(over["alerts"][0]["endsAt"], over["alerts"][0]["startsAt"])
        self.end()

    def test_an_answer_that_says_no(self):
        receiver = self.receiver([(200, b'{"errcode":310000,"errmsg":"keywords not in content"}')])
        self.start("--notify", receiver.url("dingtalk"))
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        self.assertEqual(receiver.next()[2]["msgtype"], "markdown")
        self.wait_for("err", "310000 keywords not in content")
        self.assertIsNone(receiver.none_within(2))  # the same would be said again
        # Whichever of these Xids is the first to be told: that one was refused keeps no other back.
        for count in range(1, 6):
            self.describe("remapped.corrected = 0", "remapped.failed = 1", "xid.79 = %d" % count)
            told = receiver.none_within(10)
            if told:
                break
        self.assertIn("Xid 79", told[2]["markdown"]["title"])
        self.end()

    def test_redirects_are_not_followed(self):
        receiver = self.receiver([(302, b"")])
        self.start("--notify", receiver.url("ntfy"))
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        path, _, body = receiver.next()
        self.assertEqual((path, body["topic"]), ("/T0/B0/", "verysecret"))
        self.wait_for("err", "HTTP 302")
        self.assertIsNone(receiver.none_within(1))
        self.end()

    def test_no_child_shows_the_address(self):
        receiver = self.receiver(delay=3)
        path = os.path.join(self.folder, "address")
        with open(path, "w") as file:
            file.write(receiver.url("slack") + "\n")
        self.start("--notify", "@" + path, "--exec", "sleep 2")
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        receiver.next()
        number = str(self.program.pid)
        words = ["ps", "-o", "args=", "--pid", number, "--ppid", number]
        shown = subprocess.run(words, capture_output=True, text=True).stdout
        self.assertIn("sleep 2", shown)
        self.assertNotIn("verysecret", shown)
        self.end()

    def test_a_program_of_the_user(self):
        out = os.path.join(self.folder, "alarms")
        self.env["OUT"] = out
        self.env["ADDRESS"] = self.receiver().url("slack")  # a secret, which is not handed on
        command = 'echo "$ADDRESS$CUFIT_STATE $CUFIT_ALERT $CUFIT_GPU $CUFIT_SUMMARY" >>"$OUT"; cat >>"$OUT"; exit 4'
        self.start("--exec", command, "--notify", "env:ADDRESS")
        self.describe("remapped.corrected = 0", "remapped.failed = 1")
        self.wait_for("err", "exit code 4")
        first, second = self.read("alarms").splitlines()
        self.assertEqual(
            first, "firing gpu_remap_failed 0 GPU 0: a bad memory row could not be replaced"
        )
        alarm = json.loads(second)
        self.assertEqual((alarm["schema"], alarm["alert"]), ("cufit.watch/1", "gpu_remap_failed"))
        self.end()

    def test_names_become_no_command(self):
        rules = os.path.join(self.folder, "rules.toml")
        with open(rules, "w") as file:
            file.write(
                '[[rule]]\nid = "here"\nseverity = "info"\nsummary = "{command} of {user}"\n'
                'runbook = "echo {command}"\n'
                'conditions = [{metric = "cufit_process_memory_bytes", compare = ">", threshold = 0}]\n'
            )
        hostile = '"; touch %s/pwned; $(touch %s/pwned) `touch %s/pwned` \'' % ((self.folder,) * 3)
        sleeper = subprocess.Popen([hostile, "60"], executable=shutil.which("sleep"))
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        out = os.path.join(self.folder, "alarms")
        self.env["OUT"] = out
        self.describe("[process]", "pid = %d" % sleeper.pid, "used = 5000000000")
        self.start("--rules", rules, "--exec", 'printf "%s\\n" "$CUFIT_SUMMARY" "$CUFIT_RUNBOOK" >>"$OUT"')
        deadline = time.monotonic() + 20
        while not os.path.exists(out) or self.read("alarms").count("\n") < 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertIn("touch", self.read("alarms"))
        # The step that is told is one that can be pasted.
        subprocess.run(["sh", "-c", self.read("alarms").splitlines()[1]], check=True, capture_output=True)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "pwned")))
        self.end()

    def test_the_test_alarm(self):
        good = self.receiver()
        bad = self.receiver([(200, b'{"code":19021,"msg":"sign match fail"}')])
        words = [CUFIT, "watch", "--test", "--notify", good.url("wecom")]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("[test]", good.next()[2]["markdown"]["content"])
        self.assertIn("http://127.0.0.1:", done.stdout)
        words += ["--notify", bad.url("feishu"), "--exec", "exit 3", "--notify", "http://127.0.0.1:9/" + SECRET]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("19021 sign match fail", done.stdout)
        self.assertIn("exit code 3", done.stdout)
        self.assertIn("took the test alarm", done.stdout)
        self.assertNotIn("verysecret", done.stdout + done.stderr)

    def test_receivers_of_one_host_are_told_apart(self):
        first, second = self.receiver([(404, b"no")]), self.receiver([(404, b"no")])
        self.env["ADDRESS"] = first.url("slack")
        path = os.path.join(self.folder, "address")
        with open(path, "w") as file:
            file.write(second.url("feishu") + "\n")
        os.chmod(path, 0o600)
        words = [CUFIT, "watch", "--test", "--notify", "env:ADDRESS", "--notify", "@" + path]
        words += ["--notify", self.receiver().url("wecom")]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        said = done.stdout.splitlines()
        for line, kind in zip(said, ("slack, env:ADDRESS", "feishu, @" + path, "wecom, no. 3")):
            self.assertRegex(line, r"http://127\.0\.0\.1:\d+/\.\.\. \(" + kind + r"\): ")
        self.assertEqual((len(said), done.returncode), (3, 1))
        self.assertNotIn("verysecret", done.stdout + done.stderr)

    def test_a_file_that_others_get_at(self):
        path = os.path.join(self.folder, "address")
        with open(path, "w") as file:
            file.write(self.receiver().url("slack") + "\n")
        root = os.geteuid() == 0
        cases = [(0o600, 0, 0), (0o400, 0, 0), (0o644, 1, 0), (0o664, 1, 0), (0o666, 0, 3), (0o640, 0 if root else 1, 0)]
        for mode, warnings, code in cases + ([(0o440, 0, 0), (0o444, 0, 0)] if root else []):
            os.chmod(path, mode)
            words = [CUFIT, "watch", "--test", "--notify", "@" + path]
            done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, (oct(mode), done.stderr))
            self.assertEqual(done.stderr.count("other users may get at it"), warnings, (oct(mode), done.stderr))
            self.assertEqual("chmod 600 " + path in done.stderr, warnings > 0 or code > 0, done.stderr)

    def first_words(self, command, state, seconds=2):
        """What is said on stderr within so many seconds."""
        with open(self.machine, "w") as file:
            file.write(state + "\ndriver = 580.95.05\ncuda = 13000\n" + GPU)
        program = subprocess.Popen(
            [CUFIT, *command], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        timer = threading.Timer(seconds, program.kill)
        timer.start()
        out = program.stderr.readline()
        timer.cancel()
        program.kill()
        return out

    def test_a_driver_that_does_not_answer_is_said(self):
        for command in (["watch"], ["top", "--once"], ["top", "--json"], ["exporter", "--once"]):
            said = self.first_words(command, "hang = nvmlDeviceGetCount_v2")
            self.assertRegex(
                said,
                r"does not answer yet \(in nvmlDeviceGetCount_v2\); it is waited for until \d\d:\d\d:\d\d",
                command,
            )
            said = self.first_words(command, "crash = nvmlDeviceGetCount_v2")
            self.assertRegex(said, r"ended \(signal \d+, in nvmlDeviceGetCount_v2\); it is tried again", command)

    def test_an_answer_that_repeats_the_address(self):
        padding = b"x" * (100 - len("Cannot POST /T0/B0/very"))  # the cut goes through the secret
        text = padding + b"Cannot POST /T0/B0/verysecret"
        for answers in ([(404, b"Cannot POST /T0/B0/verysecret")], [(404, text)], [(200, b"no: /T0/B0/verysecret")]):
            bad = self.receiver(answers)
            words = [CUFIT, "watch", "--test", "--notify", bad.url("feishu" if answers[0][0] == 200 else "webhook")]
            done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stdout, "POST|no: |xxx")
            self.assertNotIn("very", done.stdout + done.stderr)

    def test_a_reader_of_stdout_that_ends_costs_no_message(self):
        receiver = self.receiver()
        pipe = os.pipe()
        command = [CUFIT, "watch", "--interval", "0.1", "--notify", receiver.url("slack")]
        program = subprocess.Popen(command, env=self.env, stdout=pipe[1], stderr=subprocess.PIPE, text=True)
        self.addCleanup(program.stderr.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        os.close(pipe[1])
        self.assertIn("watching:", program.stderr.readline())
        os.close(pipe[0])
        time.sleep(0.5)
        self.describe("xid.79 = 1")
        self.assertIn("Xid 79", receiver.next()[2]["text"])
        # It goes on: a full disk under its journal is no reason to watch no more.
        self.describe("xid.79 = 1", "remapped.corrected = 0", "remapped.failed = 1")
        self.assertIn("memory row", receiver.next()[2]["text"])
        self.assertIsNone(program.poll())
        program.send_signal(signal.SIGTERM)
        self.assertEqual(program.wait(30), 143)

    def test_a_recording_whose_clock_was_set_back(self):
        path = os.path.join(self.folder, "run.jsonl")
        with open("tests/watch/fallen.jsonl") as file:
            lines = file.read().splitlines()
        for i in range(6, len(lines)):
            sample = json.loads(lines[i])
            sample["time"] -= 7200
            lines[i] = json.dumps(sample)
        with open(path, "w") as file:
            file.write("\n".join(lines) + "\n")
        words = [CUFIT, "watch", "--from", path, "--json"]
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        firing = sorted(one["alert"] for one in told if one["state"] == "firing")
        self.assertEqual(firing, ["gpu_lost", "gpu_remap_pending", "gpu_xid_fatal"], done.stdout)

    def test_a_driver_that_hangs_is_an_alarm(self):
        rules = os.path.join(self.folder, "rules.toml")
        with open(rules, "w") as file:
            file.write('[[rule]]\nid = "driver_stalled"\nfor = "0s"\n')
        self.start("--rules", rules)
        with open(self.machine) as file:
            text = file.read()
        with open(self.machine + ".new", "w") as file:
            file.write("hang = nvmlDeviceGetMemoryInfo_v2\n" + text)
        os.rename(self.machine + ".new", self.machine)
        self.wait_for("out", "does not answer", 40)
        self.end()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
