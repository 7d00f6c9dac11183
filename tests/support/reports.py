"""Reports of golden releases of every kind, made once, and a reader of pages that knows what HTML has to keep to."""

from __future__ import annotations

from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import spinney as sp
from spinney.report.page import ReportContents, report_contents, report_html

GOLDEN = Path(__file__).parents[1] / "golden"
# One release of each kind, and of each way in which a report may differ.
KINDS = (
    "v3-moments-mixed",
    "v3-tree-cube",
    "v3-paper-wide",
    "v3-grid-branded",
    "v3-forest-mixed",
    "v3-forest-places",
    "v3-people-linked",
    "v3-people-flat",
    "v3-points",
)
VOID = {"meta", "link", "br", "img", "input", "hr", "base", "path", "rect", "use", "image", "circle", "line"}


@cache
def golden(name: str) -> sp.Release:
    return sp.load(GOLDEN / f"{name}.spinney")


@cache
def contents_of(name: str) -> ReportContents:
    return report_contents(golden(name), title=name)


@cache
def page_of(name: str) -> str:
    return report_html(contents_of(name))


class Page(HTMLParser):
    """Everything that tests ask of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []  # tag, name, value
        self.ids: Counter[str] = Counter()
        self.headings: list[int] = []
        self.data: list[str] = []  # values of <data>
        self.texts: list[str] = []
        self.title = ""
        self.svgs: list[dict[str, Any]] = []
        self.tables: list[dict[str, Any]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.tags[tag] += 1
        self.attributes += [(tag, name, value) for name, value in given.items()]
        if "id" in given:
            self.ids[given["id"]] += 1
        if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.headings.append(int(tag[1]))
        if tag == "data":
            self.data.append(given["value"])
        if tag == "svg":
            self.svgs.append(given | {"inside": Counter()})
        elif "svg" in self._open:
            self.svgs[-1]["inside"][tag] += 1
        if tag == "table":
            self.tables.append({"captions": 0, "heads": [], "cells": 0})
        if tag == "caption":
            self.tables[-1]["captions"] += 1
        if tag == "th":
            self.tables[-1]["heads"].append(given.get("scope"))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self._open, f"</{tag}> closes nothing"
        assert self._open[-1] == tag, f"</{tag}> closes <{self._open[-1]}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["title"] and "svg" not in self._open:
            self.title += data
        elif "style" not in self._open:
            self.texts.append(data)

    def close(self) -> None:
        super().close()
        assert not self._open, f"left open: {self._open}"

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())
