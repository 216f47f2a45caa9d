"""A compiled job as a picture: levels from left to right, one box an operator."""

from __future__ import annotations

from html import escape
from typing import Final

from millrace.graph.compile import JobEdge, JobGraph, JobNode
from millrace.graph.node import NodeKind

__all__ = ["explain_svg"]

_BOX_WIDTH: Final = 190
_BOX_HEIGHT: Final = 46
_GAP_X: Final = 150
_GAP_Y: Final = 22
_MARGIN: Final = 24
_TITLE: Final = 28
_COLOURS: Final = {NodeKind.SOURCE: "#d9ead3", NodeKind.OPERATOR: "#dce6f5", NodeKind.SINK: "#fce5cd"}


def explain_svg(job: JobGraph) -> str:
    """The graph as an SVG document, for notebooks and documents."""
    places = _places(job)
    width = max(x for x, _ in places.values()) + _BOX_WIDTH + _MARGIN
    height = max(y for _, y in places.values()) + _BOX_HEIGHT + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="12">',
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    parts += [_level_title(job, level, _column_x(level)) for level in range(job.depth + 1)]
    parts += [_arrow(edge, places[edge.source.id], places[edge.target.id]) for edge in job.edges]
    parts += [_box(node, *places[node.id]) for node in job.nodes]
    return "\n".join([*parts, "</svg>"])


def _places(job: JobGraph) -> dict[int, tuple[int, int]]:
    """Each level is a column; within it, operators stand below each other in the order of the program."""
    rows: dict[int, int] = {}
    places = {}
    for node in job.nodes:
        row = rows.get(node.level, 0)
        rows[node.level] = row + 1
        places[node.id] = (_column_x(node.level), _MARGIN + _TITLE + row * (_BOX_HEIGHT + _GAP_Y))
    return places


def _column_x(level: int) -> int:
    return _MARGIN + level * (_BOX_WIDTH + _GAP_X)


def _level_title(job: JobGraph, level: int, x: int) -> str:
    tasks = sum(stage.tasks for stage in job.stages_of(level))
    return f'<text x="{x}" y="{_MARGIN + 10}" fill="#777">level {level}, {tasks} task{"" if tasks == 1 else "s"}</text>'


def _box(node: JobNode, x: int, y: int) -> str:
    name = node.name if len(node.name) <= 25 else node.name[:24] + "…"
    return (
        f"<g><title>{escape(node.name)} (uid {escape(node.uid)})</title>"
        f'<rect x="{x}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="6" fill="{_COLOURS[node.node.kind]}" '
        f'stroke="#556"/><text x="{x + 10}" y="{y + 19}">{escape(name)}</text>'
        f'<text x="{x + 10}" y="{y + 36}" fill="#667" font-size="10">parallelism {node.parallelism}, '
        f"{escape(node.node.lane)} lane</text></g>"
    )


def _arrow(edge: JobEdge, start: tuple[int, int], end: tuple[int, int]) -> str:
    if edge.source.level == edge.target.level:
        # Within a level: from the bottom of one box to the top of a lower one, to the side of the boxes between them.
        x, top, bottom = start[0] + 30, start[1] + _BOX_HEIGHT, end[1]
        bend = 0 if bottom - top <= _GAP_Y else 46
        path = f"M{x},{top} C{x - bend},{top + 20} {x - bend},{bottom - 20} {x},{bottom}"
        label = ""
    else:
        x1, y1 = start[0] + _BOX_WIDTH, start[1] + _BOX_HEIGHT // 2
        x2, y2 = end[0], end[1] + _BOX_HEIGHT // 2
        middle = (x1 + x2) // 2
        path = f"M{x1},{y1} C{middle},{y1} {middle},{y2} {x2},{y2}"
        text = edge.partitioner.ship_strategy + (f" · {edge.tag}" if edge.tag else "")
        label = f'<text x="{x2 - 12}" y="{y2 - 6}" text-anchor="end" fill="#555" font-size="10">{escape(text)}</text>'
    return f'<path d="{path}" fill="none" stroke="#555" marker-end="url(#arrow)"/>{label}'
