"""The audit trail: what is recorded of each call, how it is sealed, where it goes, how it is read.

canonical                 JSON in the one form that hashes are taken of
entry                     one line of a trail, sealed to the line before
sink                      where entries go: the base class
sql, sql_*                a sink in a database
http, otlp, otlp_records  sinks at the other end of an HTTP connection
sender, dispatch, receiver, spool  what those share: order, retries, disk
cloud_events, ocsf, ocsf_*  entries in forms that others read
"""
