"""`cosim test PATH…`."""

from __future__ import annotations

import argparse
import html
import json
import os
import sys
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cosim.case import find_cases
from cosim.cli import EXIT_FINDINGS, EXIT_OK
from cosim.command.arguments import print_findings, tolerance
from cosim.diagnostic import CosimError, UsageError
from cosim.regression import Outcome, Settings, run_cases, update_case


def run(options: argparse.Namespace) -> int:
    """Run every case, print a table, write reports; 1 if a case does not pass."""
    cases = find_cases(options.paths, new=options.update)
    settings = Settings(
        level=options.level,
        tolerance=tolerance(options),
        stop=options.stop_time,
        step=options.step_size,
        record=tuple(options.output_variable),
        program_path=tuple(options.program_path),
    )
    width = max(len(c.name) for c in cases)

    def show(outcome: Outcome) -> None:
        if not options.json:
            print(_line(outcome, width), flush=True)

    jobs = options.jobs if options.jobs is not None else min(len(cases), os.cpu_count() or 1)
    outcomes = run_cases(cases, settings, jobs=jobs, on_outcome=show)
    if options.junit:
        _write(options.junit, junit(outcomes))
    if options.html:
        _write(options.html, as_html(outcomes))
    for outcome in outcomes:
        if not outcome.passed:
            print(f"\n{outcome.case.subject}\n{outcome.explain(options.rows)}", file=sys.stderr)
    if options.json:
        json.dump([o.as_dict() for o in outcomes], sys.stdout, indent=2)
        print()
    else:
        counts = Counter(o.status for o in outcomes)
        print(", ".join(f"{counts[s]} {s}" for s in ("passed", "failed", "new", "error") if counts[s]))
    if options.update:
        return _update(outcomes, options.reason)
    return EXIT_OK if all(o.passed for o in outcomes) else EXIT_FINDINGS


def _line(outcome: Outcome, width: int) -> str:
    found = outcome.comparison
    text = f"{outcome.status:<6}  {outcome.case.name:<{width}}  {outcome.seconds:6.2f} s"
    if found is None:
        return text
    worst = f", worst {found.worst[0].worst_ratio:.2g} of its tolerance" if found.worst and outcome.passed else ""
    text += f"  {found.level}: {sum(c.passed for c in found.columns)} of {len(found.columns)} columns{worst}"
    return f"{text}; {'; '.join(outcome.notes)}" if outcome.notes and outcome.passed else text


def _update(outcomes: Sequence[Outcome], reason: str) -> int:
    """Write the references of what differs, after the differences were shown."""
    failed = False
    if not reason.strip():
        raise UsageError.of(
            "update-reason-missing",
            "a reference changes only with a reason: nothing was written",
            hint='--update --reason "why the new trace is right"',
        )
    for outcome in outcomes:
        try:
            written = update_case(outcome, reason)
        except UsageError as error:
            failed = True
            print_findings(error.diagnostics)
            continue
        except CosimError:
            # What stopped it was printed with the other differences.
            failed = True
            print(f"not updated: {outcome.case.subject} did not run", file=sys.stderr)
            continue
        if written:
            print(f"updated: {', '.join(map(str, written))}", file=sys.stderr)
    return EXIT_FINDINGS if failed else EXIT_OK


def junit(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as JUnit XML, as CI servers read it."""
    counts = Counter(o.status for o in outcomes)
    totals = {
        "tests": str(len(outcomes)),
        "failures": str(counts["failed"]),
        "errors": str(counts["error"] + counts["new"]),
        "time": f"{sum(o.seconds for o in outcomes):.3f}",
    }
    root = ElementTree.Element("testsuites", totals)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "cosim", **totals})
    for outcome in outcomes:
        place = ".".join(outcome.case.subject.parent.parts) or "cosim"
        attributes = {"classname": place, "name": outcome.case.name, "time": f"{outcome.seconds:.3f}"}
        row = ElementTree.SubElement(suite, "testcase", attributes)
        if outcome.passed:
            continue
        text = _xml_text(outcome.explain())
        first = text.strip().splitlines()[0] if text.strip() else outcome.status
        kind = "failure" if outcome.status == "failed" else "error"
        ElementTree.SubElement(row, kind, {"message": first.strip()}).text = text
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def as_html(outcomes: Sequence[Outcome]) -> str:
    """The outcomes as a page of its own: a table, and what is wrong with each case that does not pass."""
    counts = Counter(o.status for o in outcomes)
    verdict = ", ".join(f"{n} {status}" for status, n in sorted(counts.items(), key=lambda row: row[0] != "passed"))
    rows, details = [], []
    for number, outcome in enumerate(outcomes):
        found = outcome.comparison
        name = html.escape(str(outcome.case.subject))
        columns = f"{sum(c.passed for c in found.columns)} of {len(found.columns)}" if found else "–"
        link = name if outcome.passed else f'<a href="#case{number}">{name}</a>'
        level = found.level.value if found else "–"
        cells = (outcome.status, link, level, columns, html.escape(outcome.origin), f"{outcome.seconds:.2f}")
        rows.append(f'<tr class="{outcome.status}">' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        if not outcome.passed:
            details.append(f'<h2 id="case{number}">{name}</h2><pre>{html.escape(_xml_text(outcome.explain()))}</pre>')
    head = "".join(f"<th>{word}</th>" for word in ("", "case", "level", "columns that agree", "first differs", "s"))
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>cosim test: {verdict}</title><style>{_STYLE}'
        f"</style><h1>cosim test: {verdict}</h1><table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
        f"</table>{''.join(details)}</html>\n"
    )


_STYLE = (
    "body{font-family:sans-serif;margin:2em}td,th{text-align:left;padding:.2em 1em .2em 0}"
    ".passed td:first-child{color:#176f2c}tr:not(.passed) td:first-child{color:#b00020;font-weight:bold}"
)


def _xml_text(text: str) -> str:
    """Without the control characters that XML 1.0 cannot hold: an FMU may print anything."""
    return "".join(c if c in "\n\t" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError.of("output-not-writable", f"{path} cannot be written: {error.strerror}") from None
