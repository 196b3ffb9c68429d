# SPDX-License-Identifier: Apache-2.0
# What starts the ranks of a program: python/cufit_tracer/program/launchers.py and src/host/python/rank_shim.sh, without torch.
import os
import shutil
import subprocess
import sys
import tempfile
import types

import stand_ins  # noqa: F401  makes python/cufit_tracer importable

from cufit_tracer.program import launchers

BEFORE = dict(os.environ)
HERE = os.path.dirname(os.path.abspath(__file__))


def fresh(**values):
    os.environ.clear()
    os.environ.update(BEFORE)
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID", launchers.PLACED, launchers.SEEN):
        os.environ.pop(name, None)
    os.environ.update(values)


def placed():
    return tuple(int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK"))


# -- numbers

fresh()
assert launchers.sized(2, 8) == (8, 16) and launchers.asked_rank(16) == 0
fresh(CUFIT_FIT_WORLD="64", CUFIT_FIT_RANK="last")
assert launchers.sized(1, 8) == (8, 64) and launchers.sized(1, 4) == (4, 64), "nodes of the command's own size"
assert launchers.sized(1, 1) == (8, 64) and launchers.asked_rank(64) == 63
fresh(CUFIT_FIT_WORLD="12", CUFIT_FIT_RANK="40")
assert launchers.sized(1, 8) == (6, 12), "nodes are of one size"
assert launchers.asked_rank(12) == 11

# -- without a launcher

fresh()
launchers.place_alone()
assert "RANK" not in os.environ and launchers.devices() == 1
fresh(CUFIT_FIT_WORLD="16", CUFIT_FIT_RANK="last")
launchers.place_alone()
assert placed() == (15, 7, 16, 8, 1) and launchers.devices() == 8 and not launchers.follows()
fresh(CUFIT_FIT_WORLD="auto")
launchers.place_alone()
assert placed() == (0, 0, 1, 1, 0)
fresh(CUFIT_FIT_WORLD="16", RANK="3")
launchers.place_alone()
assert os.environ["RANK"] == "3", "a launcher of another kind has set it"
fresh(TORCHELASTIC_RUN_ID="none", LOCAL_RANK="1")
assert launchers.follows(), "one of several real processes"

# -- torchrun

became = []
os.execvpe = lambda program, words, environment: became.append(words)


def elastic(nodes, local, entry="python", args=("-u", "train.py", "--local-rank=${local_rank}")):
    module = types.SimpleNamespace()
    launchers.answer_elastic(module)
    return module.launch_agent(types.SimpleNamespace(min_nodes=nodes, nproc_per_node=local), entry, list(args))


fresh(CUFIT_FIT_RANK="last")
elastic(64, 8)
assert placed() == (511, 7, 512, 8, 63) and became.pop() == ["python", "-u", "train.py", "--local-rank=7"]
fresh()
assert elastic(1, 2, lambda word: word + os.environ["WORLD_SIZE"], ["of "]) == {0: "of 2"}, "a function runs here"

# -- mp.spawn

fresh(CUFIT_FIT_RANK="last")
spawning, started = types.SimpleNamespace(), []
launchers.answer_spawn(spawning)
assert spawning.spawn(lambda *args: started.append(args), args=("a",), nprocs=4) is None and started == [(3, "a")]
assert spawning.start_processes(lambda *args: None, nprocs=2, join=False).join()

# -- accelerate

fresh()
sys.argv = ["/usr/bin/accelerate", "launch", "--num-processes", "4", "train.py"]
assert launchers.is_launcher() and launchers.devices() == 4
with tempfile.TemporaryDirectory() as folder:
    config = os.path.join(folder, "c.yaml")
    with open(config, "w") as out:
        out.write("distributed_type: MULTI_GPU\nnum_machines: 2 # nodes\nnum_processes: '16'\n")
    sys.argv = ["accelerate", "launch", "--config_file=" + config, "train.py"]
    assert launchers.devices() == 8
    fresh(HF_HOME=folder)
    os.mkdir(os.path.join(folder, "accelerate"))
    shutil.copy(config, os.path.join(folder, "accelerate", "default_config.yaml"))
    sys.argv = ["accelerate", "launch", "train.py"]
    assert launchers.devices() == 8
sys.argv = ["train.py", "--num_processes", "4"]
assert not launchers.is_launcher() and launchers.devices() == 1

# -- deepspeed


def deepspeed(pool=None, **given):
    asked = dict(hostfile=__file__ if pool else "/nowhere", include="", exclude="", num_nodes=-1, num_gpus=-1, master_addr="",
                 master_port=29500, no_python=False, module=False, user_script="train.py", user_args=["--deepspeed"], no_local_rank=False)
    module = types.SimpleNamespace(parse_args=lambda args: types.SimpleNamespace(**dict(asked, **given)), fetch_hostfile=lambda path: pool)
    launchers.answer_deepspeed(module)
    module.main()
    return placed()


fresh()
assert deepspeed(num_gpus=4) == (0, 0, 4, 4, 0)
assert became.pop()[1:] == ["-u", "train.py", "--local_rank=0", "--deepspeed"]
assert deepspeed({"a": 8, "b": 8}) == (0, 0, 16, 8, 0), "no other node is asked"
assert deepspeed({"a": 8, "b": 8}, num_nodes=1, num_gpus=2) == (0, 0, 2, 2, 0)
assert deepspeed({"a": 8, "b": 8}, include="a:0,2@b:1,3") == (0, 0, 4, 2, 0)
assert deepspeed({"a": 8, "b": 8}, exclude="b") == (0, 0, 8, 8, 0)
fresh(CUFIT_FIT_WORLD="32")
assert deepspeed(num_gpus=8) == (0, 0, 32, 8, 0)

# -- srun and mpirun


def shim(name, *words, **environment):
    with tempfile.TemporaryDirectory() as folder:
        for each in ("srun", "sbatch", "scontrol", "mpirun"):
            shutil.copy(os.path.join(HERE, "..", "..", "src", "host", "python", "rank_shim.sh"), os.path.join(folder, each))
            os.chmod(os.path.join(folder, each), 0o755)
        fresh(PATH=folder + ":" + BEFORE["PATH"], **environment)
        done = subprocess.run([name, *words], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


SAY = ("sh", "-c", "echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NTASKS $SLURM_NNODES $CUFIT_FIT_PLACED $CUFIT_FIT_DEVICES")
SAY_MPI = ("sh", "-c", "echo $OMPI_COMM_WORLD_RANK $OMPI_COMM_WORLD_LOCAL_RANK $OMPI_COMM_WORLD_SIZE $FOO")
assert shim("srun", "-n", "4", *SAY) == ["0", "0", "4", "1", "4"]
assert shim("srun", "-n512", "-l", *SAY, CUFIT_FIT_RANK="last") == ["511", "7", "512", "64", "8"]
assert shim("srun", "--nodes", "2", "--ntasks-per-node=8", "--gpus-per-task=1", "--mpi", "pmix", *SAY) == ["0", "0", "16", "2", "8", "1"]
assert shim("srun", "-N2", "-n", "8", "--export=ALL,A=b", *SAY, CUFIT_FIT_WORLD="32") == ["0", "0", "32", "8", "4"]
assert shim("mpirun", "-np", "16", "-x", "FOO=1", "--mca", "btl", "tcp", "--bind-to", "none", *SAY_MPI, CUFIT_FIT_RANK="last") == ["15", "7", "16", "1"]
with tempfile.TemporaryDirectory() as folder:
    job = os.path.join(folder, "job.sh")
    with open(job, "w") as out:
        out.write("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\n\nscontrol show hostnames $SLURM_JOB_NODELIST\nsrun \"$@\"\n")
    assert shim("sbatch", "--partition", "gpu", job, *SAY) == ["localhost", "0", "0", "8", "2", "4"]
    assert shim("sbatch", "--ntasks-per-node=8", job, *SAY) == ["localhost", "0", "0", "16", "2", "8"], "options go before the script's"
assert shim("srun", "--nice", "--x11", "-W", "60", "-n", "2", *SAY) == ["0", "0", "2", "1", "2"], "options that take no word, or one"
assert shim("srun", "-n", "08", "--export", "ALL,A-B=1,C=d", "sh", "-c", "echo $C") == ["d"], "a name that is none is left out"
assert shim("mpirun", "--x", "FOO=1", "-np", "2", "-cpus-per-rank", "4", *SAY_MPI) == ["0", "0", "2", "1"]
with tempfile.TemporaryDirectory() as folder:
    below = os.path.join(folder, "below")
    os.mkdir(below)
    os.chdir(folder)
    with open("job.sh", "w") as out:
        out.write("#!/bin/bash\n#SBATCH --chdir=%s\npwd\n" % below)
    assert shim("sbatch", "job.sh") == [below], "the script says where it runs"
    with open("job.sh", "w") as out:
        out.write("#!/bin/bash\npwd\n")
    assert shim("sbatch", "-D", "below", "job.sh") == [below], "and is read where it was submitted"
    os.chdir(HERE)
