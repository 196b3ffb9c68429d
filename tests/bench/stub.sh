# SPDX-License-Identifier: Apache-2.0
# stub_env DIR: an environment whose torch is tests/bench/stub. Read by scripts that start in the source tree.
stub_env() {
  /usr/bin/python3 -m venv --without-pip "$1"
  cp -r tests/bench/stub/torch "$(echo "$1"/lib/python3*/site-packages)"
}
cat >"$TMP/naps.py" <<'PY'
import sys, time
def make(batch, precision):
    nap = 0.004 if sys.prefix.endswith("slow") else 0.002
    return lambda: time.sleep(nap), batch, "naps"
PY
cat >"$TMP/train.py" <<'PY'
import time, torch
from torch.utils.data import DataLoader
class SGD(torch.optim.Optimizer):
    step = torch.optim.Optimizer.profile_hook_step(lambda self: time.sleep(0.02))
sgd = SGD()
for epoch in range(1000):
    for batch in DataLoader([1.0] * 50):
        sgd.step()
open("saved", "w").close()
PY
