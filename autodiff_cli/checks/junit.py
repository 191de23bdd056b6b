"""Results as JUnit XML, with the `file` and `line` attributes that CI systems show.

Invariant: the text is well-formed XML 1.0 whatever programs and messages contain.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

from ..errors import Diagnostic
from .model import ERROR, FAILED, SKIPPED, XFAILED, FileResult

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(results: list[FileResult], text_of: Callable[[Diagnostic], str]) -> bytes:
    """The document; `text_of` renders a diagnostic."""
    items = [item for result in results for item in result.items]
    suites = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        name="autodiff",
        tests=str(len(items)),
        failures=str(sum(item.status == FAILED for item in items)),
        errors=str(sum(item.status == ERROR for item in items)),
        skipped=str(sum(item.status in (SKIPPED, XFAILED) for item in items)),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for item in items:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_legal(item.file),
            name=_legal(item.label),
            file=_legal(item.file),
            line=str(item.line),
            time=f"{item.seconds:.3f}",
        )
        if item.status in (SKIPPED, XFAILED):
            ElementTree.SubElement(case, "skipped", message=_legal(item.note))
        if item.diagnostic is None:
            continue
        rendered = _legal(text_of(item.diagnostic))
        if item.bad:
            tag = "failure" if item.status == FAILED else "error"
            found = ElementTree.SubElement(
                case, tag, message=_legal(item.diagnostic.message), type=item.diagnostic.code
            )
            found.text = rendered
        else:
            ElementTree.SubElement(case, "system-out").text = rendered
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("\ufffd", text)
