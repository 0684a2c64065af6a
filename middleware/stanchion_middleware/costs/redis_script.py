"""What `RedisCosts` has Redis do, as Lua: each verb is one script, and so one step.

Amounts are texts of whole numbers throughout. Lua's own numbers are floats, which cannot hold
what 64 bits can; so Redis adds, and what it added is compared as text.
"""

from __future__ import annotations

from typing import Final

_COMMON: Final = """
local prefix, id = ARGV[1], ARGV[2]

local function above(one, other)
  if string.sub(one, 1, 1) == '-' then return false end
  return #one > #other or (#one == #other and one > other)
end

local function add(hash, field, amount)
  local done = redis.pcall('HINCRBY', hash, field, amount)
  if type(done) == 'table' and done.err then
    redis.call('HSET', hash, field, '9223372036854775807')
  end
end

local function minus(amount)
  return amount == '0' and '0' or '-' .. amount
end

local function free(hold)
  local held = redis.call('HGETALL', prefix .. 'hold:' .. hold)
  for place = 1, #held, 2 do
    local line = prefix .. 'line:' .. held[place]
    if redis.call('EXISTS', line) == 1 then
      redis.call('HINCRBY', line, 'used', minus(held[place + 1]))
      if redis.call('HGET', line, 'used') == '0' then redis.call('DEL', line) end
    end
  end
  redis.call('DEL', prefix .. 'hold:' .. hold)
  redis.call('ZREM', prefix .. 'holds', hold)
end
"""

RESERVE: Final = (
    _COMMON
    + """
local now, expires_at, batch, kept = ARGV[3], ARGV[4], ARGV[5], ARGV[6]
for _, due in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'holds', '-inf', now,
                                'LIMIT', 0, batch)) do
  free(due)
end

if redis.call('EXISTS', prefix .. 'hold:' .. id) == 1 then return {} end

local refused = {}
for place = 7, #ARGV, 4 do
  local key, amount, limit = ARGV[place], ARGV[place + 1], ARGV[place + 2]
  local line = prefix .. 'line:' .. key
  local asked = amount == '0' and '1' or amount
  local done = redis.pcall('HINCRBY', line, 'used', asked)
  if type(done) == 'table' and done.err then
    refused[#refused + 1] = key
  else
    if above(redis.call('HGET', line, 'used'), limit) then refused[#refused + 1] = key end
    redis.call('HINCRBY', line, 'used', '-' .. asked)
    if redis.call('HGET', line, 'used') == '0' then redis.call('DEL', line) end
  end
end

if #refused > 0 then return refused end

for place = 7, #ARGV, 4 do
  local key, amount, ttl = ARGV[place], ARGV[place + 1], ARGV[place + 3]
  if amount ~= '0' then
    local line = prefix .. 'line:' .. key
    redis.call('HINCRBY', line, 'used', amount)
    if ttl ~= '0' then redis.call('EXPIRE', line, ttl) end
    redis.call('HSET', prefix .. 'hold:' .. id, key, amount)
    redis.call('ZADD', prefix .. 'holds', expires_at, id)
    redis.call('EXPIRE', prefix .. 'hold:' .. id, kept)
  end
end
return {}
"""
)

SETTLE: Final = (
    _COMMON
    + """
local once, lines, kept = ARGV[3], tonumber(ARGV[4]), ARGV[5]
local most, units = tonumber(ARGV[6]), tonumber(ARGV[7])
-- A client that lost the answer asks again; what was charged must not be charged twice.
if not redis.call('SET', prefix .. 'bill:' .. id, '1', 'NX', 'EX', once) then return {} end

free(id)
local totals, place = {}, 8
for _ = 1, lines do
  local line, amount, ttl = prefix .. 'line:' .. ARGV[place], ARGV[place + 1], ARGV[place + 2]
  add(line, 'used', amount)
  add(line, 'spent', amount)
  if ttl ~= '0' then redis.call('EXPIRE', line, ttl) end
  totals[#totals + 1] = redis.call('HGET', line, 'spent')
  place = place + 3
end

while place <= #ARGV do
  local rows, field, amount = prefix .. 'day:' .. ARGV[place], ARGV[place + 1], ARGV[place + 3]
  if redis.call('HEXISTS', rows, 'a' .. field) == 0 and redis.call('HLEN', rows) >= 2 * most then
    field = ARGV[place + 2]
  end
  -- Those that are not told apart have so many units, and no more.
  if redis.call('HEXISTS', rows, 'a' .. field) == 1
      or redis.call('HLEN', rows) < 2 * (most + units) then
    add(rows, 'a' .. field, amount)
    add(rows, 'n' .. field, '1')
    redis.call('EXPIRE', rows, kept)
  end
  place = place + 4
end
return totals
"""
)

RELEASE: Final = _COMMON + "free(id)\nreturn {}\n"
