# SPDX-License-Identifier: Apache-2.0
"""The Python module of the wheel, with the program that was built: module_test.py CUFIT.

Where nbclient and ipykernel are installed a notebook is run as well; else that is said.
"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = ROOT / "packaging" / "python"
MACHINE = ROOT / "tests" / "machines" / "rtx3090-driver520-cu121" / "facts.json"
EVENTS = [str(ROOT / "tests" / "fit" / f"gpt2-{size}.events.gz") for size in (2, 4)]
sys.path.insert(0, str(MODULE))

import cufit  # noqa: E402


def running():
    """The command lines of this machine's processes."""
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:
            pass


class Module(unittest.TestCase):
    def test_doctor(self):
        answer = cufit.doctor(from_=MACHINE)
        self.assertEqual((answer["schema"], answer["verdict"]), ("cufit.doctor/1", "broken"))
        self.assertEqual([one["id"] for one in answer["findings"]][0], "driver_too_old")
        self.assertEqual(cufit.doctor(from_=MACHINE, driver="535")["verdict"], "works")

    def test_explain(self):
        text = "Failed to initialize NVML: Driver/library version mismatch"
        self.assertEqual(cufit.explain(text)["causes"][0]["id"], "driver_lib_mismatch")
        self.assertEqual(cufit.explain("nichts 世界 \ud800".encode("utf-8", "replace").decode())["causes"], [])

    def test_fit(self):
        answer = cufit.fit(events=EVENTS, gpu=["RTX 3090", "8"], batch=16)
        self.assertEqual((answer["schema"], len(answer["gpus"])), ("cufit.fit/1", 2))

    def test_errors(self):
        with self.assertRaises(cufit.Error) as caught:
            cufit.doctor(bogus=True)
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertIn("--bogus", str(caught.exception))
        with self.assertRaises(cufit.Error) as caught:
            cufit.doctor(from_="nowhere.json")
        self.assertEqual(caught.exception.exit_code, 3)

    def test_interrupt(self):
        # Interrupted, the program that cufit runs is ended too, and its folder is gone.
        import signal
        import tempfile
        import time

        code = "import cufit; cufit.run('mem', 'record', '--', 'sleep', '60.25')"
        with tempfile.TemporaryDirectory() as folder:
            variables = {**os.environ, "PYTHONPATH": str(MODULE), "TMPDIR": folder}
            child = subprocess.Popen([sys.executable, "-c", code], env=variables, stderr=subprocess.PIPE)
            for _ in range(100):
                time.sleep(0.1)
                if any(command == ["sleep", "60.25"] for command in running()):
                    break
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=30)
            self.assertNotIn(["sleep", "60.25"], running())
            self.assertEqual(os.listdir(folder), [])

    def test_input(self):
        with self.assertRaises(TypeError):
            cufit.explain(None)
        done = subprocess.run(
            [sys.executable, "-c", "import cufit, sys; cufit.run('run', '--help'); print(sys.stdin.read())"],
            env={**os.environ, "PYTHONPATH": str(MODULE)}, input="kept", capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual(done.stdout, "kept\n")
        with self.assertRaises(cufit.Error):
            cufit.doctor(help=True)

    def test_broken_pipe(self):
        command = f"{sys.executable} -m cufit self causes | head -1 >/dev/null"
        done = subprocess.run(["bash", "-c", command], cwd=MODULE, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")

    def test_main(self):
        done = subprocess.run([sys.executable, "-m", "cufit", "--version"], cwd=MODULE, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.split()[0]), (0, "cufit"))

    def test_program_is_missing(self):
        # Also where cufit is installed beside this Python.
        code = "import sys, sysconfig, cufit; sys.executable = '/nowhere/python'; "
        code += "sysconfig.get_path = lambda *_, **__: '/nowhere'; cufit.doctor()"
        variables = {"PATH": "/nowhere", "PYTHONPATH": str(MODULE)}
        done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True)
        self.assertIn("install the wheel again", done.stderr)


CELLS = [
    "%load_ext cufit",
    f"%doctor --from {MACHINE}",
    "raise RuntimeError('Failed to initialize NVML: Driver/library version mismatch')",
    "%explain",
]


class Notebook(unittest.TestCase):
    def test_cells(self):
        for name in ("nbclient", "nbformat", "ipykernel"):
            if importlib.util.find_spec(name) is None:
                self.skipTest(f"{name} is not installed")
        import nbclient
        import nbformat

        cells = [nbformat.v4.new_code_cell(text) for text in CELLS]
        book = nbformat.v4.new_notebook(cells=cells)
        client = nbclient.NotebookClient(book, timeout=120, allow_errors=True, kernel_name="python3")
        variables = {**os.environ, "PYTHONPATH": str(MODULE)}
        client.execute(env=variables)
        page = book.cells[1].outputs[0]["data"]
        self.assertIn("<iframe", page["text/html"])
        self.assertIn("too old", page["text/plain"])
        self.assertIn("kernel module have different versions", book.cells[3].outputs[0]["data"]["text/plain"])


if __name__ == "__main__":
    os.environ["CUFIT_PROGRAM"] = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
