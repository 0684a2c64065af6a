"""What a Google docstring says of a function and of its parameters."""

from __future__ import annotations

from docstring_parser import DocstringStyle, ParseError, parse

_SUMMARY = "-"
"""Stands in for a summary: the parser refuses a docstring that begins with a section."""


def read_docstring(text: str | None) -> tuple[str | None, dict[str, str]]:
    """Read a docstring, cleaned of its indentation as `inspect.getdoc` gives it.

    A docstring whose sections cannot be read is a description as a whole.

    Returns:
        The text before the sections, or None where there is none, and `{parameter: text}`.
    """
    if not text:
        return None, {}

    try:
        parsed = parse(f"{_SUMMARY}\n\n{text}", DocstringStyle.GOOGLE)
    except ParseError:
        return text.strip(), {}

    documented = {
        parameter.arg_name: " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
    }
    description = (parsed.description or "").removeprefix(_SUMMARY).strip()
    return description or None, documented
