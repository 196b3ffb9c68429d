# SPDX-License-Identifier: Apache-2.0
"""What starts the ranks of a distributed program, answered without starting them: one rank runs in
the place of its launcher, so that 512 cost what one does. srun and mpirun, which are no Python, are
answered by src/host/python/rank_shim.sh."""

import os
import sys

from cufit_import_hook import when_imported

PLACED = "CUFIT_FIT_PLACED"  # this process is a rank: its variables tell which
SEEN = "CUFIT_FIT_DEVICES"  # GPUs that srun would show it; empty: those of its node
NODE = 8  # GPUs of a node where the command does not say how many
LAUNCHERS = ("torchrun", "accelerate", "accelerate-launch", "deepspeed", "deepspeed.pt", "ds")
MODULES = (
    "torch/distributed/run.py",
    "torch/distributed/launch.py",
    "accelerate/commands/launch.py",
    "deepspeed/launcher/runner.py",
)


# The program that runs here is one that starts others.
def is_launcher():
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    return os.path.basename(name) in LAUNCHERS or name.endswith(MODULES)


def number(text):
    return int(text) if text and text.strip().isdigit() else None


# `--world N` of cufit; None: as the command says.
def asked_world():
    return number(os.environ.get("CUFIT_FIT_WORLD"))


# The rank that is traced, of so many; "last" is the last one.
def asked_rank(world):
    asked = os.environ.get("CUFIT_FIT_RANK", "0")
    return world - 1 if asked == "last" else min(number(asked) or 0, world - 1)


# Ranks on each node, of `world` in all: at most `most`, and nodes of one size.
def of_a_node(world, most):
    return next(size for size in range(min(world, most), 0, -1) if world % size == 0)


# Nodes of so many ranks each, as the command says; or what was asked for in its place, in nodes of
# the command's size. Returns ranks on each node and in all.
def sized(nodes, local):
    world = asked_world()
    if world is None:
        return local, nodes * local
    return of_a_node(world, local if local > 1 else NODE), world


# The variables that torchrun sets for a rank.
def variables(rank, local, world):
    return {
        "RANK": rank,
        "LOCAL_RANK": rank % local,
        "WORLD_SIZE": world,
        "LOCAL_WORLD_SIZE": local,
        "GROUP_RANK": rank // local,
        "GROUP_WORLD_SIZE": world // local,
        "ROLE_RANK": rank,
        "ROLE_WORLD_SIZE": world,
        "ROLE_NAME": "default",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": 29500,
        "TORCHELASTIC_RUN_ID": "none",
        "TORCHELASTIC_RESTART_COUNT": 0,
        "TORCHELASTIC_MAX_RESTARTS": 0,
        "TORCHELASTIC_USE_AGENT_STORE": False,
        PLACED: local,
        SEEN: "",
    }


def enter(values):
    os.environ.update((name, str(value)) for name, value in values.items())


# In each Python of the command, before torch is there: without a launcher `--world N` means what
# `torchrun --nproc_per_node N` does. A launcher below it sets all of these anew.
def place_alone():
    world = 1 if os.environ.get("CUFIT_FIT_WORLD") == "auto" else asked_world()
    if world is not None and PLACED not in os.environ and "RANK" not in os.environ:
        enter(variables(asked_rank(world), of_a_node(world, NODE), world))


# A real launcher started this process beside others, and it is not the one that is traced.
def follows():
    if PLACED in os.environ or "TORCHELASTIC_RUN_ID" not in os.environ:
        return False
    return os.environ.get("LOCAL_RANK", "0") != "0"


# The GPUs that this process sees: those of its node, where it is a rank.
def devices():
    seen = number(os.environ.get(SEEN)) or number(os.environ.get(PLACED)) or 1
    return max(seen, accelerated())


# `accelerate launch` starts several processes only where it sees several GPUs.
def accelerated():
    name = sys.argv[0] if getattr(sys, "argv", None) else ""
    if os.path.basename(name) not in LAUNCHERS[1:3] and not name.endswith(MODULES[2]):
        return 1
    given = dict(zip(sys.argv, sys.argv[1:]))
    given.update(word.split("=", 1) for word in sys.argv if "=" in word)

    def option(name):
        return given.get("--" + name) or given.get("--" + name.replace("_", "-"))

    configured = configuration(option("config_file"))
    processes = number(option("num_processes")) or number(configured.get("num_processes")) or 1
    return max(processes // machines(option("num_machines"), configured), 1)


def machines(given, configured):
    return number(given) or number(configured.get("num_machines")) or 1


# Lines "name: value" of accelerate's configuration, which is YAML.
def configuration(path):
    if not path:
        home = os.environ.get("HF_HOME") or os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface"
        )
        path = os.path.join(home, "accelerate", "default_config.yaml")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.readlines(1 << 16)
    except OSError:
        return {}
    pairs = (line.partition("#")[0].partition(":") for line in lines)
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def become(command):
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], command, os.environ)


# torchrun, torch.distributed.run, torch.distributed.launch and `accelerate launch` end here, after
# they have read their options.
def answer_elastic(module):
    def launch_agent(config, entrypoint, args):
        leave_no_logs(config)
        local, world = sized(config.min_nodes, config.nproc_per_node)
        rank = asked_rank(world)
        enter(variables(rank, local, world))
        if not isinstance(entrypoint, str):
            return {rank: entrypoint(*args)}
        words = [word.replace("${local_rank}", str(rank % local)) for word in args]
        return become([entrypoint, *words])

    module.launch_agent = launch_agent


# Its folder for the ranks' output, which it has made already.
def leave_no_logs(config):
    folder = getattr(getattr(config, "logs_specs", None), "root_log_dir", None) or ""
    if os.path.basename(folder).startswith("torchelastic_") and not os.listdir(folder):
        os.rmdir(folder)


# The rank's function runs here. Its number is that on this node.
def answer_spawn(module):
    def start_processes(fn, args=(), nprocs=1, join=True, *more, **named):
        fn(asked_rank(nprocs), *args)
        return None if join else Ended()

    def spawn(fn, args=(), nprocs=1, join=True, *more, **named):
        return start_processes(fn, args, nprocs, join)

    module.start_processes, module.spawn = start_processes, spawn
    package = sys.modules.get("torch.multiprocessing")
    for name in ("start_processes", "spawn"):
        if hasattr(package, name):
            setattr(package, name, getattr(module, name))


class Ended:
    """The processes of a `spawn` that nobody waited for."""

    processes = []

    def join(self, *args, **kwargs):
        return True

    def pids(self):
        return []


# DeepSpeed's own launcher would ask other nodes, by ssh.
def answer_deepspeed(module):
    def main(args=None):
        asked = module.parse_args(args)
        pool = {}
        if os.path.isfile(asked.hostfile):
            pool = dict(module.fetch_hostfile(asked.hostfile) or {})
        nodes, local = resources(asked, pool)
        local, world = sized(nodes, local)
        rank = asked_rank(world)
        enter(variables(rank, local, world))
        enter({"CROSS_RANK": rank // local, "CROSS_SIZE": world // local, "LOCAL_SIZE": local})
        if asked.master_addr:
            enter({"MASTER_ADDR": asked.master_addr})
        enter({"MASTER_PORT": asked.master_port})
        command = [] if asked.no_python else [sys.executable, "-u"]
        command += ["-m"] if asked.module else []
        command.append(asked.user_script)
        if not getattr(asked, "no_local_rank", False):
            command.append("--local_rank=%d" % (rank % local))
        become(command + list(asked.user_args))

    module.main = main


# Nodes and GPUs of each: `--num_nodes`, `--num_gpus`, `--include HOST:0,1@HOST:0,1`.
def resources(asked, pool):
    nodes, local = len(pool) or 1, min(pool.values(), default=1)
    included = [host.partition(":")[2] for host in (asked.include or "").split("@") if host]
    if included:
        nodes = len(included)
        local = min(len(slots.split(",")) if slots else local for slots in included)
    elif asked.exclude and pool:
        without = [host.partition(":") for host in asked.exclude.split("@")]
        nodes -= sum(1 for _, colon, _ in without if not colon)
        local -= max([len(slots.split(",")) for _, colon, slots in without if colon], default=0)
    if asked.num_nodes > 0:
        nodes = min(nodes, asked.num_nodes) if pool else asked.num_nodes
    if asked.num_gpus > 0:
        local = asked.num_gpus
    return max(nodes, 1), max(local, 1)


def answer_launchers():
    for name, answer in (
        ("torch.distributed.launcher.api", answer_elastic),
        ("torch.multiprocessing.spawn", answer_spawn),
        ("deepspeed.launcher.runner", answer_deepspeed),
    ):
        when_imported(name, answer)
