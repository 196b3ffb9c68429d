# SPDX-License-Identifier: Apache-2.0
"""`cufit fleet check --ssh` over real sshd: ssh_test.py CUFIT_ON_MACHINE BUILD.

Needs root, sshd and ip; without them it says that it was skipped. All runs in a network and mount
namespace of its own, so that hosts are addresses of its loopback and ssh has its own settings.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOSTS = int(os.environ.get("CUFIT_SSH_HOSTS", "32"))
SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
INSIDE = "CUFIT_SSH_TEST_INSIDE"
GPU = """driver = %s
cuda = 13000
[gpu]
name = NVIDIA H200
uuid = GPU-00000000-1111-2222-3333-444444444440
pci = 0000:01:00.0
cc = 9.0
memory = 150754820096
used = 600000000
field32.230 = %d
"""


def missing():
    if os.geteuid() != 0:
        return "not root"
    if not SSHD:
        return "sshd is not installed"
    if not shutil.which("ip") or not shutil.which("ssh-keygen"):
        return "no ip or ssh-keygen"
    return None


@unittest.skipIf(missing(), missing() or "")
class Ssh(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="cufit-ssh.")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.started = []
        self.addCleanup(self.end_all)
        os.chmod(self.folder, 0o755)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        os.makedirs("/run/sshd", exist_ok=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(name)], check=True)
        machine = self.path("machine")
        subprocess.run(["sh", SOURCE + "/tests/run/machine.sh", machine, "580.95.05", "2335"], check=True)
        subprocess.run(["mount", "--bind", self.settings(), "/etc/ssh"], check=True)
        self.addCleanup(subprocess.run, ["umount", "/etc/ssh"])
        self.names = ["node%02d" % (i + 1) for i in range(HOSTS)]

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as file:
            file.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def settings(self):
        os.mkdir(self.path("etc"))
        hosts = "".join("Host node%02d\n  HostName 127.0.2.%d\n" % (i + 1, i + 1) for i in range(HOSTS + 1))
        self.write("etc/ssh_config", hosts + "Host *\n  User root\n  IdentityFile %s\n  StrictHostKeyChecking no\n"
                   "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n" % self.path("user"))
        return self.path("etc")

    def start(self, index, recovery=0, driver="580.95.05", force=""):
        name = "node%02d" % index
        self.write("standin." + name, GPU % (driver, recovery))
        config = self.write("sshd." + name, "\n".join([
            "Port 22", "ListenAddress 127.0.2.%d" % index, "HostKey " + self.path("host"), "PidFile none", "UsePAM no",
            "AuthorizedKeysFile " + self.path("user.pub"), "StrictModes no", "PasswordAuthentication no", "PermitRootLogin prohibit-password",
            "SetEnv CUFIT_STANDIN=%s CUFIT_TEST_MACHINE=%s LD_LIBRARY_PATH=%s/standin" % (
                self.path("standin." + name), self.path("machine"), BUILD),
            "ForceCommand " + force if force else "", ""]))
        self.started.append(subprocess.Popen([SSHD, "-D", "-f", config], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL, start_new_session=True))

    def end_all(self):
        for process in self.started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def check(self, hosts, *more):
        begun = time.monotonic()
        told = subprocess.run([CUFIT, "fleet", "check", "--ssh", hosts, "--cufit", CUFIT, "--json", *more],
                              capture_output=True, text=True, timeout=300)
        self.assertTrue(told.stdout.startswith("{"), told.stderr)
        return told.returncode, json.loads(told.stdout), time.monotonic() - begun

    def wait_for(self, hosts):
        for _ in range(50):
            if not self.check(hosts)[1]["unreachable"]:
                return
            time.sleep(0.2)
        self.fail("sshd did not start")

    def test_all_hosts_answer(self):
        for i in range(HOSTS):
            self.start(i + 1)
        self.wait_for("node[01-%02d]" % HOSTS)
        code, answer, took = self.check("node[01-%02d]" % HOSTS)
        print("%d hosts in %.2f s" % (HOSTS, took), file=sys.stderr)
        self.assertEqual(code, 0)
        self.assertEqual([node["name"] for node in answer["nodes"]], self.names)
        self.assertEqual([group["nodes"] for group in answer["groups"]], [self.names])

    def test_each_that_cannot_answer_is_named(self):
        self.start(1)
        self.start(2, recovery=2)
        self.start(3, driver="570.86.15")
        self.start(4, force="sleep 60")
        self.start(5, force="echo Welcome to the cluster")
        self.start(6, force="sh -c 'echo {\\\"schema\\\"; yes | head -c 9000000'")
        welcome = self.write("welcome", "#!/bin/sh\necho Welcome\neval \"$SSH_ORIGINAL_COMMAND\"\n", 0o755)
        self.start(7, force=welcome)
        self.wait_for("node01")
        code, answer, took = self.check("node[01-08]", "--timeout", "12")
        self.assertEqual(code, 1)
        self.assertLess(took, 40)
        self.assertEqual({node["name"]: node["action"] for node in answer["nodes"]},
                         {"node01": "ok", "node02": "reboot", "node03": answer["nodes"][2]["action"], "node07": "ok"})
        whys = {one["name"]: one["why"] for one in answer["unreachable"]}
        self.assertEqual(sorted(whys), ["node04", "node05", "node06", "node08"])
        self.assertEqual(whys["node04"], "no answer within 12 s")
        self.assertIn("refused", whys["node08"])


if __name__ == "__main__":
    if missing() is None and INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", "--propagation", "private", sys.executable, "-B", *sys.argv])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
