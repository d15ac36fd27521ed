-- Sends the requests of a plan, which wrk.ts writes, and prints the figures as one line of JSON.
-- A request is a list of pieces in turn: a text, then the name of a maker below, then a text.

local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long seconds; long microseconds; } bench_time;
  int gettimeofday(bench_time *time, void *zone);
]]

local plan
local tokens = {}
local threadCount = 0
local threads = {}

function setup(thread)
  thread:set("threadIndex", threadCount)
  threadCount = threadCount + 1
  threads[threadCount] = thread
end

local clock = ffi.new("bench_time")
local random = math.random

-- The request's place in the sequence of all requests of all threads and instances decides its
-- number and its token, so no number is taken twice, and a number always meets the same token.
local makers = {
  number = function(place)
    if place >= plan.numbers then
      exhausted = 1
      wrk.thread:stop()
    end
    return string.format("%d", plan.first + place)
  end,
  anywhere = function(place)
    return string.format("%d", plan.first + (place * plan.stride) % plan.plants)
  end,
  token = function(place) return tokens[place % #tokens + 1] end,
  key7 = function()
    ffi.C.gettimeofday(clock, nil)
    local ms = tonumber(clock.seconds) * 1000 + math.floor(tonumber(clock.microseconds) / 1000)
    return string.format("%08x-%04x-7%03x-%04x-%06x%06x", math.floor(ms / 65536), ms % 65536,
      random(0, 0xfff), random(0x8000, 0xbfff), random(0, 0xffffff), random(0, 0xffffff))
  end,
  key4 = function()
    return string.format("%04x%04x-%04x-4%03x-%04x-%06x%06x", random(0, 0xffff),
      random(0, 0xffff), random(0, 0xffff), random(0, 0xfff), random(0x8000, 0xbfff),
      random(0, 0xffffff), random(0, 0xffffff))
  end,
}

local function makeSource(pieces)
  if #pieces == 1 then
    return function() return pieces[1] end
  end
  local filled = {}
  for index = 1, #pieces, 2 do filled[index] = pieces[index] end
  return function(place)
    for index = 2, #pieces, 2 do filled[index] = makers[pieces[index]](place) end
    return table.concat(filled)
  end
end

function init(args)
  plan = dofile(args[1])
  math.randomseed(plan.seed + threadIndex)
  for line in io.lines(plan.tokensPath) do tokens[#tokens + 1] = line end
  exhausted = 0
  used = 0
  local cycle = {}
  for _, entry in ipairs(plan.requests) do
    local source = makeSource(entry.pieces)
    for _ = 1, entry.weight do cycle[#cycle + 1] = source end
  end
  -- Threads start at different places of the cycle, so that the mix is even from the start.
  local position = math.floor(#cycle / plan.threads * threadIndex)
  local place = plan.offset + threadIndex * plan.instances
  local step = plan.threads * plan.instances
  request = function()
    position = position % #cycle + 1
    local text = cycle[position](place)
    place = place + step
    used = place
    return text
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
    '\nFIGURES {"requests":%d,"durationSeconds":%.6f,"p50Ms":%.4f,"p99Ms":%.4f,"refused":%d,' ..
    '"socketErrors":%d,"used":%d,"exhausted":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout, usedMost, exhaustedAny))
end
