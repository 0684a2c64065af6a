"""Redaction: a copy of a JSON value without its secrets, for logs, audit and traces.

strategy                what is written in place of a secret
secret_keys             which keys are secret, in objects and in running text
form                    a form that secrets have in running text, and where it is looked for
secret_forms            the forms of credentials
numbers                 numbers that can be checked: cards, bank accounts, social security
personal_forms          the forms of personal data
places                  JSON pointers, with wildcards
copying                 the walk over a value
redactor                all of it together
"""

from __future__ import annotations

from .personal_forms import PERSONAL_DATA as PERSONAL_DATA
from .redactor import Redactor as Redactor
from .strategy import Strategy as Strategy
