"""What the logging layer is made of, and what makes the records of a whole process readable.

lines                   words that others chose, so that they cannot forge a line
record                  the records of calls, made for less than the standard library's
correlation             whose call a record belongs to, also in your own log calls
formats                 one line a record, as JSON or for people
configure               a root handler in a line
"""
