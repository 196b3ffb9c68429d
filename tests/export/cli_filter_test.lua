-- SPDX-License-Identifier: Apache-2.0
-- The filter of `cufit export --to slurm-submit` without Slurm: what it asks cufit for hostile and
-- plain scripts, and what it says. Arguments: the filter, a folder to work in. `cufit` and `sinfo`
-- in PATH are stand-ins that this test writes: cufit notes its words and says a kept answer.
local filter_path, folder = arg[1], arg[2]
local said, failures = {}, 0

slurm = {
  SUCCESS = 0,
  ERROR = -1,
  log_info = function(form, ...) said[#said + 1] = string.format(form, ...) end,
}

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

local function read(path)
  local file = io.open(path, "r")
  if not file then return "" end
  local text = file:read("*a")
  file:close()
  return text
end

local function load_filter(change)
  local text = read(filter_path)
  if change then
    local changed, times = text:gsub(change[1], change[2], 1)
    assert(times == 1, "the filter has no " .. change[1])
    text = changed
  end
  write(folder .. "/filter.lua", text)
  dofile(folder .. "/filter.lua")
end

local function check(what, good)
  if good then return end
  failures = failures + 1
  io.stderr:write("not so: ", what, "\n")
  for _, line in ipairs(said) do io.stderr:write("  said: ", line, "\n") end
  io.stderr:write("  asked: ", read(folder .. "/asked"), "\n")
end

-- One submission; gives the verdict and what cufit was asked, a line for each call.
local function submit(options)
  said = {}
  os.remove(folder .. "/asked")
  local verdict = slurm_cli_pre_submit(options, 0)
  return verdict, read(folder .. "/asked")
end

local function batch(text, more)
  write(folder .. "/job.sh", text)
  local options = { type = "sbatch", gres = "gpu:a100:1", argv = { folder .. "/job.sh" } }
  for key, value in pairs(more or {}) do options[key] = value end
  return submit(options)
end

load_filter()

-- A plain script, as people write them.
local verdict, asked = batch([[
#!/bin/bash
#SBATCH --gres=gpu:a100:1
module load cuda
source venv/bin/activate
export OMP_NUM_THREADS=8
OMP_NUM_THREADS=8 srun --ntasks=1 -n 1 python train.py \
    --lr 0.1 --name "a b" > log.txt 2>&1   # all of it
]])
check("a plain script is read", asked:find("[fit][--cached][--json][--gpu][a100][--][python][train.py][--lr][0.1][--name][a b]", 1, true))
check("a job that is too large is submitted", verdict == slurm.SUCCESS)
check("and it is said", #said == 2 and said[1]:find("80.0 GiB", 1, true) and said[1]:find("39.0 GiB", 1, true))
check("with a step that can be copied", said[2] and said[2]:find("cufit fit --cached --gpu all -- python train.py --lr 0.1 --name 'a b'", 1, true))

-- What a shell would have to work out is not asked for; nothing of it is run.
for _, line in ipairs({
  "python train.py $(touch " .. folder .. "/ran)",
  "python train.py `touch " .. folder .. "/ran`",
  "python train.py \"$LR\"",
  "python train.py; touch " .. folder .. "/ran",
  "python train.py | tee log",
  "python train.py && true",
  "python train.py *.yaml",
  "python train.py 'open",
  "python train.py > log extra",
  "for i in 1 2; do python train.py; done",
  "echo python train.py",
}) do
  verdict, asked = batch("#!/bin/sh\n" .. line .. "\n")
  check("not asked: " .. line, asked == "" and verdict == slurm.SUCCESS and #said == 0)
end
check("nothing of a script is run", read(folder .. "/ran") == "")

-- Words that would end a quotation reach cufit as they are.
verdict, asked = batch("#!/bin/sh\npython train.py \"it's\" '\"; touch " .. folder .. "/ran' \\'\n")
check("quotes are words", asked:find("[it's][\"; touch " .. folder .. "/ran][']", 1, true))
check("and run nothing", read(folder .. "/ran") == "")

-- Folders.
verdict, asked = batch("#!/bin/sh\ncd " .. folder .. "/work\npython train.py\n")
check("a plain cd counts", asked:find("^" .. folder:gsub("%p", "%%%0") .. "/work "))
verdict, asked = batch("#!/bin/sh\ncd $HOME\npython train.py\n")
check("after another one nothing is asked", asked == "")
verdict, asked = batch("#!/bin/sh\npython train.py\n", { chdir = folder .. "/work" })
check("--chdir counts", asked:find("^" .. folder:gsub("%p", "%%%0") .. "/work "))

-- Other ways to submit.
verdict, asked = submit({ type = "sbatch", gres = "gpu:a100:2", wrap = "torchrun --nproc-per-node 2 train.py" })
check("--wrap is read", asked:find("[torchrun][--nproc-per-node][2][train.py]", 1, true))
verdict, asked = submit({ type = "srun", gpus = "a100:1", argv = { "python", "train.py", "$x" } })
check("srun's words are words", asked:find("[python][train.py][$x]", 1, true))
verdict, asked = submit({ type = "srun", gpus = "h200:1", argv = { "python", "train.py" } })
check("what fits is not spoken of", asked ~= "" and #said == 0)
verdict, asked = submit({ type = "srun", gpus = "2", constraint = "a100&ib", argv = { "python", "train.py" } })
check("a constraint names the type", asked:find("[--gpu][a100]", 1, true))
verdict, asked = submit({ type = "srun", ["gpus-per-node"] = "1", argv = { "python", "train.py" } })
check("else the default partition's types", asked:find("[--gpu][a100]", 1, true) and asked:find("[--gpu][h200]", 1, true))
verdict, asked = submit({ type = "srun", gres = "gpu:1", partition = "big", argv = { "python", "train.py" } })
check("or those of the one asked for", not asked:find("[a100]", 1, true) and asked:find("[--gpu][h200]", 1, true))
verdict, asked = submit({ type = "srun", argv = { "python", "train.py" } })
check("a job without a GPU is not asked for", asked == "")
verdict, asked = submit({ type = "srun", gres = "gpu:$(reboot):1", argv = { "python", "train.py" } })
check("a type is a plain word", not asked:find("reboot", 1, true))

verdict, asked = submit({ type = "sbatch", gpus = "h200", wrap = "python train.py" })
check("a type without a number is a type", asked:find("[--gpu][h200]", 1, true))
verdict, asked = submit({ type = "srun", gres = "gres:gpu:3090:1", argv = { "python", "train.py" } })
check("a type may begin with a digit", asked:find("[--gpu][3090]", 1, true))
check("and the partition has no say then", not asked:find("[a100]", 1, true))
verdict, asked = submit({ type = "srun", gres = "gpu:24:1", argv = { "python", "train.py" } })
check("a short number is no card", asked == "")
verdict, asked = submit({ type = "srun", gres = "gpu:a100:0", argv = { "python", "train.py" } })
check("none of a type is none", asked == "")
verdict, asked = submit({ type = "sbatch", gres = "gpu:a100:1", chdir = "work", wrap = "python train.py" })
check("a folder that is not whole is not guessed", asked == "")

-- Texts inside a script, and programs that get the name of another as a word.
for _, text in ipairs({
  "cat <<EOF > readme\npython train.py\nEOF",
  "cat <<-'EOF'\n\tpython train.py\n\tEOF",
  "echo \"usage:\npython train.py\n\"",
  "echo 'usage:\npython train.py'",
  "exit 0\npython train.py",
  "srun -n 1 bash run.sh train.py",
  "srun --label -n 1 run.sh python train.py",
  "cufit fit -- python train.py",
  "cufit lint train.py",
  "if true; then\ncd " .. folder .. "/work\nfi\npython train.py",
}) do
  verdict, asked = batch("#!/bin/sh\n" .. text .. "\n")
  check("not asked: " .. text, asked == "" and #said == 0)
end
for _, text in ipairs({
  "cat <<EOF\nhelp\nEOF\npython train.py",
  "cat <<<word\npython train.py",
  "echo \"a\nb\"\npython train.py",
  "# it's a comment\npython train.py",
  "echo it\\'s\npython train.py",
  "env A=1 nohup python train.py",
  "cufit run --vram 20GiB -- python train.py",
  "srun --gres=gpu:1 -n 1 cufit run --vram shards -- python train.py",
}) do
  verdict, asked = batch("#!/bin/sh\n" .. text .. "\n")
  check("asked: " .. text, asked:find("[--][python][train.py]", 1, true))
end

-- What can be read but once, or never ends, is no script.
os.execute("mkfifo " .. folder .. "/pipe")
verdict, asked = submit({ type = "sbatch", gres = "gpu:1", argv = { folder .. "/pipe" } })
check("a pipe is not waited for", verdict == slurm.SUCCESS and asked == "")
-- A line that the limit cuts in two is another program.
local padding = ("# "):rep(99) .. "\n"
local head = "#!/bin/sh\n" .. padding:rep(math.floor(262144 / #padding) - 1)
head = head .. ("#"):rep(262144 - #head - #"\npython train.py --batch 1") .. "\n"
verdict, asked = batch(head .. "python train.py --batch 16\n")
check("half a line is not taken for a whole", asked == "")

-- Whatever Slurm hands over, a fault stops no job.
for _, options in ipairs({ {}, { type = 7, gres = {}, argv = 3 }, { type = "sbatch", gres = "gpu:1", argv = { {} } },
  { type = "srun", gres = ("gpu:a,"):rep(10000), argv = { ("x"):rep(100000) } } }) do
  check("odd options", (submit(options)) == slurm.SUCCESS)
end
write(folder .. "/job.sh", "#!/bin/sh\n" .. ("python train.py a\n"):rep(50000))
verdict, asked = submit({ type = "sbatch", gres = "gpu:a100:1", argv = { folder .. "/job.sh" } })
local _, calls = asked:gsub("\n", "")
check("a few programs are asked for, not thousands", calls <= 4)

-- An unknown program, a slow one, none at all.
verdict, asked = batch("#!/bin/sh\npython unknown.py\n")
check("nothing kept: nothing said", verdict == slurm.SUCCESS and #said == 0 and asked ~= "")
load_filter({ "local CUFIT_SECONDS = 2", "local CUFIT_SECONDS = 1" })
local begun = os.time()
verdict, asked = batch("#!/bin/sh\npython slow.py\n")
local _, calls = asked:gsub("\n", "")
check("nothing is asked after one that is slow", calls == 1)
begun = os.time()
verdict, asked = batch("#!/bin/sh\n" .. ("python slow.py\n"):rep(4), { gres = "gpu:a100:1,gpu:h200:1" })
check("however many there are", os.time() - begun <= 5)
check("a slow one is left", verdict == slurm.SUCCESS and #said == 0 and os.time() - begun < 20)
load_filter({ 'local CUFIT_PROGRAM = "cufit"', 'local CUFIT_PROGRAM = "/nowhere/cufit"' })
check("none is no fault", (batch("#!/bin/sh\npython train.py\n")) == slurm.SUCCESS and #said == 0)

-- A site that refuses, and one that names its types.
load_filter({ 'local CUFIT_SUBMIT = "warn"', 'local CUFIT_SUBMIT = "refuse"' })
check("refuse refuses", (batch("#!/bin/sh\npython train.py\n")) == slurm.ERROR)
check("but not what is unknown", (batch("#!/bin/sh\npython unknown.py\n")) == slurm.SUCCESS)
check("nor what fits", (batch("#!/bin/sh\npython train.py\n", { gres = "gpu:h200:1" })) == slurm.SUCCESS)
-- Refused is what is sure: not a branch, nor a place that may be another.
for text, expected in pairs({
  ["if [ -f x ]; then\n  python train.py\nfi"] = slurm.SUCCESS,
  ["if [ -f x ]; then\n  true\nelse\n  python train.py\nfi"] = slurm.SUCCESS,
  ["main() {\n  python train.py\n}"] = slurm.SUCCESS,
  ["if true; then\n  for i in 1; do\n    true\n  done\n  python train.py\nfi"] = slurm.SUCCESS,
  ["if true; then\n  true\nfi\npython train.py"] = slurm.ERROR,
  ["for i in 1 2; do echo $i; done\npython train.py"] = slurm.ERROR,
}) do
  verdict, asked = batch("#!/bin/sh\n" .. text .. "\n")
  check("the verdict of: " .. text, verdict == expected and #said > 0)
end
for _, place in ipairs({ { nil, "a100|h200", true }, { nil, "[a100|volta]", true }, { nil, "a100&ib", false },
  { "old", nil, false }, { "old,big", nil, true }, { "mixed", nil, true }, { nil, nil, true } }) do
  verdict, asked = submit({ type = "srun", gres = "gpu:1", partition = place[1], constraint = place[2], argv = { "python", "train.py" } })
  check("at " .. tostring(place[1]) .. " " .. tostring(place[2]), (verdict == slurm.SUCCESS) == place[3] and #said > 0)
end
load_filter({ "local CUFIT_GPUS = {", 'local CUFIT_GPUS = { a100 = "A100 SXM4 80GB",' })
verdict, asked = batch("#!/bin/sh\npython train.py\n")
check("a type has the card that the site says", asked:find("[--gpu][A100 SXM4 80GB]", 1, true))

os.exit(failures == 0 and 0 or 1)
