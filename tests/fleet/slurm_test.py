# SPDX-License-Identifier: Apache-2.0
"""cufit's part of a Slurm cluster, with a real one on loopback: slurm_test.py CUFIT_ON_MACHINE BUILD.

Needs root and Debian's slurm-wlm, slurm-wlm-basic-plugins and munge; without them it says that it
was skipped. CUFIT_SLURM_NODES=128: so many slurmd (else 4). CUFIT_SLURM_HEALTH=0: no health check,
no prolog and no epilog, each of which asks every node, too (to time `fleet check` alone). What it
starts lives in a mount namespace of its own, so that programs of /usr/local/sbin can be put there.
"""

import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

CUFIT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NODES = int(os.environ.get("CUFIT_SLURM_NODES", "4"))
GPU = """[gpu]
name = NVIDIA H200
uuid = GPU-00000000-1111-2222-3333-44444444444{0}
pci = 0000:0{1}:00.0
cc = 9.0
memory = 150754820096
used = 600000000
field32.230 = {2}
vbios = {3}
"""
CONF = """ClusterName=onebox
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
GresTypes=gpu,shard
ReturnToService=2
HealthCheckProgram=/usr/local/sbin/cufit-healthcheck
HealthCheckInterval=5
HealthCheckNodeState=ANY
Prolog=/usr/local/sbin/cufit-prolog
Epilog=/usr/local/sbin/cufit-epilog
PrologFlags=Alloc
NodeName=gpu[001-{last:03}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first_port}-{last_port}] CPUs=8 RealMemory=1000 Gres=gpu:h200:2,shard:16 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
GRES = """NodeName=gpu[001-{last:03}] Name=gpu Type=h200 File={folder}/card[0-1]
NodeName=gpu[001-{last:03}] Name=shard Count=16
"""


def missing():
    if os.geteuid() != 0:
        return "not root"
    if not os.path.isdir("/etc/slurm"):
        return "no /etc/slurm"
    for program in ("slurmctld", "slurmd", "srun", "munged"):
        if not shutil.which(program):
            return program + " is not installed"
    return None


def free_ports(count):
    for start in range(21000, 60000, 512):
        sockets = []
        try:
            for port in range(start, start + count):
                one = socket.socket()
                sockets.append(one)
                one.bind(("127.0.0.1", port))
            return start
        except OSError:
            continue
        finally:
            for one in sockets:
                one.close()
    raise OSError("no ports")


@unittest.skipIf(missing(), missing() or "")
class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="cufit-slurm.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.started = []
        cls.addClassCleanup(cls.end_all)
        os.chmod(cls.folder, 0o755)
        cls.write_cluster()
        cls.start_cluster()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def write(cls, name, text, mode=0o644):
        with open(cls.path(name), "w") as file:
            file.write(text)
        os.chmod(cls.path(name), mode)

    @classmethod
    def describe(cls, node, recovery=0, vbios="96.00.89.00.01", hang="", driver="580.95.05"):
        text = "driver = %s\ncuda = 13000\n%s" % (driver, hang)
        text += "".join(GPU.format(i, i + 1, recovery if i == 1 else 0, vbios) for i in range(2))
        cls.write("standin.new", text)
        os.rename(cls.path("standin.new"), cls.path("standin." + node))

    @classmethod
    def write_cluster(cls):
        first = free_ports(NODES + 2)
        host = socket.gethostname()
        values = dict(host=host, folder=cls.folder, port=first, first_port=first + 1, last=NODES, last_port=first + NODES)
        conf = CONF.format(**values)
        if os.environ.get("CUFIT_SLURM_HEALTH") == "0":
            conf = re.sub(r"^(HealthCheck\w+|Prolog|Epilog)=.*\n", "", conf, flags=re.MULTILINE)
        cls.write("slurm.conf", conf)
        cls.write("gres.conf", GRES.format(**values))
        cls.write("cgroup.conf", "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
        for minor in (0, 1):  # Slurm counts devices alone
            os.mknod(cls.path("card%d" % minor), 0o600 | stat.S_IFCHR, os.makedev(195, minor))
        os.mkdir(cls.path("state"))
        os.mkdir(cls.path("munge"), 0o755)
        machine = cls.path("machine")
        subprocess.run(["sh", SOURCE + "/tests/run/machine.sh", machine, "580.95.05", "2335", "2335"], check=True)
        cls.nodes = ["gpu%03d" % (i + 1) for i in range(NODES)]
        for node in cls.nodes:
            os.mkdir(cls.path("spool." + node))
            cls.describe(node)
        # What a node's administrator puts there: cufit and the scripts that cufit makes.
        bin_ = cls.path("sbin")
        os.mkdir(bin_)
        cls.write(
            "sbin/cufit",
            "#!/bin/sh\nexport CUFIT_TEST_MACHINE=%s CUFIT_STANDIN=%s/standin.$SLURMD_NODENAME LD_LIBRARY_PATH=%s/standin\n"
            "exec %s \"$@\"\n" % (machine, cls.folder, BUILD, CUFIT),
            0o755,
        )
        for format_ in ("slurm-health", "slurm-prolog"):
            subprocess.run([CUFIT, "export", "--to", format_, "-o", bin_ + "/"], check=True, stdout=subprocess.DEVNULL)

    @classmethod
    def in_namespace(cls, *command):
        """The words that run a command where /usr/local/sbin and /etc/slurm are the cluster's own: a health check
        gets no SLURM_CONF."""
        script = 'mount --make-rprivate / && mount --bind "$1/sbin" /usr/local/sbin && mount --bind "$1" /etc/slurm && shift && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", cls.folder, *command]

    @classmethod
    def start(cls, *command, **options):
        process = subprocess.Popen(
            cls.in_namespace(*command), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=cls.environment(), start_new_session=True, **options)
        cls.started.append(process)
        return process

    @classmethod
    def environment(cls):
        return {**os.environ, "SLURM_CONF": cls.path("slurm.conf"), "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    @classmethod
    def end_all(cls):
        for process in reversed(cls.started):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
        for process in cls.started:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    @classmethod
    def start_cluster(cls):
        with open(cls.path("munge/key"), "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(cls.path("munge/key"), 0o400)
        cls.start("munged", "--foreground", "--force", "--key-file=" + cls.path("munge/key"), "--socket=" + cls.path("munge/socket"),
                  "--pid-file=" + cls.path("munge/pid"), "--log-file=" + cls.path("munge/log"), "--seed-file=" + cls.path("munge/seed"))
        cls.until(lambda: os.path.exists(cls.path("munge/socket")), 10, "munged")
        cls.start("slurmctld", "-D", "-f", cls.path("slurm.conf"))
        for node in cls.nodes:
            cls.start("slurmd", "-D", "-N", node, "-f", cls.path("slurm.conf"))
        cls.until(lambda: cls.states().count("idle") == NODES, 60, "all nodes idle")

    @classmethod
    def until(cls, holds, seconds, what):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if holds():
                return seconds - (end - time.monotonic())
            time.sleep(0.2)
        raise AssertionError("not within %g s: %s" % (seconds, what))

    @classmethod
    def tell(cls, *command, **options):
        return subprocess.run(cls.in_namespace(*command), env=cls.environment(), capture_output=True, text=True, **options)

    @classmethod
    def states(cls):
        return [line.split("|")[1] for line in cls.tell("sinfo", "-h", "-N", "-o", "%N|%t").stdout.splitlines()]

    def node(self, name):
        line = self.tell("scontrol", "-o", "show", "node", name).stdout
        reason = re.search(r" Reason=(.*)", line)
        return re.search(r" State=(\S+)", line).group(1), reason.group(1) if reason else ""

    def drained(self, name):
        return "DRAIN" in self.node(name)[0]

    def resume(self, *names):
        for name in names:
            self.describe(name)
            self.tell("scontrol", "update", "NodeName=" + name, "State=RESUME")
        self.until(lambda: not any(self.drained(name) for name in names), 20, "resumed")
        self.until(lambda: self.states().count("idle") == NODES, 30, "all nodes idle")

    def test_a_fault_drains_within_the_interval_and_its_end_resumes(self):
        name = self.nodes[-1]
        self.describe(name, recovery=1)
        took = self.until(lambda: self.drained(name), 20, "drained")
        print("drained after %.1f s at an interval of 5 s" % took, file=sys.stderr)
        self.assertRegex(self.node(name)[1], r"^cufit: \(drain\): GPU 1: the driver asks for: reset \[root@")
        self.describe(name)
        self.until(lambda: not self.drained(name), 20, "resumed")

    def test_what_others_drained_stays_so(self):
        name = self.nodes[0]
        self.tell("scontrol", "update", "NodeName=" + name, "State=DRAIN", "Reason=disk: cufit: no")
        self.until(lambda: self.drained(name), 10, "drained")
        time.sleep(12)  # two health checks
        self.assertTrue(self.drained(name))
        self.describe(name, recovery=2)
        time.sleep(7)
        self.assertRegex(self.node(name)[1], r"^disk: cufit: no")
        self.resume(name)

    def test_who_cannot_tell_drains_nothing(self):
        name = self.nodes[1]
        self.describe(name, hang="hang = nvmlInit_v2\n")
        time.sleep(25)  # a check begins within 5 s and ends after 10
        self.assertFalse(self.drained(name), self.node(name))
        self.describe(name)

    def test_a_prolog_keeps_a_job_from_a_broken_gpu(self):
        name = self.nodes[2]
        self.describe(name, recovery=1)
        job = self.tell("sbatch", "--parsable", "--nodelist=" + name, "--gres=gpu:2", "-o", "/dev/null", "--wrap", "true").stdout.strip()
        self.until(lambda: self.drained(name), 30, "drained")
        state = lambda: self.tell("scontrol", "-o", "show", "job", job).stdout
        self.until(lambda: "JobState=COMPLETING" not in state(), 30, "the epilog has ended")
        self.assertRegex(state(), r"JobState=PENDING|JobState=REQUEUE|JobState=FAILED")
        self.assertNotIn("JobState=COMPLETED", state())
        self.tell("scancel", job)
        self.resume(name)

    def test_a_good_job_runs_with_its_shards_as_quota(self):
        told = self.tell("srun", "--gres=shard:4", "sh", "-c", "cufit run --vram shards -- true; echo $SLURM_SHARDS_ON_NODE $SLURM_JOB_GPUS")
        # 16 shards on two cards: 4 are half of one.
        self.assertIn("70.2 GiB of GPU 0", told.stderr)
        self.assertEqual(told.stdout.split(), ["4"])

    def test_fleet_check(self):
        odd = self.nodes[1]
        self.describe(odd, vbios="96.00.89.00.99")
        self.tell("scontrol", "update", "NodeName=" + self.nodes[0], "State=DRAIN", "Reason=fan")
        self.until(lambda: "drain" in "".join(self.states()), 10, "drained")
        begun = time.monotonic()
        told = self.tell("/usr/local/sbin/cufit", "fleet", "check", "--slurm", "--json", "--cufit", "/usr/local/sbin/cufit")
        took = time.monotonic() - begun
        print("%d nodes in %.2f s" % (NODES, took), file=sys.stderr)
        answer = json.loads(told.stdout)
        self.assertEqual([one["name"] for one in answer["unreachable"]], [self.nodes[0]], told.stderr)
        self.assertIn("fan", answer["unreachable"][0]["why"])
        self.assertEqual(sorted(node["name"] for node in answer["nodes"]), self.nodes[1:])
        differing = [group for group in answer["groups"] if group["differs"]]
        self.assertEqual([group["nodes"] for group in differing], [[odd]])
        self.assertEqual(differing[0]["differs"], [{"what": "vbios", "value": "96.00.89.00.99", "majority": "96.00.89.00.01"}])
        self.resume(self.nodes[0], odd)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
