cd "$TMP"
cat >jobs.toml <<'TOML'
[[job]]
name = "train"
size = "20G"
command = "python train.py --lr '1e-3 x'"
count = 3

[[job]]
name = "it's; all"
total = "30G"
command = ["python", "eval.py", "--name", "it's; rm -rf /"]

[[job]]
name = "huge"
size = "90G"
TOML
