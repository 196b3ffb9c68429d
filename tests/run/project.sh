#!/bin/sh
# project.sh DIR: a folder with a cufit.lock of four classes and their environments, whose "python"
# is a script that tells the class it belongs to. Its lock was written by hand as `cufit lock` does.
set -e
mkdir -p "$1/.cufit/envs"
cp "$(dirname "$0")/cufit.lock" "$1/cufit.lock"
for class in cu130 cu126 cu118 cpu; do
  mkdir -p "$1/.cufit/envs/$class/bin"
  printf '{"schema": "cufit.env/1", "class": "%s", "pylock": "pylock.%s.toml", "pylock_sha256": "of-%s", "created": "2026-11-21T10:00:00Z", "installer": "uv 0.9.9"}\n' $class $class $class >"$1/.cufit/envs/$class.json"
  cat >"$1/.cufit/envs/$class/bin/python" <<EOF
#!/bin/sh
if [ \$# -gt 0 ]; then exec /usr/bin/env python3 "\$@"; fi
echo "python of $class, CUFIT_CLASS=\$CUFIT_CLASS"
EOF
  chmod +x "$1/.cufit/envs/$class/bin/python"
done
