# SPDX-License-Identifier: Apache-2.0
import os
import signal
import sys

from ._program import Error, program


def main() -> int:
    try:
        path = program()
        # Python ignores these, and a program that it becomes would too.
        for name in ("SIGPIPE", "SIGXFSZ"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execv(path, [path, *sys.argv[1:]])
    except OSError as error:
        print(f"cufit: {error.filename or path}: {error.strerror}", file=sys.stderr)
        return 3
    except Error as error:
        print(f"cufit: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
