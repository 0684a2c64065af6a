"""What the rate limit layer stands on: rates, policies, keys of callers, windows and storages.

rate, policy          what is admitted, as it is written
caller                who is counted, as bounded hashes
plan, policy_set      what is counted of one call, compiled
window                the mathematics of the three strategies
storage               where counts are kept: the base class
memory, redis         the two that are here; redis_script is what Redis runs
refusal               what a caller over its limit is told
"""
