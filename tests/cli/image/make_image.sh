# Sourced by cases. $TMP becomes the working folder, $R is the source tree. The file system of an
# image grows below img/.
R="$PWD"
cd "$TMP"
SITE=img/opt/venv/lib/python3.12/site-packages # of the environment img/opt/venv
LIB=img/usr/lib/x86_64-linux-gnu
CONFIG='{"architecture":"amd64","os":"linux"}'
TAG=

# installed SITE NAME VERSION: what pip leaves of a package.
installed() {
  mkdir -p "$1/$2-${3%+*}.dist-info"
  printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n\n' "$2" "$3" \
    >"$1/$2-${3%+*}.dist-info/METADATA"
}

# torch_env FOLDER VERSION TAG CUDA: a virtual environment with this torch, which holds code for
# compute capability 8.0.
torch_env() {
  site="$1/lib/python3.12/site-packages"
  mkdir -p "$site/torch/lib"
  printf 'home = /usr/bin\nversion = 3.12.3\n' >"$1/pyvenv.cfg"
  cp "$R/fuzz/seeds/elf/64gnu" "$site/torch/lib/libtorch_cuda.so"
  : >"$site/torch/__init__.py"
  cat >"$site/torch/version.py" <<PYTHON
__version__ = '$2+$3'
debug = False
cuda = '$4'
git_version = 'x'
hip = None
PYTHON
  installed "$site" torch "$2+$3"
}

# layer FILE: what lies below img/ as a layer.
layer() { tar -C img --sort=name -cf "$1" .; }

# image LAYER...: image.tar, as `docker save` writes it, of $CONFIG, named $TAG.
image() {
  layers=$(printf ',"%s"' "$@")
  printf '%s' "$CONFIG" >c.json
  printf '[{"Config":"c.json",%s"Layers":[%s]}]' "${TAG:+\"RepoTags\":[\"$TAG\"],}" "${layers#,}" \
    >manifest.json
  tar -cf image.tar "$@" c.json manifest.json
}

# config VARIABLE...: $CONFIG with these environment variables.
config() {
  variables=$(printf ',"%s"' "$@")
  CONFIG='{"architecture":"amd64","os":"linux","config":{"Env":['"${variables#,}"']}}'
}

# train_image: image.tar with nearly all there is to find: cuDNN twice, a driver, a file that a later
# layer deletes, settings for the container runtime.
train_image() {
  torch_env img/opt/venv 2.6.0 cu124 12.4
  mkdir -p "$SITE/nvidia/cudnn/lib" "$LIB" img/usr/local/cuda/lib64 img/gone up
  for library in libcudnn.so.9 libcudnn_ops.so.9; do
    head -c 9000000 /dev/zero | tee "$LIB/$library.1.0" >"$SITE/nvidia/cudnn/lib/$library"
  done
  printf x >"$LIB/libcuda.so.535.183.01"
  printf 'deleted' >img/gone/file
  : >up/.wh.gone
  layer base.tar
  tar -C up -czf top.tar .
  TAG=team/train:1
  config PATH=/opt/venv/bin 'NVIDIA_REQUIRE_CUDA=cuda>=12.6' NVIDIA_DRIVER_CAPABILITIES=utility
  CONFIG="${CONFIG%\}\}},\"Entrypoint\":[\"python\"]}}"
  image base.tar top.tar
}
