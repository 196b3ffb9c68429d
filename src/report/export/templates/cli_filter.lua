@note submit.made
@note submit.head
@note submit.conf
@note submit.never

@note submit.refuse
local CUFIT_SUBMIT = "warn"
@note submit.gpus
local CUFIT_GPUS = {
}
@note submit.program
local CUFIT_PROGRAM = "cufit"
local CUFIT_SECONDS = 2

local TOO_SMALL = [=[@too_small@]=]
local MORE = [=[@more@]=]

local MOST_SCRIPT_BYTES = 262144
local MOST_PROGRAMS = 4
local MOST_TYPES = 4
local MOST_SAID_BYTES = 1048576

@note submit.quoting
local function quoted(word)
  return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function is_plain(word)
  return #word <= 4096 and not word:find("%c")
end

@note submit.run
local function run(words, folder)
  local command = "exec 2>/dev/null </dev/null; "
  if folder then
    command = command .. "cd -- " .. quoted(folder) .. " && "
  end
  command = command .. "timeout -k 1 " .. CUFIT_SECONDS
  for _, word in ipairs(words) do
    command = command .. " " .. quoted(word)
  end
  local pipe = io.popen(command .. "; echo \"cufit-exit $?\"", "r")
  if not pipe then
    return nil, nil
  end
  local said = pipe:read(MOST_SAID_BYTES) or ""
  pipe:close()
  local text, code = said:match("^(.*)cufit%-exit (%d+)\n$")
  return text, tonumber(code)
end

@note submit.words
local function words_of(line)
  local words, word, inside = {}, "", false
  local i = 1
  while i <= #line do
    local c = line:sub(i, i)
    if c == "'" then
      local close = line:find("'", i + 1, true)
      if not close then
        return nil
      end
      word, inside = word .. line:sub(i + 1, close - 1), true
      i = close
    elseif c == '"' then
      inside = true
      i = i + 1
      while line:sub(i, i) ~= '"' do
        local d = line:sub(i, i)
        if d == "" or d == "$" or d == "`" then
          return nil
        end
        if d == "\\" and line:sub(i + 1, i + 1):find('["\\$`]') then
          i = i + 1
          d = line:sub(i, i)
        end
        word = word .. d
        i = i + 1
      end
    elseif c == "\\" then
      if i == #line then
        return nil
      end
      i = i + 1
      word, inside = word .. line:sub(i, i), true
    elseif c == " " or c == "\t" then
      if inside then
        words[#words + 1] = word
      end
      word, inside = "", false
    elseif c == "#" and not inside then
      break
    elseif c == ">" then
      @note submit.output
      if inside and not word:find("^[012]$") then
        words[#words + 1] = word
      end
      word, inside = "", false
      local rest = line:sub(i)
      rest = rest:gsub("^[012]?>>?%s*&?[%w%._/%%%-]+%s*", "")
      rest = rest:gsub("^[012]?>>?%s*&?[%w%._/%%%-]+%s*", "")
      if rest ~= "" and not rest:find("^#") then
        return nil
      end
      break
    elseif c:find("[|&;<()$`*?%[%]{}!~%c]") then
      return nil
    else
      word, inside = word .. c, true
    end
    i = i + 1
  end
  if inside then
    words[#words + 1] = word
  end
  return words
end

local function is_launcher(word)
  local name = word:match("[^/]*$")
  return name:find("^python[%d%.]*$") ~= nil
    or name == "torchrun"
    or name == "accelerate"
    or name == "deepspeed"
    or name:find("%.py$") ~= nil
end

@note submit.prefix
local function program_in(words)
  local first = 1
  while words[first] and words[first]:find("^[%a_][%w_]*=") do
    first = first + 1
  end
  while words[first] == "exec" or words[first] == "time" or words[first] == "env" do
    first = first + 1
  end
  if words[first] == "srun" or words[first] == "cufit" then
    while words[first] and not is_launcher(words[first]) do
      first = first + 1
    end
  end
  if not words[first] or not is_launcher(words[first]) then
    return nil
  end
  local program = {}
  for i = first, #words do
    if not is_plain(words[i]) then
      return nil
    end
    program[#program + 1] = words[i]
  end
  return program
end

@note submit.script
local function programs_in(text, folder)
  local found = {}
  text = text:gsub("\r\n", "\n"):gsub("\\\n", " ")
  for line in text:gmatch("[^\n]+") do
    if #found >= MOST_PROGRAMS then
      break
    end
    local words = #line <= 65536 and words_of(line) or nil
    if line:find("^%s*cd%s") or line:find("^%s*pushd%s") or line:find("^%s*popd") then
      if not words or #words ~= 2 or words[1] ~= "cd" or not is_plain(words[2]) then
        break
      end
      folder = words[2]:find("^/") and words[2] or (folder or ".") .. "/" .. words[2]
    elseif words then
      local program = program_in(words)
      if program then
        found[#found + 1] = { words = program, folder = folder }
      end
    end
  end
  return found
end

local function script_text(path)
  if not is_plain(path) then
    return nil
  end
  local file = io.open(path, "r")
  if not file then
    return nil
  end
  local text = file:read(MOST_SCRIPT_BYTES)
  file:close()
  if not text or not text:find("^#!") or text:find("%z") then
    return nil
  end
  return text
end

local function programs_of(options)
  local folder = options["chdir"]
  if folder ~= nil and (type(folder) ~= "string" or not folder:find("^/") or not is_plain(folder)) then
    folder = nil
  end
  local argv = options["argv"] or {}
  if options["type"] == "sbatch" then
    local wrap = options["wrap"]
    if type(wrap) == "string" and wrap ~= "" then
      return programs_in(wrap, folder)
    end
    local text = type(argv[1]) == "string" and script_text(argv[1]) or nil
    return text and programs_in(text, folder) or {}
  end
  local program = program_in(argv)
  return program and { { words = program, folder = folder } } or {}
end

@note submit.types
local function asked_types(options)
  local types, asks = {}, false
  local function add(type_name)
    for _, known in ipairs(types) do
      if known == type_name then
        return
      end
    end
    if #types < MOST_TYPES and type_name:find("^[%w%._%-]+$") and #type_name <= 64 then
      types[#types + 1] = type_name
    end
  end
  for _, name in ipairs({ "gres", "tres-per-task", "tres-per-job" }) do
    local text = options[name]
    for part in (type(text) == "string" and text or ""):gmatch("[^,]+") do
      part = part:gsub("^gres[:/]", "")
      if part:find("^gpu$") or part:find("^gpu[:=]") then
        asks = true
        local type_name = part:match("^gpu[:=](%a[%w%._%-]*)")
        if type_name then
          add(type_name)
        end
      end
    end
  end
  for _, name in ipairs({ "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket" }) do
    local text = options[name]
    for part in (type(text) == "string" and text or ""):gmatch("[^,]+") do
      local type_name = part:match("^(%a[%w%._%-]*):%d+$")
      if type_name or part:find("^%d+$") then
        asks = asks or part ~= "0"
        if type_name then
          add(type_name)
        end
      end
    end
  end
  local constraint = options["constraint"]
  if asks and #types == 0 and type(constraint) == "string" then
    for word in constraint:gmatch("[%w_%.%-]+") do
      if CUFIT_GPUS[word] or word:find("^%a+%d+%a*$") then
        add(word)
      end
    end
  end
  return asks, types, add
end

local function partition_types(options, add)
  local text = run({ "sinfo", "-h", "-o", "%P|%G" })
  local wanted = options["partition"]
  for line in (text or ""):gmatch("[^\n]+") do
    local partition, gres = line:match("^([^|]*)|(.*)$")
    local is_default = partition and partition:find("%*$") ~= nil
    local name = partition and partition:gsub("%*$", "") or ""
    local asked = type(wanted) == "string" and ("," .. wanted .. ","):find("," .. name .. ",", 1, true)
    if partition and ((type(wanted) == "string" and asked) or (type(wanted) ~= "string" and is_default)) then
      for type_name in gres:gmatch("gpu:(%a[%w%._%-]*):%d") do
        add(type_name)
      end
    end
  end
end

@note submit.answer
local function cards_of(program, gpu)
  local words = { CUFIT_PROGRAM, "fit", "--cached", "--json", "--gpu", gpu, "--" }
  for _, word in ipairs(program.words) do
    words[#words + 1] = word
  end
  local text, code = run(words, program.folder)
  if not text or (code ~= 0 and code ~= 1) then
    return {}
  end
  local cards = {}
  local cached = text:match('"cached":%s*(%b{})') or ""
  for card in cached:sub(2):gmatch("%b{}") do
    local name = card:match('"name":%s*"([^"]*)"')
    local needs = tonumber(card:match('"needs_bytes":%s*(%d+)'))
    local usable = tonumber(card:match('"usable_bytes":%s*(%d+)'))
    if name and needs and usable then
      cards[#cards + 1] = { name = name:gsub("%c", "?"), needs = needs, usable = usable }
    end
  end
  return cards
end

local function filled(text, values)
  return (text:gsub("{(%w+)}", values))
end

local function gib(bytes)
  return string.format("%.1f GiB", bytes / 1073741824)
end

local function typed(words)
  local out = {}
  for _, word in ipairs(words) do
    out[#out + 1] = word:find("^[%w%._/%-=:,+@]+$") and word or quoted(word)
  end
  return table.concat(out, " "):gsub("%c", "?")
end

local function say(text)
  for line in text:gmatch("[^\n]+") do
    slurm.log_info("%s", line)
  end
end

@note submit.verdict
local function check(options)
  local asks, types, add = asked_types(options)
  if not asks then
    return false
  end
  local programs = programs_of(options)
  if #programs == 0 then
    return false
  end
  if #types == 0 then
    partition_types(options, add)
  end
  local too_small = false
  for _, program in ipairs(programs) do
    for _, type_name in ipairs(types) do
      local cards = cards_of(program, CUFIT_GPUS[type_name] or type_name)
      local largest = nil
      for _, card in ipairs(cards) do
        if not largest or card.usable - card.needs > largest.usable - largest.needs then
          largest = card
        end
      end
      if largest and largest.needs > largest.usable then
        too_small = true
        local program_text = typed(program.words)
        say(filled(TOO_SMALL, {
          program = program_text,
          needs = gib(largest.needs),
          usable = gib(largest.usable),
          type = type_name,
          card = largest.name,
        }))
        say(filled(MORE, { program = program_text }))
      end
    end
  end
  return too_small
end

function slurm_cli_setup_defaults(options, early_pass)
  return slurm.SUCCESS
end

function slurm_cli_pre_submit(options, pack_offset)
  @note submit.step
  if os.getenv("SLURM_JOB_ID") then
    return slurm.SUCCESS
  end
  @note submit.error
  local good, too_small = pcall(check, options)
  if good and too_small and CUFIT_SUBMIT == "refuse" then
    return slurm.ERROR
  end
  return slurm.SUCCESS
end

function slurm_cli_post_submit(offset, job_id, step_id)
  return slurm.SUCCESS
end
