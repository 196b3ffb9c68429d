#!/bin/sh
# env.sh DIR TORCH CUDA: a folder that looks like a virtual environment with this torch ("2.14.1+cu126",
# "12.6"; CUDA "None": a CPU build), as far as files without code can.
set -e
site=$1/lib/python3.12/site-packages
mkdir -p "$1/bin" "$site/torch/lib" "$site/torch-$2.dist-info"
printf 'home = /usr/bin\nversion = 3.12.3\n' >"$1/pyvenv.cfg"
printf '#!/bin/sh\necho "python of %s"\n' "$2" >"$1/bin/python"
chmod +x "$1/bin/python"
cuda=None
[ "$3" = None ] || cuda="'$3'"
printf "__version__ = '%s'\ndebug = False\ncuda = %s\ngit_version = 'x'\nhip = None\n" "$2" "$cuda" >"$site/torch/version.py"
touch "$site/torch/__init__.py" "$site/torch/lib/libtorch.so"
printf 'Metadata-Version: 2.1\nName: torch\nVersion: %s\n' "$2" >"$site/torch-$2.dist-info/METADATA"
printf 'torch/__init__.py,,\ntorch/version.py,,\n' >"$site/torch-$2.dist-info/RECORD"
echo uv >"$site/torch-$2.dist-info/INSTALLER"
