"""What a docstring says of a tool and of its parameters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from stanchion import Call
from stanchion.schema import Signature


def properties_of(function):
    return Signature("tool", function).input_schema["properties"]


class TestDescriptions:
    def test_google_docstring(self):
        """The text before the sections describes the tool, `Args:` its parameters, on one line."""

        def tool(order: int, note: str = ""):
            """Refund an order.

            Cannot be undone.

            Args:
                order (int): The order's
                    number.
                note: Why.

            Returns:
                Nothing.

            Raises:
                ValueError: Never.
            """

        signature = Signature("tool", tool)
        assert signature.description == "Refund an order.\n\nCannot be undone."
        properties = signature.input_schema["properties"]
        assert properties["order"]["description"] == "The order's number."
        assert properties["note"]["description"] == "Why."

    def test_no_trailing_newline(self):
        """A summary before a section is that line, without the line's end."""

        def tool(x: int):
            """Add.

            Args:
                x: One.
            """

        assert Signature("tool", tool).description == "Add."

    def test_sections_alone_are_no_description(self):
        """A docstring of sections alone documents parameters and describes nothing."""

        def tool(x: int):
            """
            Args:
                x: One.
            """

        signature = Signature("tool", tool)
        assert signature.description is None
        assert signature.input_schema["properties"]["x"]["description"] == "One."

    def test_field_description_wins(self):
        """What `Field` says of a parameter stands before what the docstring says."""

        def tool(x: Annotated[int, Field(description="Field.")]):
            """Do.

            Args:
                x: Docstring.
            """

        assert properties_of(tool)["x"]["description"] == "Field."

    def test_unreadable_sections(self):
        """A docstring that is not Google's is a description as a whole."""

        def tool(x: int):
            """Do.

            Args:
                no colon here
            """

        assert Signature("tool", tool).description == "Do.\n\nArgs:\n    no colon here"

    def test_undocumented(self):
        """Without a docstring there is no description."""

        def tool(): ...

        assert Signature("tool", tool).description is None

    def test_strangers_in_the_docstring(self):
        """A name in `Args:` that is no parameter is passed over, as is the injected call."""

        def tool(x: int, call: Call):
            """Do.

            Args:
                x: One.
                call: Injected.
                y: Gone.
            """

        assert list(properties_of(tool)) == ["x"]
