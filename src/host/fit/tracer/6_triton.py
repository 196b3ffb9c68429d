# ---- kernels that a program launches --------------------------------------------------------------------------------------------

# A kernel written in Triton writes where it is told to and allocates nothing: it is not compiled, and does nothing.
def patch_triton(tracer):
    def active(triton):
        from triton.backends.compiler import GPUTarget

        triton.runtime.driver.set_active(Driver(tracer, GPUTarget("cuda", tracer.capability[0] * 10 + tracer.capability[1], 32)))

    def launched(module):
        triton = sys.modules["triton"]
        active(triton)
        kinds = {triton.runtime.jit.JITFunction}
        for name in ("Autotuner", "Heuristics"):
            kinds.add(getattr(module, name, None))

        def run(self, *args, **kwargs):
            name = getattr(getattr(self, "fn", self), "__name__", "")
            tracer.file.note("assumed", "the Triton kernel %s was not run: what it computes has no values" % name, tracer.source())

        for kind in kinds - {None}:
            kind.run = run

    name = "triton.runtime.autotuner"
    if name in sys.modules:
        launched(sys.modules[name])
    else:
        _cufit_on_import(name, launched)


