# Sourced by cases. $TMP becomes the working folder, with locks in a/ and b/: b/ has another torch, one
# more target, one more class.
cd "$TMP"
mkdir a b
cat >a/cufit.lock <<'LOCK'
schema = "cufit.lock/1"
created-by = "cufit 0.1.0"
requirements = ["torch"]
targets = ["RTX 4090,535"]
[[class]]
name = "cu126"
file = "pylock.cu126.toml"
sha256 = "0000000000000000000000000000000000000000000000000000000000000000"
torch = "2.7.1"
tag = "cu126"
cuda = "12.6.3"
python = "3.12"
platform = "linux_x86_64"
driver-min = "525.60.13"
driver-full = "560.35.05"
cubins = ["80", "86", "90"]
packages = 42
serves = ["RTX 4090,535"]
why = "newest torch for it"
LOCK
sed 's/2.7.1/2.8.0/
  s/"RTX 4090,535"\]/"RTX 4090,535", "V100,470"]/
  s/"80", /"75", "80", /' a/cufit.lock >b/cufit.lock
sed -n '/\[\[class/,$p' a/cufit.lock |
  sed 's/cu126/cu118/; s/12.6.3/11.8/; s/RTX 4090,535/V100,470/' >>b/cufit.lock
