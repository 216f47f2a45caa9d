"""A program explained: text for terminals, a picture for notebooks."""

from __future__ import annotations

from millrace.graph.compile import JobGraph

__all__ = ["Explanation"]


class Explanation(str):
    """The text of an explanation; shown as it is at a prompt, and as a picture in a notebook.

    >>> Explanation("Level 0")
    Level 0
    """

    svg: str = ""

    @classmethod
    def of(cls, job: JobGraph) -> Explanation:
        """Explain a compiled program."""
        from millrace.graph.render import explain_svg, explain_text

        explanation = cls(explain_text(job))
        explanation.svg = explain_svg(job)
        return explanation

    def __repr__(self) -> str:
        return str(self)

    def _repr_svg_(self) -> str | None:
        return self.svg or None
