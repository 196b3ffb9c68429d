# SPDX-License-Identifier: Apache-2.0
"""What is told of the program beside its storages: its settings, and what the trace did not come
to."""

import os
import sys

from .cuda.cudnn import Cudnn
from .cuda.cudnn_answers import CudnnAnswers
from .cuda.settings import asked_tf32
from .user_files import lines_that_evaluate, program_name


class Facts:
    def convolution(self, way, dtype, numbers):
        if not self.wanted["CUDNN"]:
            return
        if self.cudnn is None:
            import json

            setting = self.torch.backends.cudnn
            self.cudnn = CudnnAnswers(
                json.loads(self.wanted["CUDNN"]),
                asked_tf32(setting),
                setting.deterministic,
                setting.benchmark,
            )
            self.file.before_end.append(lambda: self.steps and self.cudnn.write(self.file))
        kind = str(dtype).partition(".")[2]
        if kind in Cudnn.TYPES and self.torch.backends.cudnn.enabled:
            self.cudnn.saw(way, kind, numbers)

    def tell_beginning(self, built):
        variables = os.environ
        older = variables.get("PYTORCH_CUDA_ALLOC_CONF", "")
        for key, value in (
            ("torch", self.torch.__version__),
            ("python", sys.version.split()[0]),
            ("cuda", built or "none: built for the CPU"),
            ("steps", self.wanted["STEPS"]),
            ("method", "fake cuda"),
            ("gpu", self.gpu_name),
            ("capability", "%d.%d" % self.capability),
            ("alloc_conf", variables.get("PYTORCH_ALLOC_CONF", older)),
            ("cublas_workspace_config", variables.get("CUBLAS_WORKSPACE_CONFIG", "")),
        ):
            self.file.fact(key, value)
        if self.wanted["BATCH"]:
            self.file.fact("batch", self.wanted["BATCH"])

    def assume(self, said, source):
        self.file.note("assumed", said, source)

    def tell_settings(self):
        backends = self.torch.backends
        self.file.fact("cudnn_benchmark", int(backends.cudnn.benchmark))
        self.file.fact("allow_tf32", int(asked_tf32(backends.cuda.matmul)))
        self.file.fact("compiled", int(self.compiled))
        if self.by_function or program_name():
            self.file.fact("program", self.wanted["FUNCTION"] or program_name())
        if self.wanted["SEQ"] and not self.sequences and not self.by_function:
            said = "no DataLoader gave rows of tokens, so their length was left as it is"
            self.assume("--seq %d: %s" % (self.wanted["SEQ"], said), "")
        unseen = []
        if self.trained_with is not None:
            unseen = [made for made in self.unreached.values() if made[0] > self.trained_with]
        if self.steps and not self.evaluated and not self.by_function and not unseen:
            said = "the trace did not come to an evaluation: what that takes is not in the answer, "
            for line in lines_that_evaluate():
                self.assume(said + "and can be more", line)
        if self.round is not None and self.one_never_stepped():
            said = "an optimizer that the program made did not step in the trace: "
            self.assume(said + "what its steps take is not in the answer, and can be more", "")
        for batch, source in unseen:
            said = "batches of %d are loaded, too, after the traced steps: what validation takes "
            self.assume((said + "with them is not in the answer, and can be more") % batch, source)
