-- Sends the requests of a plan, which server.ts writes, and prints the figures as one line of JSON.
-- A request is a list of pieces in turn: a text, then the name of a maker below, then a text.

local ffi = require("ffi")
ffi.cdef [[
  typedef struct { long seconds; long microseconds; } bench_time;
  int gettimeofday(bench_time *time, void *zone);
]]

local plan = dofile(os.getenv("BENCH_PLAN"))
local threads = {}

-- The threads are shared out among the instances.
function setup(thread)
  thread.addr = wrk.lookup("127.0.0.1", plan.ports[#threads % #plan.ports + 1])[1]
  thread:set("threadIndex", #threads)
  threads[#threads + 1] = thread
end

local clock = ffi.new("bench_time")
local random = math.random

-- A request's place in the sequence of all requests decides its number and its token, so no number
-- is taken twice, and a number always meets the same token.
local makers = {
  number = function(place) return string.format("%d", plan.first + place) end,
  anywhere = function(place)
    return string.format("%d", plan.first + (place * plan.stride) % plan.plants)
  end,
  token = function(place) return plan.tokens[place % #plan.tokens + 1] end,
  -- A UUID that starts with the time.
  key = function()
    ffi.C.gettimeofday(clock, nil)
    local ms = tonumber(clock.seconds) * 1000 + math.floor(tonumber(clock.microseconds) / 1000)
    return string.format("%08x-%04x-7%03x-%04x-%06x%06x", math.floor(ms / 65536), ms % 65536,
      random(0, 0xfff), random(0x8000, 0xbfff), random(0, 0xffffff), random(0, 0xffffff))
  end,
}

local function makeSource(pieces)
  local filled = {}
  for index = 1, #pieces, 2 do filled[index] = pieces[index] end
  return function(place)
    for index = 2, #pieces, 2 do filled[index] = makers[pieces[index]](place) end
    return table.concat(filled)
  end
end

function init()
  math.randomseed(os.time() + plan.offset + threadIndex)
  local sources = {}
  for index, pieces in ipairs(plan.requests) do sources[index] = makeSource(pieces) end
  -- Threads start at different places of the cycle, so that the mix is even from the start.
  local position = math.floor(#sources / plan.threads * threadIndex)
  local place = plan.offset + threadIndex
  request = function()
    position = position % #sources + 1
    local text = sources[position](place)
    place = place + plan.threads
    used = place
    return text
  end
end

function done(summary, latency)
  local usedMost = 0
  for _, thread in ipairs(threads) do usedMost = math.max(usedMost, thread:get("used") or 0) end
  local errors = summary.errors
  io.write(string.format(
    '\nFIGURES {"responses":%d,"seconds":%.6f,"p99Ms":%.4f,"failures":%d,"used":%d}\n',
    summary.requests - errors.status, summary.duration / 1e6, latency:percentile(99) / 1e3,
    errors.status + errors.connect + errors.read + errors.write + errors.timeout, usedMost))
end
