@note made
@note jupyter.head
import os

c = get_config()  # noqa: F821

with open("/var/lib/cufit/jupyter/token", encoding="ascii") as file:
    token = file.read().strip()
if len(token) < 16:
    raise SystemExit(@say_short@)

c.IdentityProvider.token = token
c.PasswordIdentityProvider.allow_password_change = False
c.ServerApp.allow_root = False
@note jupyter.address
c.ServerApp.ip = os.environ.get("JUPYTER_ADDRESS") or "0.0.0.0"
c.ServerApp.port = int(os.environ.get("JUPYTER_PORT") or "8888")
c.ServerApp.port_retries = 0
c.ServerApp.open_browser = False
c.ServerApp.root_dir = "/workspace"
@note jupyter.kernels
c.KernelSpecManager.ensure_native_kernel = False
c.KernelSpecManager.allowed_kernelspecs = {@kernels@}
c.MultiKernelManager.default_kernel_name = "auto"
