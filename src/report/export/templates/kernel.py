@note made
@note jupyter.kernel
import sys

del sys.path[0]
sys.path.append("/opt/cufit/kernels/%d.%d%s" % (*sys.version_info[:2], sys.abiflags))

from ipykernel import kernelapp  # noqa: E402

kernelapp.launch_new_instance()
