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

@note submit.late
local late = nil

@note submit.run
local function run(words, folder)
  if late and os.time() > late then
    return nil, nil
  end
  local command = "exec 2>/dev/null </dev/null; timeout -k 1 " .. CUFIT_SECONDS
  if folder then
    command = command .. " sh -c 'cd -- \"$1\" && shift && exec \"$@\"' sh " .. quoted(folder)
  end
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
  if code == "124" or code == "137" then
    late = 0
  end
  return text, tonumber(code)
end

local function double_quoted(line, i)
  local text = {}
  while line:sub(i, i) ~= '"' do
    local d = line:sub(i, i)
    if d == "" or d == "$" or d == "`" then
      return nil
    end
    if d == "\\" and line:sub(i + 1, i + 1):find('["\\$`]') then
      i = i + 1
      d = line:sub(i, i)
    end
    text[#text + 1] = d
    i = i + 1
  end
  return table.concat(text), i
end

@note submit.piece
local function piece_at(line, i)
  local c = line:sub(i, i)
  if c == "'" then
    local close = line:find("'", i + 1, true)
    return close and line:sub(i + 1, close - 1), close
  elseif c == '"' then
    return double_quoted(line, i + 1)
  elseif c == "\\" then
    return i < #line and line:sub(i + 1, i + 1) or nil, i + 1
  elseif c:find("[|&;<()$`*?%[%]{}!~%c]") then
    return nil
  end
  local last = (line:find("[|&;<>()$`*?%[%]{}!~%c'\"\\ ]", i + 1) or #line + 1) - 1
  return line:sub(i, last), last
end

@note submit.output
local function is_output(rest)
  for _ = 1, 2 do
    rest = rest:gsub("^[012]?>>?%s*&?[%w%._/%%%-]+%s*", "")
  end
  return rest == "" or rest:find("^#") ~= nil
end

@note submit.words
local function words_of(line)
  local words, word = {}, nil
  local i = 1
  while i <= #line do
    local c = line:sub(i, i)
    if c == " " or c == "\t" or c == ">" or (c == "#" and not word) then
      if word and not (c == ">" and word:find("^[012]$")) then
        words[#words + 1] = word
      end
      word = nil
      if c == ">" and not is_output(line:sub(i)) then
        return nil
      elseif c == ">" or c == "#" then
        break
      end
    else
      local text, last = piece_at(line, i)
      if not text then
        return nil
      end
      word, i = (word or "") .. text, last
    end
    i = i + 1
  end
  if word then
    words[#words + 1] = word
  end
  return words
end

local function set_of(names)
  local set = {}
  for name in names:gmatch("%S+") do
    set[name] = true
  end
  return set
end

local BEFORE = set_of("exec time env nohup")

local function is_launcher(word)
  local name = word:match("[^/]*$")
  return name:find("^python[%d%.]*$") ~= nil
    or name == "torchrun"
    or name == "accelerate"
    or name == "deepspeed"
    or name:find("%.py$") ~= nil
end

@note submit.behind
local function behind_srun(words, first)
  local value = false
  for i = first, #words do
    local word = words[i]
    if word == "cufit" or is_launcher(word) then
      return i
    elseif word:find("^%-") then
      value = not word:find("=", 1, true)
    elseif value then
      value = false
    else
      return nil
    end
  end
  return nil
end

local function behind_cufit(words, first)
  for i = first, #words do
    if words[first] == "run" and words[i] == "--" then
      return i + 1
    end
  end
  return nil
end

@note submit.prefix
local function program_in(words)
  local first = 1
  while words[first] and (BEFORE[words[first]] or words[first]:find("^[%a_][%w_]*=")) do
    first = first + 1
  end
  if words[first] == "srun" then
    first = behind_srun(words, first + 1)
  end
  if first and words[first] == "cufit" then
    first = behind_cufit(words, first + 1)
  end
  if not first or not words[first] or not is_launcher(words[first]) then
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

local OPENS = set_of("if for while until case select function")
local CLOSES = set_of("fi done esac")

@note submit.blocks
local function depth_after(line, depth)
  if line:find("^%s*#") then
    return depth
  end
  local first, last = line:match("^%s*(%S*)"), line:match("(%S+)%s*$") or ""
  if CLOSES[first:match("^%a*")] or first:find("^[})]") then
    return math.max(depth - 1, 0)
  end
  local opens = first == "{" or first == "(" or line:find("^%s*[%w_%-]+%s*%(%s*%)") ~= nil
  for word in line:gmatch("%a+") do
    opens = opens or OPENS[word]
  end
  if opens and not CLOSES[last] and last ~= "}" and last ~= ")" then
    return depth + 1
  end
  return depth
end

@note submit.open
local function quote_after(line, quote)
  local i = 1
  while true do
    local at = line:find(quote == "'" and "'" or quote and '["\\]' or "['\"\\#]", i)
    if not at then
      return quote
    end
    local c = line:sub(at, at)
    if c == "\\" then
      at = at + 1
    elseif c == "#" then
      if at == 1 or line:find("^%s", at - 1) then
        return nil
      end
    else
      quote = not quote and c or nil
    end
    i = at + 1
  end
end

local function here_text_end(line)
  local last = nil
  for word in line:gsub("<<<", ""):gmatch("<<%-?%s*['\"\\]?([%a_][%w_]*)") do
    last = word
  end
  return last
end

@note submit.line
local function read_line(line, state)
  local words = words_of(line)
  local program = words and program_in(words)
  if program then
    local sure = state.depth == 0
    state.found[#state.found + 1] = { words = program, folder = state.folder, sure = sure }
  elseif line:find("^%s*cd%s") or line:find("^%s*pushd%s") or line:find("^%s*popd") then
    local to = words and #words == 2 and words[1] == "cd" and words[2] or nil
    if not to or not is_plain(to) or state.depth > 0 then
      return false
    end
    state.folder = to:find("^/") and to or (state.folder or ".") .. "/" .. to
  elseif line:find("^%s*exit%f[%W]") and state.depth == 0 then
    return false
  else
    state.quote = quote_after(line, nil)
    state.ends = here_text_end(line)
    state.depth = depth_after(line, state.depth)
  end
  return #state.found < MOST_PROGRAMS
end

@note submit.script
local function programs_in(text, folder)
  local state = { found = {}, folder = folder, depth = 0 }
  text = text:gsub("\r\n", "\n"):gsub("\\\n", " ")
  for line in text:gmatch("[^\n]+") do
    if state.ends then
      if line:match("^%s*(.-)%s*$") == state.ends then
        state.ends = nil
      end
    elseif state.quote or #line > 65536 then
      state.quote = quote_after(line, state.quote)
    elseif not read_line(line, state) then
      break
    end
  end
  return state.found
end

@note submit.file
local function script_text(path)
  if not is_plain(path) then
    return nil
  end
  local read = '[ -f "$1" ] && exec head -c "$2" -- "$1"'
  local text = run({ "sh", "-c", read, "sh", path, tostring(MOST_SCRIPT_BYTES) })
  if not text or not text:find("^#!") or text:find("%z") then
    return nil
  end
  if #text == MOST_SCRIPT_BYTES then
    text = text:match("^(.*)\n") or ""
  end
  return text
end

local function programs_of(options)
  local folder = options["chdir"]
  if folder ~= nil and (type(folder) ~= "string" or not folder:find("^/") or not is_plain(folder)) then
    return {}
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
  return program and { { words = program, folder = folder, sure = true } } or {}
end

local function new_types()
  local types = { whole = true }
  function types.add(name)
    for _, known in ipairs(types) do
      if known == name then
        return
      end
    end
    local plain = name:find("^[%w%._%-]+$") and #name <= 64 and not name:find("^%d%d?%d?$")
    if plain and #types < MOST_TYPES then
      types[#types + 1] = name
    else
      types.whole = false
    end
  end
  return types
end

@note submit.types
local function asked_types(options)
  local types, asks, named = new_types(), false, false
  local function take(words)
    local count = words[#words]
    local name = #words > 1 and words[1] or (not count:find("^%d+$") and count) or nil
    if count == "0" then
      return
    end
    asks = true
    if name then
      named = true
      types.add(name)
    end
  end
  local function read(key, behind_gpu)
    local text = options[key]
    for part in (type(text) == "string" and text or ""):gmatch("[^,]+") do
      local words = {}
      for word in part:gsub("^gres[:/]", ""):gmatch("[^:=]+") do
        words[#words + 1] = word
      end
      if behind_gpu and words[1] == "gpu" then
        table.remove(words, 1)
        take(#words > 0 and words or { "1" })
      elseif not behind_gpu and #words > 0 then
        take(words)
      end
    end
  end
  for _, key in ipairs({ "gres", "tres-per-task", "tres-per-job" }) do
    read(key, true)
  end
  for _, key in ipairs({ "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket" }) do
    read(key, false)
  end
  return asks, named, types
end

@note submit.places
local function types_of_places(options)
  local types, constraint = new_types(), options["constraint"]
  for word in (type(constraint) == "string" and constraint or ""):gmatch("[%w_%.%-]+") do
    if CUFIT_GPUS[word] or word:find("^%a+%d+%a*$") then
      types.add(word)
    end
  end
  if #types > 0 then
    types.whole = not constraint:find("|", 1, true)
    return types
  end
  local wanted = options["partition"]
  wanted = type(wanted) == "string" and "," .. wanted .. "," or nil
  for line in (run({ "sinfo", "-h", "-o", "%P|%G" }) or ""):gmatch("[^\n]+") do
    local partition, gres = line:match("^([^|]*)|(.*)$")
    local name = partition and partition:gsub("%*$", "") or ""
    local here = wanted and wanted:find("," .. name .. ",", 1, true)
    if partition and (here or (not wanted and partition ~= name)) then
      for kind, rest in gres:gmatch("%f[%w](gpu):?([^,(]*)") do
        local type_name = rest:match("^([^:]+):%d+$")
        if type_name then
          types.add(type_name)
        elseif kind then
          types.whole = false
        end
      end
    end
  end
  return types
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

local function largest_of(cards)
  local largest = nil
  for _, card in ipairs(cards) do
    if not largest or card.usable - card.needs > largest.usable - largest.needs then
      largest = card
    end
  end
  return largest
end

@note submit.verdict
local function types_too_small(program, types)
  local count = 0
  for _, type_name in ipairs(types) do
    local largest = largest_of(cards_of(program, CUFIT_GPUS[type_name] or type_name))
    if largest and largest.needs > largest.usable then
      count = count + 1
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
  return count
end

@note submit.sure
local function check(options)
  late = os.time() + CUFIT_SECONDS
  local asks, named, types = asked_types(options)
  if not asks then
    return false
  end
  local programs = programs_of(options)
  if #programs == 0 then
    return false
  end
  if not named then
    types = types_of_places(options)
  end
  local too_small = false
  for _, program in ipairs(programs) do
    local count = types_too_small(program, types)
    local all = count == #types and types.whole
    too_small = too_small or (program.sure and count > 0 and (named or all))
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
