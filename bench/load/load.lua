-- Sends the requests of a plan, which wrk.ts writes, and prints the figures as one line of JSON.
-- A plan's requests are whole HTTP texts; where one has a slot, every request fills it anew.

local plan
local threadCount = 0
local threads = {}

function setup(thread)
  thread:set("threadIndex", threadCount)
  threadCount = threadCount + 1
  threads[threadCount] = thread
end

local function readLines(path)
  local lines = {}
  for line in io.lines(path) do lines[#lines + 1] = line end
  return lines
end

-- Each thread takes every n-th number, so that no number is taken twice.
local function numberSlot(slot)
  return function(count)
    local place = count * plan.threads + threadIndex
    if place >= slot.span then
      if not slot.wraps then return nil end
      place = place % slot.span
    end
    used = slot.first + place
    return string.format("%d", slot.first + (place * slot.stride) % slot.span)
  end
end

local function lineSlot(slot)
  local lines = readLines(slot.path)
  -- Each run starts elsewhere, so that in time all lines have their turn.
  math.randomseed(plan.seed + threadIndex)
  local start = math.random(#lines)
  return function(count)
    return lines[(start + count) % #lines + 1]
  end
end

local function makeSource(entry)
  if not entry.slot then
    return function() return entry.before end
  end
  local fill = entry.slot.kind == "line" and lineSlot(entry.slot) or numberSlot(entry.slot)
  local count = -1
  return function()
    count = count + 1
    local value = fill(count)
    if value then return entry.before .. value .. entry.after end
    exhausted = 1
    wrk.thread:stop()
    return entry.before .. "0" .. entry.after
  end
end

function init(args)
  plan = dofile(args[1])
  used = 0
  exhausted = 0
  local cycle = {}
  for _, entry in ipairs(plan.requests) do
    local source = makeSource(entry)
    for _ = 1, entry.weight do cycle[#cycle + 1] = source end
  end
  -- Threads start at different places of the cycle, so that the mix is even from the start.
  local position = math.floor(#cycle / plan.threads * threadIndex)
  request = function()
    position = position % #cycle + 1
    return cycle[position]()
  end
  if plan.pauseMs then
    delay = function() return plan.pauseMs end
  end
end

function done(summary, latency)
  local usedMost, exhaustedAny = 0, 0
  for _, thread in ipairs(threads) do
    usedMost = math.max(usedMost, thread:get("used") or 0)
    exhaustedAny = math.max(exhaustedAny, thread:get("exhausted") or 0)
  end
  local errors = summary.errors
  io.write(string.format(
    '\nFIGURES {"requests":%d,"durationSeconds":%.6f,"bytes":%d,"p50Ms":%.4f,"p99Ms":%.4f,' ..
    '"maxMs":%.4f,"refused":%d,"socketErrors":%d,"timeouts":%d,"usedMost":%d,"exhausted":%d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, latency.max / 1e3, errors.status,
    errors.connect + errors.read + errors.write, errors.timeout, usedMost, exhaustedAny))
end
