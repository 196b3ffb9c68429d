@note made
@note jupyter.kernel
import os
import sys

del sys.path[0]
sys.path.append("/opt/cufit/kernels/" + os.environ["CUFIT_CLASS"])

from ipykernel import kernelapp  # noqa: E402

kernelapp.launch_new_instance()
