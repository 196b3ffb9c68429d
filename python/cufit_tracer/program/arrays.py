# SPDX-License-Identifier: Apache-2.0
"""Arrays that programs keep in files."""

import os


# Programs keep what a frozen model makes of their data (sd-scripts: latents) in files beside it,
# and a later run trusts them. Once an array has come out of a tensor without contents, what numpy
# saves stays in memory, and numpy finds it there again.
def keep_arrays(tracer, numpy):
    import io

    kept = {}

    def place(file):
        return os.path.abspath(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else None

    def saver(name, suffix):
        real = getattr(numpy, name)

        def save(file, *args, **kwargs):
            path = place(file)
            if path is None or not tracer.made_up:
                return real(file, *args, **kwargs)
            into = io.BytesIO()
            real(into, *args, **kwargs)
            kept[path if path.endswith(suffix) else path + suffix] = into.getvalue()
            tracer.file.note(
                "scratch",
                "what numpy.%s was given, which came from tensors without values" % name,
                tracer.source(),
            )

        setattr(numpy, name, save)

    for name, suffix in (("save", ".npy"), ("savez", ".npz"), ("savez_compressed", ".npz")):
        saver(name, suffix)
    real_load = numpy.load

    def load(file, mmap_mode=None, *args, **kwargs):
        data = kept.get(place(file))
        return (
            real_load(file, mmap_mode, *args, **kwargs)
            if data is None
            else real_load(io.BytesIO(data), None, *args, **kwargs)
        )

    numpy.load = load
