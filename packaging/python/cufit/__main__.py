# SPDX-License-Identifier: Apache-2.0
import os
import sys

from ._program import Error, program

if __name__ == "__main__":
    try:
        path = program()
    except Error as error:
        print(f"cufit: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    os.execv(path, [path, *sys.argv[1:]])
