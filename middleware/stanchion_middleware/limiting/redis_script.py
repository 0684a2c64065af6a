"""What Redis runs for each call: the windows of `window`, for all rates of a call at once."""

from __future__ import annotations

from typing import Final

CODES: Final = {"fixed-window": "f", "sliding-window-counter": "s", "moving-window": "m"}
"""What the script calls the strategies."""

# One string or list for each key. Times are whole milliseconds of Redis' own clock, so that
# processes with other clocks agree. The string is `start previous count`; an entry of the list is
# `time:before:until`, the units that were counted before and until then.
SCRIPT: Final = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local weight = tonumber(ARGV[1])
local text = function(number) return string.format('%.0f', number) end

local function read_counts(key, kind, window)
  local stored = redis.call('GET', key)
  local start, previous, count = now, 0, 0
  if stored then
    local a, b, c = string.match(stored, '^(%d+) (%d+) (%d+)$')
    start, previous, count = tonumber(a), tonumber(b), tonumber(c)
  end
  if now < start then
    start = now
  elseif kind == 's' and now >= start + window and now < start + 2 * window then
    start, previous, count = start + window, count, 0
  elseif now >= start + window then
    start, previous, count = now, 0, 0
  end
  return start, previous, count
end

local function look_at_counts(key, kind, amount, window)
  local start, previous, count = read_counts(key, kind, window)
  local left = start + window - now
  local room = amount - count - weight
  local wait = 0
  if weight > amount then
    wait = -1
  elseif room < 0 and kind == 'f' then
    wait = left
  elseif room < 0 then
    wait = left + window * (1 - (amount - weight) / count)
  elseif previous * left > room * window then
    wait = left - room * window / previous
  end
  local remaining = amount - count - previous * left / window
  local add = function()
    local life = kind == 's' and left + window or left
    local value = text(start) .. ' ' .. text(previous) .. ' ' .. text(count + weight)
    redis.call('SET', key, value, 'PX', text(math.max(1, life)))
  end
  return wait, math.floor(remaining), left, add
end

local function read_entry(entry)
  local a, b, c = string.match(entry, '^(%d+):(%d+):(%d+)$')
  return tonumber(a), tonumber(b), tonumber(c)
end

local function look_at_entries(key, amount, window)
  local newest = redis.call('LINDEX', key, -1)
  local before, till, left = 0, 0, 0
  if newest then
    local at
    at, before, till = read_entry(newest)
    if at > now then
      local _, first = read_entry(redis.call('LINDEX', key, 0))
      redis.call('DEL', key)
      redis.call('RPUSH', key, text(now) .. ':0:' .. text(till - first))
      redis.call('PEXPIRE', key, text(window))
      till = till - first
    end
    before = till
    local oldest = redis.call('LINDEX', key, 0)
    while oldest do
      local came, first = read_entry(oldest)
      if came > now - window then
        before, left = first, came + window - now
        break
      end
      redis.call('LPOP', key)
      oldest = redis.call('LINDEX', key, 0)
    end
    if not oldest then before, till = 0, 0 end
  end
  local surplus = till - before + weight - amount
  local wait = 0
  if weight > amount then
    wait = -1
  elseif surplus > 0 then
    for _, entry in ipairs(redis.call('LRANGE', key, 0, surplus - 1)) do
      local came, _, last = read_entry(entry)
      wait = came + window - now
      if last >= before + surplus then break end
    end
  end
  local add = function()
    redis.call('RPUSH', key, text(now) .. ':' .. text(till) .. ':' .. text(till + weight))
    redis.call('PEXPIRE', key, text(window))
  end
  return wait, amount - till + before, left, add
end

local adds, standings, refused = {}, {}, false
for i, key in ipairs(KEYS) do
  local kind, amount = ARGV[3 * i - 1], tonumber(ARGV[3 * i])
  local window = ARGV[3 * i + 1] * 1000
  local wait, remaining, left, add
  if kind == 'm' then
    wait, remaining, left, add = look_at_entries(key, amount, window)
  else
    wait, remaining, left, add = look_at_counts(key, kind, amount, window)
  end
  refused = refused or wait ~= 0
  adds[i] = add
  standings[3 * i - 2] = math.max(0, remaining)
  standings[3 * i - 1] = math.ceil(left)
  standings[3 * i] = math.ceil(wait)
end
if refused then return standings end
for _, add in ipairs(adds) do add() end
return {}
"""
