# SPDX-License-Identifier: Apache-2.0
"""What `cufit export --to dockerfile --with jupyter,ssh` writes, without an image. services_test.py CUFIT.

The start script runs in a folder that stands for the root, with programs that note how they were called in place of sshd
and Jupyter; sshd itself reads the configuration (-T), Python reads Jupyter's. tests/image/universal_image_test.py builds
the image and logs in.
"""

import json
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

CUFIT = os.path.abspath(sys.argv[1])
LOCK = pathlib.Path("tests/export/lock").absolute()
TOKEN = "0123456789abcdef0123"


def export(folder, *options):
    subprocess.run(
        [CUFIT, "export", "--lang", "en", "--to", "dockerfile", "--lock", LOCK, "-o", folder, *options],
        check=True,
        capture_output=True,
    )
    return pathlib.Path(folder)


class Root:
    """A folder with the script's places: paths of the image become paths below it."""

    def __init__(self, services="jupyter,ssh"):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="cufit-image-"))
        files = export(self.path / "out", "--with", services)
        text = (files / "image/services").read_text()
        for place in ("/var/lib/cufit", "/run/secrets", "/opt/cufit", "/usr/sbin/sshd"):
            text = text.replace(place, str(self.path) + place)
        (self.path / "services").write_text(text)
        for name, body in {
            "usr/sbin/sshd": 'printf "%s\\n" "$@" >"$NOTES/sshd"',
            "opt/cufit/jupyter/bin/jupyter-lab": 'env >"$NOTES/jupyter"; printf "%s\\n" "$@" >>"$NOTES/jupyter"',
            "bin/id": "echo 1000",  # the script refuses root, and who tests may be root
        }.items():
            program = self.path / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text("#!/bin/bash\n" + body + "\nsleep 0.3\nexit 3\n")
            program.chmod(0o755)
        (self.path / "run/secrets").mkdir(parents=True)
        (self.path / "var/lib/cufit").mkdir(parents=True)
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path / "key"], check=True)

    def start(self, **variables):
        env = {"PATH": f"{self.path}/bin:/usr/bin:/bin", "NOTES": str(self.path), "HOME": str(self.path), **variables}
        for name in ("sshd", "jupyter"):
            (self.path / name).unlink(missing_ok=True)
        done = subprocess.run(
            ["bash", self.path / "services"], env=env, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stderr

    def noted(self, name):
        file = self.path / name
        return file.read_text() if file.exists() else None

    @property
    def public_key(self):
        return (self.path / "key.pub").read_text()

    def state(self, name):
        return self.path / "var/lib/cufit" / name

    def close(self):
        shutil.rmtree(self.path)


def no_keys():
    """ssh-keygen makes none for a user without a name."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return "this user has no name"
    return None if shutil.which("ssh-keygen") else "no ssh-keygen here"


@unittest.skipIf(no_keys(), no_keys() or "")
class Services(unittest.TestCase):
    def setUp(self):
        self.root = Root()
        self.addCleanup(self.root.close)

    def test_keys_from_a_variable_and_a_token(self):
        code, said = self.root.start(
            SSH_AUTHORIZED_KEYS=self.root.public_key, JUPYTER_TOKEN=TOKEN, SSH_PORT="2200", SSH_ADDRESS="127.0.0.1"
        )
        self.assertEqual(code, 3, said)  # of the service that ended
        sshd = self.root.noted("sshd")
        self.assertIn("-p\n2200\n", sshd)
        self.assertIn("ListenAddress=127.0.0.1", sshd)
        self.assertEqual(self.root.state("ssh/authorized_keys").read_text(), self.root.public_key)
        self.assertEqual(self.root.state("jupyter/token").read_text(), TOKEN)
        for name in ("ssh/authorized_keys", "ssh/ssh_host_ed25519_key", "jupyter/token"):
            self.assertEqual(self.root.state(name).stat().st_mode & 0o077, 0, name)
        # The token is in no command line and in no kernel's variables.
        self.assertNotIn(TOKEN, self.root.noted("jupyter") + said + sshd)

    def test_host_key_stays(self):
        self.root.start(SSH_AUTHORIZED_KEYS=self.root.public_key)
        first = self.root.state("ssh/ssh_host_ed25519_key").read_text()
        self.root.start(SSH_AUTHORIZED_KEYS=self.root.public_key)
        self.assertEqual(self.root.state("ssh/ssh_host_ed25519_key").read_text(), first)

    def test_keys_from_a_file(self):
        (self.root.path / "run/secrets/authorized_keys").write_text(
            "# team\n\n" + 'from="10.0.0.0/8" ' + self.root.public_key.rstrip("\n") + "\r\n"
        )
        code, said = self.root.start()
        self.assertEqual(code, 3, said)
        self.assertEqual(len(self.root.state("ssh/authorized_keys").read_text().splitlines()), 1)
        self.assertNotIn("\r", self.root.state("ssh/authorized_keys").read_bytes().decode())

    def test_refuses_what_is_no_public_key(self):
        private = (self.root.path / "key").read_text()
        for keys, word in ((private, "private key"), (self.root.public_key + "rsa nonsense\n", "no public key: 2")):
            code, said = self.root.start(SSH_AUTHORIZED_KEYS=keys)
            self.assertEqual(code, 64, said)
            self.assertIn(word, said)
            self.assertIsNone(self.root.noted("sshd"))

    def test_without_keys_sshd_does_not_start(self):
        code, said = self.root.start(JUPYTER_TOKEN=TOKEN)
        self.assertEqual(code, 3)
        self.assertIn("sshd is not started", said)
        self.assertIsNone(self.root.noted("sshd"))

    def test_a_token_is_never_empty_or_short(self):
        for token in ("", "short", "0123456789abcde", "0123456789abcdef 0"):
            code, said = self.root.start(JUPYTER_TOKEN=token)
            self.assertEqual(code, 64, said)
            self.assertIsNone(self.root.noted("jupyter"), token)

    def test_a_token_is_made(self):
        _, said = self.root.start()
        token = self.root.state("jupyter/token").read_text()
        self.assertRegex(token, "^[0-9a-f]{48}$")
        self.assertIn(f"/lab?token={token}", said)
        self.root.start()
        self.assertNotEqual(self.root.state("jupyter/token").read_text(), token)

    def test_a_token_from_a_file(self):
        (self.root.path / "run/secrets/jupyter_token").write_text(TOKEN + "\n")
        self.root.start()
        self.assertEqual(self.root.state("jupyter/token").read_text(), TOKEN)
        code, said = self.root.start(JUPYTER_TOKEN_FILE="/nowhere")
        self.assertEqual(code, 64)
        self.assertIn("cannot be read", said)

    def test_root_is_refused(self):
        (self.root.path / "bin/id").write_text("#!/bin/sh\necho 0\n")
        code, said = self.root.start(JUPYTER_TOKEN=TOKEN)
        self.assertEqual((code, "runs as root" in said), (64, True))

    def test_a_session_gets_named_variables_alone(self):
        self.root.start(
            SSH_AUTHORIZED_KEYS=self.root.public_key,
            VIRTUAL_ENV="/e",
            HF_HOME="/a b",
            QUOTED='a"b',
            SSH_ENV="HF_HOME QUOTED x[$(touch${IFS}broken)]",
        )
        said = re.search("SetEnv=(.*)", self.root.noted("sshd")).group(1)
        self.assertIn('"VIRTUAL_ENV=/e"', said)
        self.assertIn('"HF_HOME=/a b"', said)
        self.assertNotIn("QUOTED", said)
        self.assertFalse((self.root.path / "broken").exists() or pathlib.Path("broken").exists())


class Written(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cufit-image-")
        self.addCleanup(self.folder.cleanup)
        self.files = export(pathlib.Path(self.folder.name) / "out", "--with", "jupyter,ssh")

    @unittest.skipIf(no_keys(), no_keys() or "")
    @unittest.skipUnless(os.path.exists("/usr/sbin/sshd"), "no sshd here")
    def test_sshd_reads_its_configuration(self):
        key = self.files / "key"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        done = subprocess.run(
            ["/usr/sbin/sshd", "-T", "-f", self.files / "image/sshd_config", "-h", key,
             "-C", "user=app,host=h,addr=10.0.0.1"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        says = dict(line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
        for keyword, value in {
            "passwordauthentication": "no", "kbdinteractiveauthentication": "no", "permitrootlogin": "no",
            "permitemptypasswords": "no", "usepam": "no", "port": "2222", "allowusers": "app",
            "authenticationmethods": "publickey", "permituserenvironment": "no", "x11forwarding": "no",
            "authorizedkeysfile": "/var/lib/cufit/ssh/authorized_keys",
        }.items():  # fmt: skip
            self.assertEqual(says.get(keyword), value, keyword)

    def test_python_reads_jupyters_configuration(self):
        text = (self.files / "image/jupyter_server_config.py").read_text()
        token = pathlib.Path(self.folder.name) / "token"
        text = text.replace("/var/lib/cufit/jupyter/token", str(token))

        class Anything:
            def __getattr__(self, name):
                self.__dict__[name] = Anything()
                return self.__dict__[name]

        def run():
            config = Anything()
            exec(compile(text, "config", "exec"), {"get_config": lambda: config})
            return config

        for short in ("", "\n", "0123456789abcde"):
            token.write_text(short)
            with self.assertRaises(SystemExit):
                run()
        token.write_text(TOKEN + "\n")
        config = run()
        self.assertEqual(config.IdentityProvider.token, TOKEN)
        self.assertIs(config.ServerApp.allow_root, False)
        self.assertEqual((config.ServerApp.ip, config.ServerApp.port), ("0.0.0.0", 8888))
        self.assertEqual(config.KernelSpecManager.allowed_kernelspecs, {"auto", "cu130", "cu126", "cpu"})
        compile((self.files / "image/kernel.py").read_text(), "kernel", "exec")

    def test_a_kernel_for_each_class(self):
        kernels = {
            file.parent.name: json.loads(file.read_text()) for file in self.files.glob("image/jupyter/kernels/*/*")
        }
        self.assertEqual(set(kernels), {"auto", "cu130", "cu126", "cpu"})
        self.assertEqual(kernels["auto"]["argv"][:3], ["cufit", "run", "-q"])
        self.assertEqual(kernels["cu126"]["argv"][0], "/opt/cufit/.cufit/envs/cu126/bin/python")
        self.assertEqual(kernels["cu126"]["env"]["CUFIT_CLASS"], "cu126")

    def test_the_bill_of_materials(self):
        bill = json.loads((self.files / "image/sbom.cdx.json").read_text())
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.6"))
        self.assertRegex(bill["serialNumber"], "^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        refs = [one["bom-ref"] for one in bill["components"]]
        self.assertEqual(len(refs), len(set(refs)))
        self.assertEqual(bill["dependencies"][0]["dependsOn"], refs)
        torch = [one for one in bill["components"] if one["name"] == "torch"]
        self.assertEqual(len(torch), 3)  # one file for each class
        numpy = next(one for one in bill["components"] if one["name"] == "numpy")
        self.assertEqual([one["value"] for one in numpy["properties"][:3]], ["cu130", "cu126", "cpu"])
        text = (LOCK / "pylock.cu130.toml").read_text()
        self.assertIn(numpy["hashes"][0]["content"], text)
        self.assertIn("cufit.lock.sha256=\"" + bill["metadata"]["properties"][0]["value"], self.dockerfile())

    def dockerfile(self):
        return (self.files / "Dockerfile").read_text()

    def test_nothing_secret_and_no_root(self):
        text = re.sub("(?m)^#.*\n", "", self.dockerfile())
        self.assertRegex(text, r"rm -rf /var/lib/apt/lists/\* /etc/ssh/ssh_host_\*")
        self.assertEqual(re.findall("(?m)^USER (.*)$", text), ["1000:1000"])
        self.assertLess(text.index("openssh-server"), text.index("USER"))
        for word in ("TOKEN=", "PASSWORD", "chpasswd", "sudo"):
            self.assertNotIn(word, text)
        # Links hold within one layer: all environments in one RUN, from a cache that is no mount.
        made = [step for step in re.split(r"(?m)^(?=RUN )", text) if "env create" in step]
        self.assertEqual(len(made), 1)
        self.assertIn("cufit env create cu130 cu126 cpu", made[0])
        self.assertIn("UV_LINK_MODE=hardlink", made[0])
        self.assertNotIn("type=cache", made[0])
        self.assertIn("rm -rf /opt/cufit/.cache", made[0])

    def test_one_service_alone(self):
        for service, port, other in (("ssh", "2222", "jupyter"), ("jupyter", "8888", "sshd")):
            files = export(pathlib.Path(self.folder.name) / service, "--with", service)
            text = re.sub("(?m)^#.*\n", "", (files / "Dockerfile").read_text())
            self.assertIn(f"EXPOSE {port}\n", text)
            self.assertNotIn(other, text)
            subprocess.run(["bash", "-n", files / "image/services"], check=True)
            if shutil.which("shellcheck"):
                subprocess.run(["shellcheck", files / "image/services", "-s", "bash"], check=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
