"""Savepoints for people and for programs: tables and JSON."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console
from rich.table import Table

from millrace.graph.compile import JobGraph
from millrace.runtime.mapping import Mapped
from millrace.runtime.savepoints import describe_states
from millrace.state.savepoint import Snapshot

__all__ = ["diff_content", "inspection", "show_diff", "show_inspection"]


def inspection(snapshot: Snapshot) -> dict[str, Any]:
    """Everything worth knowing of a snapshot, as plain data."""
    manifest = snapshot.manifest
    states = describe_states(snapshot)
    return {
        "path": snapshot.storage.location,
        "kind": "savepoint" if snapshot.is_savepoint else "checkpoint",
        "job": manifest.job_name,
        "epoch": manifest.epoch,
        "created": manifest.created,
        "format": manifest.version,
        "versions": manifest.versions,
        "bytes": sum(part.size for parts in manifest.parts.values() for part in parts),
        "operators": [
            {
                "uid": uid,
                "name": entry.name,
                "parallelism": entry.parallelism,
                "max_parallelism": entry.max_parallelism,
                "states": [
                    {"name": s.name, "kind": s.kind, "type": s.type, "entries": s.entries, "bytes": s.bytes}
                    for s in states.get(uid, ())
                ],
                "positions": manifest.positions.get(uid, {}),
            }
            for uid, entry in manifest.operators.items()
        ],
    }


def show_inspection(content: dict[str, Any], console: Console) -> None:
    """The same as a table."""
    created = f", written {content['created']}" if content["created"] else ""
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    console.print(f"{content['kind']} of {content['job']!r}, epoch {content['epoch']}{created}", markup=False)
    made_by = f", {versions}" if versions else ""
    console.print(f"{content['path']}: {content['bytes']:,} bytes, format {content['format']}{made_by}", markup=False)
    table = Table()
    for title, justify in [
        ("uid", "left"),
        ("operator", "left"),
        ("parallelism", "right"),
        ("state", "left"),
        ("kind", "left"),
        ("type", "left"),
        ("entries", "right"),
        ("bytes", "right"),
        ("position", "left"),
    ]:
        table.add_column(title, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for operator in content["operators"]:
        width = f"{operator['parallelism']} of {operator['max_parallelism']}"
        position = "\n".join(f"{split}: {json.dumps(at)}" for split, at in operator["positions"].items())
        first = [operator["uid"], operator["name"], width]
        for state in operator["states"] or [None]:
            cells = ["", "", "", "", ""]
            if state is not None:
                numbers = [f"{state['entries']:,}", f"{state['bytes']:,}"]
                cells = [state["name"], state["kind"], state["type"], *numbers]
            table.add_row(*first, *cells, position)
            first, position = ["", "", ""], ""
    console.print(table, markup=False)


def diff_content(snapshot: Snapshot, job: JobGraph, compared: Mapped) -> dict[str, Any]:
    """What becomes of each operator of a snapshot and of a program, as plain data."""
    names = {uid: entry.name for uid, entry in snapshot.manifest.operators.items()}
    names |= {node.uid: node.name for node in job.nodes}
    widths = {node.uid: node.parallelism for node in job.nodes}
    groups = [
        ("maps", compared.mapped),
        ("new", compared.new),
        ("dropped", compared.dropped),
        ("gone, without state", compared.without_state),
    ]
    return {
        "operators": [
            {
                "uid": uid,
                "name": names[uid],
                "outcome": outcome,
                "states": [f"{s.name} ({s.kind}, {s.entries:,})" for s in compared.states.get(uid, ())],
                "position": uid in snapshot.manifest.positions,
                "parallelism": [
                    snapshot.manifest.operators[uid].parallelism if uid in snapshot.manifest.operators else None,
                    widths.get(uid),
                ],
            }
            for outcome, uids in groups
            for uid in uids
        ],
        "would_drop": bool(compared.dropped),
    }


def show_diff(content: dict[str, Any], console: Console) -> None:
    """The same as a table."""
    table = Table()
    for title in ("", "uid", "operator", "state", "parallelism"):
        table.add_column(title, overflow="fold")
    for operator in content["operators"]:
        before, after = operator["parallelism"]
        width = " -> ".join(str(number) for number in dict.fromkeys([before, after]) if number is not None)
        states = [*operator["states"], *(["source position"] if operator["position"] else [])]
        table.add_row(operator["outcome"], operator["uid"], operator["name"], "\n".join(states), width)
    console.print(table, markup=False)
    if content["would_drop"]:
        console.print(
            "Starting the program from here would drop state: it is refused unless --allow-non-restored-state is given."
        )
