# SPDX-License-Identifier: Apache-2.0
"""What is known so far, as JSON in one file that is always whole: the program may end any time."""

import json
import os


class Answer:
    def __init__(self, path):
        self.path, self.content = path, {"phase": "start"}

    # False: another process of the program measures already.
    def claim(self):
        try:
            os.close(os.open(self.path + ".claim", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True

    def is_claimed(self):
        return os.path.exists(self.path + ".claim")

    def put(self, phase, **members):
        self.content.update(members, phase=phase)
        part = "%s.%d" % (self.path, os.getpid())
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.content, file)
        os.replace(part, self.path)
