# ---- a program that does not come to its steps ------------------------------------------------------------------------------

# Says every few seconds, for cufit to show, where the program is; at DEADLINE (seconds of the machine's monotonic clock) ends it
# with a note of its line and of the function that it was in.
# `open`: as it is before the program's files are kept apart.
def watch(wanted, tracers, open=open):
    deadline = float(wanted["DEADLINE"] or 0)
    main = threading.main_thread().ident

    # Of another thread's frame it may be None, between two lines.
    def line(frame):
        return frame.f_lineno or frame.f_code.co_firstlineno

    def place():
        frame = innermost = sys._current_frames().get(main)
        while frame is not None:
            own = users_file(frame.f_code.co_filename)
            if own:
                inside = "" if frame is innermost else "%s (%s:%d)" % (
                    innermost.f_code.co_name, os.path.basename(innermost.f_code.co_filename), line(innermost))
                return "%s:%d" % (own, line(frame)), inside
            frame = frame.f_back
        return "", ""

    def tell(source):
        part = "%s.%d" % (wanted["PROGRESS"], os.getpid())
        try:
            with open(part, "w") as out:
                out.write("%d\n%s\n" % (tracers[0].steps if tracers else 0, source))
            os.replace(part, wanted["PROGRESS"])
        except OSError:
            pass

    def stop():
        source, inside = place()
        file = tracers[0].file if tracers else EventFile(wanted["OUT"])
        if not source and not file.on_disk:
            time.sleep(2)  # a launcher: the process that runs the user's lines goes first
        with file.lock:
            if tracers and tracers[0].ending() != FAILED:
                if tracers[0].after.hangs():
                    file.tell_all()
                tracers[0].tell_lengths()
                file.end(tracers[0].ending())
            else:
                file.note("timed_out", inside, source)
                file.end(FAILED)
        os._exit(3)

    def look():
        while True:
            left = deadline - time.monotonic() if deadline else 5
            if tracers and tracers[0].after.hangs():
                left = 0
            if left <= 0:
                stop()
            time.sleep(min(left, 5))
            source = place()[0]
            if source and wanted["PROGRESS"]:
                tell(source)

    threading.Thread(target=look, name="cufit", daemon=True).start()


