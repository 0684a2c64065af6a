"""The audit trail: what is recorded of each call, how it is sealed, where it goes, how it is read.

canonical                 JSON in the one form that hashes are taken of
entry                     one line of a trail, sealed to the line before
record, capture           what is said of a call; record_schema is its published form
layer                     what takes note of calls: journal, keys
writer                    who makes and writes entries: queue, sealer, delivery, anchor
sink                      where entries go: the base class; memory
json_lines                into a file: append_file, periodic_sync, file_lock, file_end, part_names
trail                     the lines of a trail, to read: read_entry
reader, facts, selection, follow  its entries, as they are searched and shown
commands                  stanchion audit verify, query, export, tail, erase
subject_keys, file_subject_keys, sealed_body  what tells of a subject, so that it can be erased
verify                    what is wrong with it: order, chain_check, chain_report, finding
sql, sql_*                a sink in a database
http, otlp, otlp_records  sinks at the other end of an HTTP connection
sender, dispatch, receiver, spool  what those share: order, retries, disk
cloud_events, ocsf, ocsf_*  entries in forms that others read
"""
