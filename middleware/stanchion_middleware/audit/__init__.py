"""The audit trail: what is recorded of each call, how it is sealed, where it goes, how it is read.

canonical                 JSON in the one form that hashes are taken of
entry                     one line of a trail, sealed to the line before
sink                      where entries go: the base class
"""
