# ---- what follows the steps: validation -------------------------------------------------------------------------------------

# When enough training steps were seen, the DataLoaders that feed them give no more batches, so that the program comes to what it
# does after an epoch. That is followed for three batches of each DataLoader, and to the end of the first training step behind it (its
# blocks come to lie among what validation left; a later epoch may train more), the program's end, an error, or the first thing that
# would change something outside of it: a process, a connection, a file renamed or removed. Files that the program makes go to the
# scratch folder.
class AfterSteps:
    BATCHES = 3
    MORE_STEPS = 3  # over batches that the program had fetched before
    WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    CHANGES = frozenset(("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime",
                         "os.system", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.kill", "pty.spawn",
                         "shutil.copyfile", "shutil.copytree", "shutil.move", "shutil.rmtree", "subprocess.Popen", "sqlite3.connect",
                         "socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg", "webbrowser.open"))

    # Libraries that open files without Python.
    WRITERS = (("cv2", "imwrite"), ("cv2", "VideoWriter"), ("h5py", "File"), ("soundfile", "write"), ("torchaudio", "save"),
               ("pyarrow.parquet", "write_table"), ("torchvision.io", "write_png"), ("torchvision.io", "write_jpeg"))

    def __init__(self, tracer):
        self.tracer = tracer
        self.began = False
        self.by_hand = False  # no DataLoader feeds the steps: where the next would begin, the lines that evaluate are run
        self.left = False  # the trace ends; nothing of that is the program's doing
        self.live = weakref.WeakKeyDictionary()  # iterators that gave a batch and have more: the order in which their loaders were made
        self.own = weakref.WeakKeyDictionary()  # those made after the steps
        self.ended = weakref.WeakSet()  # those that were given no more
        self.restarted = self.again = False
        self.within, self.running, self.bound = 0, False, []  # lines of the loop: how often they were run, are, what they bound
        self.given = None  # what is known (Seen) of the iterator that gave the last batch
        self.trained = None  # the iterator behind validation
        self.fetch = None  # a batch, as PyTorch does
        self.more = 0
        self.batches = self.per_step = self.extra = 0  # of training: so far, for a step, that may still be given
        self.most = self.until = 0
        self.forwards = 0
        self.told, self.kept = False, set()  # growth; the storages of the second batch by which it was seen
        self.later = LaterBatches(tracer)
        self.joins = set()  # storages that an operator made which joins tensors
        self.joined = None  # of a tensor that grows with each batch: from which storage on, bytes, how to tell of the last

    # -- iterators of DataLoaders

    def made(self, iterator, loader):
        iterator._cufit_loader = weakref.ref(loader)
        iterator._cufit_from = tuple(getattr(loader, name, None) for name in ("_cufit_order", "_cufit_samples", "_cufit_batch"))
        if not self.began and self.tracer.evaluates():
            self.keep_samples(iterator, loader)
        if self.began:
            self.begins(iterator)
            batch = getattr(loader, "_cufit_made", (None, ""))
            if batch[0] and self.tracer.wanted["BATCH"] not in (None, getattr(loader, "_cufit_batch", None)):
                self.tracer.file.note("assumed", "after the steps batches of %d are loaded, whatever the batch size of the steps is; "
                                      "with `--batch-arg` the program sets both" % batch[0], batch[1])
            if self.tracer.phase == FORWARD:  # of a training step that no optimizer ends
                self.rest()

    def begins(self, iterator):
        self.join_last()
        self.own[iterator] = Seen(self.forwards)
        self.keep_small(iterator, iterator._cufit_loader())
        self.restarted = True

    # Data that would not fill a batch was repeated for the steps' sake (5_modules.py).
    def keep_small(self, iterator, loader):
        samples, batch = getattr(loader, "_cufit_samples", None), getattr(loader, "_cufit_batch", None)
        if not samples or not batch or samples >= batch or not hasattr(iterator, "_sampler_iter"):
            return
        if getattr(loader, "drop_last", False):
            self.own[iterator].over = True
        else:
            whole = iterator._sampler_iter
            iterator._sampler_iter = (indices[:samples] if isinstance(indices, list) else indices for indices in whole)

    # The same of data that was repeated for steps and feeds none: so many batches as the program has.
    def keep_samples(self, iterator, loader):
        samples, batch = getattr(loader, "_cufit_samples", None), getattr(loader, "_cufit_batch", None)
        if not samples or not batch or not hasattr(iterator, "_sampler_iter"):
            return
        whole = iterator._sampler_iter

        def kept():
            left = samples
            for indices in whole:
                if not isinstance(indices, list) or left < len(indices) and getattr(loader, "drop_last", False):
                    return
                yield indices[:left]
                left -= len(indices)
                if left <= 0:
                    return

        iterator._sampler_iter = kept()

    def next(self, iterator, real_next):
        if self.began:
            seen = self.own.get(iterator)
            if seen is None and iterator not in self.live and iterator not in self.ended:  # made before the steps, not used for them
                self.begins(iterator)
                seen = self.own[iterator]
            if seen is None and not self.extra and self.evaluate_within(iterator):
                self.extra = self.per_step
            if self.extra and (seen is None or seen.trains):
                self.extra -= 1
                kept = self.later.left(iterator)
                batch = real_next(iterator) if kept is None else kept
                if seen is not None:
                    self.later.safely(self.later.saw, iterator, batch)
                return batch
            if seen is None and self.restarted and iterator in self.ended:  # one for all epochs: the next has begun
                seen = self.own[iterator] = Seen(self.forwards)
            if seen is None or seen.over or seen.trains:
                self.ended.add(iterator)
                raise StopIteration
            self.given = seen
            loader = iterator._cufit_loader()
            # Some loaders fetch a batch before the last one is used.
            if seen.at and seen.forwards == self.forwards:
                seen.at.pop()
                seen.ahead = True
            seen.forwards = self.forwards
            seen.at.append((self.tracer.allocated, self.tracer.file.storages))
            self.tell_growth(loader, seen)
            seen.over = len(seen.at) > self.BATCHES - seen.ahead
            if seen.over:
                raise StopIteration
        try:
            batch = real_next(iterator)
        except BaseException:
            self.live.pop(iterator, None)
            raise
        self.batches += not self.began
        loader = iterator._cufit_loader() if hasattr(iterator, "_cufit_loader") else None
        self.live[iterator] = getattr(loader, "_cufit_order", 0)
        self.later.safely(self.later.saw, iterator, batch)
        return batch

    # Where the loop over the batches of training ends, before it does: what comes every so many steps (7_within_epoch.py), and then a
    # step. What those lines bound stays for that step; where these are tensors, the lines are run beside them a second time.
    def evaluate_within(self, iterator):
        if self.within > 1 or iterator not in self.live or threading.current_thread() is not threading.main_thread():
            return False
        again, self.within = self.within == 1, self.within + 1
        if again and not self.bound:
            return False
        restarted, seen = self.restarted, self.forwards
        self.run_lines(evaluations_within(sys._getframe(3)), again)
        self.join_last()
        self.restarted = restarted  # the loop goes on for a step
        self.tracer.phase = OTHER
        return self.forwards > seen

    # `again`: beside what they left the first time.
    def run_lines(self, lines, again):
        file = self.tracer.file
        for line, run in lines:
            before, problem = self.forwards, ""
            modes = [(module, module.training) for root in list(self.tracer.outermost) for module in root.modules()]
            depth = len(self.tracer.modules)
            self.running = True
            try:
                bound = run()
                if any(tensors_within(self.tracer.torch, value) for value in bound.values()):
                    self.bound.append(bound)
            except BlockEnds as end:
                problem = str(end)
            except (Exception, SystemExit) as error:
                problem = "%s: %s" % (type(error).__name__, error)
            finally:
                self.running = False
                del self.tracer.modules[depth:]
            for module, training in modes:
                module.training = training
            if again:
                continue
            if problem:
                file.note("assumed", "an evaluation that comes later was not followed to its end: " + problem, line)
            elif self.forwards > before:
                file.note("assumed", "the evaluation that comes later was followed after the traced steps", line)

    # The loader of the steps: of those whose batches are on the way, the one made first.
    def training_loader(self):
        live = sorted(self.live.items(), key=lambda entry: entry[1])
        return next((iterator._cufit_loader() for iterator, _ in live if hasattr(iterator, "_cufit_loader")), None)

    # What each batch leaves in memory (collected predictions) is there as often by the end of a whole validation, of which the
    # answer reckons the batches that are not traced (src/fit/workspaces/workspaces.cc). A tensor with which each batch is joined anew is
    # beside the last one each time: from the second traced batch on it is left to the answer, too.
    def tell_growth(self, loader, seen):
        tracer, count = self.tracer, len(seen.at)
        samples, batch = getattr(loader, "_cufit_samples", None), getattr(loader, "_cufit_batch", None)
        if count < 2 or not samples or not batch:
            return
        starts = [entry[1] for entry in seen.at]
        if count == 2:
            seen.first = tracer.there(starts[0], starts[1])
            return
        if count > 3:
            return self.join_last()
        source = tracer.source()

        def tell(op, *numbers):
            tracer.file.call(tracer.file.site(op, "", source, VALIDATION), [samples, min(samples, batch), *numbers])

        first, second = tracer.there(starts[0], starts[1]), tracer.there(starts[1], starts[2])
        for size in first.values():
            alike = next((number for number, other in second.items() if other == size), None)
            if alike is not None:
                tell("kept_of_each_batch", second.pop(alike))
                self.told = True
                self.kept.add(alike)
        gone = [size for number, size in seen.first.items() if number not in first]
        grown = {number: size - max(old for old in gone if old < size) for number, size in second.items()
                 if number in self.joins and any(old < size <= 4 * old for old in gone)}
        if grown and seen.at[2][0] - seen.at[1][0] >= max(grown.values()) // 2:
            number = max(grown, key=grown.get)
            tell("joined_batches", grown[number], 0)
            self.told = True
            tracer.drop(number)
            self.joined = starts[2], second[number], lambda: tell("joined_batches", grown[number], 1)

    def join_last(self):
        if self.joined:
            start, least, tell = self.joined
            self.joined = None
            third = self.tracer.there(start, self.tracer.file.storages)
            number = max(third, key=third.get, default=None)
            if number is not None and third[number] > least:
                self.tracer.drop(number)
            tell()

    # Where the program trains on, what the batches left may be gone; else it is beside the steps.
    def tell_gone(self):
        tracer = self.tracer
        if self.told and not any(tracer.there(number, number + 1) for number in self.kept):
            tracer.file.call(tracer.file.site("collected_gone", "", tracer.source(), VALIDATION), [])
            self.told = False
            self.kept.clear()

    # -- beginning and end

    # At the end of the last step that was wanted. False: there is nothing to follow.
    def begin(self):
        tracer = self.tracer
        if self.began:
            if self.again or self.restarted or self.more >= self.MORE_STEPS:
                self.later.safely(self.later.tell_next, self.trained, self.fetch)
                self.left = True
                return False
            self.rest()
            return True
        if tracer.by_function or tracer.variant is not None or not self.live and self.batches:
            return False
        self.by_hand = not self.live
        self.per_step = max(1, -(-self.batches // max(tracer.steps, 1)))
        self.rest()
        self.later.safely(self.later.tell, list(self.live), self.per_step, self.fetch)
        self.began = True
        now = time.monotonic()
        self.until = now + (5 if self.by_hand else 20) + 3 * (now - tracer.began)
        if tracer.wanted["DEADLINE"]:
            self.until = min(self.until, float(tracer.wanted["DEADLINE"]) - 5)
        self.most = tracer.file.storages + max(20000, 20 * tracer.file.storages)
        evaluate_soon()
        self.keep_files_apart()
        sys.addaudithook(self.happens)
        return True

    def rest(self):
        self.tracer.file.mark(AFTER_STEPS)
        self.tracer.phase = OTHER

    # Before a module's forward that no other calls.
    def forward(self, module, trains):
        tracer = self.tracer
        self.forwards += 1
        if tracer.capturing:
            return
        starts = trains and tracer.phase in (OTHER, VALIDATION)  # not a module of a step under way
        late = time.monotonic() > self.until or tracer.file.storages > self.most
        if late and not self.again and not (starts and self.restarted):
            tracer.file.note("assumed", "what follows the traced steps was not seen to its end; what it takes later is not in the answer", tracer.source())
        if self.running and starts:
            raise BlockEnds("it trains")
        if starts and self.by_hand:
            self.run_lines(evaluations_within(sys._getframe(1), behind=True), False)
            self.leave()
        if late or starts and self.again:
            self.leave()
        if not trains and tracer.phase == OTHER:
            tracer.phase = VALIDATION
        if starts:
            if self.restarted:
                self.join_last()
                if not self.again:  # what comes every so many epochs
                    given = self.given
                    self.run_lines(evaluations_within(sys._getframe(1), behind=True, counted=True), False)
                    self.join_last()
                    self.given, tracer.phase = given, OTHER
                self.again, self.restarted = True, False
                self.extra = max(self.BATCHES, self.per_step)
                if self.given is not None:
                    self.given.trains = True
                    self.trained = next((iterator for iterator, seen in self.own.items() if seen is self.given), None)
            self.more += 1
            self.tell_gone()
            tracer.file.mark(STEP_BEGINS)
            tracer.phase = FORWARD

    def happens(self, event, args):
        if self.left or threading.current_thread() is not threading.main_thread() or self.tracer.compiling:
            return
        if event == "os.mkdir" and len(args) > 1 and args[1] == 0o700 and within(os.path.abspath(os.fsdecode(args[0])), tempfile.gettempdir()):
            return  # tempfile.mkdtemp
        if event in self.CHANGES or event == "open" and self.writes(*args):
            if self.running:
                raise BlockEnds("it would change something outside (%s)" % event)
            self.leave()

    def writes(self, path, mode, flags):
        if not (isinstance(flags, int) and flags & self.WRITES) or not isinstance(path, (str, bytes)):
            return False
        path = os.path.abspath(os.fsdecode(path))
        return not (os.sep + "__pycache__" + os.sep in path or path == os.devnull or within(path, self.tracer.wanted["SCRATCH"]) or
                    flags & os.O_EXCL and within(path, tempfile.gettempdir()))

    # What is opened to be written is made in the scratch folder, and found there again; folders are not made, and are empty.
    def keep_files_apart(self):
        scratch = self.tracer.wanted["SCRATCH"]
        if not scratch:
            return
        import builtins
        real_open, real_mkdir, real_makedirs, real_listdir = builtins.open, os.mkdir, os.makedirs, os.listdir
        moved, folders = {}, set()

        def elsewhere(path):  # than where torch.compile keeps its own
            return not self.tracer.compiling and isinstance(path, (str, bytes, os.PathLike)) and not within(os.path.abspath(os.fsdecode(path)), scratch)

        def opened(file, mode="r", *args, **kwargs):
            if elsewhere(file) and isinstance(mode, str):
                path = os.path.abspath(os.fsdecode(file))
                if path in moved:
                    file = moved[path]
                elif mode[:1] in "wax" and path != os.devnull:
                    moved[path] = file = os.path.join(scratch, "written-%d" % len(moved))
            return real_open(file, mode, *args, **kwargs)

        def mkdir(path, mode=0o777, *args, **kwargs):
            apart = elsewhere(path) and not within(os.path.abspath(os.fsdecode(path)), tempfile.gettempdir())
            if not apart or os.path.exists(path):
                return real_mkdir(path, mode, *args, **kwargs)
            folders.add(os.path.abspath(os.fsdecode(path)))

        def makedirs(name, mode=0o777, exist_ok=False):
            if not elsewhere(name) or os.path.exists(name):
                return real_makedirs(name, mode, exist_ok)
            folders.add(os.path.abspath(os.fsdecode(name)))

        def listdir(path="."):
            if isinstance(path, (str, bytes, os.PathLike)) and os.path.abspath(os.fsdecode(path)) in folders and not os.path.exists(path):
                return []
            return real_listdir(path)

        builtins.open = io.open = opened
        os.mkdir, os.makedirs, os.listdir = mkdir, makedirs, listdir
        for module, name in self.WRITERS:
            if hasattr(sys.modules.get(module), name):
                setattr(sys.modules[module], name, lambda *args, **kwargs: self.leave())

    # A thread that fetched batches has ended, and the program waits for it: it comes to no module any more.
    def hangs(self):
        return self.began and not self.left and time.monotonic() > self.until + 20

    def leave(self):
        if not self.left:
            self.left = True
            self.join_last()
            self.tracer.finish(SEEN)


def within(path, folder):
    return bool(folder) and path.startswith(os.path.abspath(folder) + os.sep)


# What is known of one iteration over a DataLoader.
class Seen:
    def __init__(self, forwards):
        self.at = []  # before each batch: bytes allocated, storages so far
        self.forwards = forwards
        self.first = {}  # what the first batch left until the second, by number
        self.ahead = self.over = self.trains = False


# The Trainer and Lightning count steps or batches until they evaluate; here they do so at once.
def evaluate_soon():
    trainer = sys.modules.get("transformers.trainer_callback")
    if trainer is not None:
        real = trainer.DefaultFlowCallback.on_step_end

        def on_step_end(self, args, state, control, **kwargs):
            control = real(self, args, state, control, **kwargs)
            if str(getattr(getattr(args, "eval_strategy", None), "value", "")) == "steps":
                control.should_evaluate = True
            return control

        trainer.DefaultFlowCallback.on_step_end = on_step_end
    for package in ("lightning.pytorch", "pytorch_lightning"):
        loop = sys.modules.get(package + ".loops.training_epoch_loop")
        if hasattr(loop, "_TrainingEpochLoop"):
            loop._TrainingEpochLoop._should_check_val_fx = lambda self, *args: bool(self.trainer.enable_validation)


def patch_after_steps(tracer):
    loader = tracer.torch.utils.data.dataloader._BaseDataLoaderIter
    real_init, real_next = loader.__init__, loader.__next__

    def init(self, of):
        real_init(self, of)
        tracer.after.made(self, of)

    tracer.after.fetch = real_next
    loader.__init__ = init
    loader.__next__ = lambda self: tracer.after.next(self, real_next)


