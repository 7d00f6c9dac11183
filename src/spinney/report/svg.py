"""Figures and the theme of all drawings, and figures as SVG that lives inside a page.

matplotlib writes colours into `style` attributes. They become attributes that any rule of the page's style sheet
overrides, and every colour of ours becomes a class, so that light, dark and printed pages differ by their style
sheet alone, and a strict content security policy holds: the page needs no inline style. A drawing shares no ids
with its page. Texts stay texts; ids get a prefix.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from spinney.machine import load_optional
from spinney.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_SVG, _LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

# The colours that drawings use, by their role; style.css has another set for dark pages.
INK, QUIET, LINE = "#20302a", "#5b6b64", "#d7e0db"
BAR, STRONG, WARM = "#9dcdb4", "#1f6f4a", "#b45309"
PAPER, REAL, TARGET, SOFT = "#ffffff", "#6d28d9", "#b8860b", "#fff4d0"
_ROLES = {
    INK: "ink",
    QUIET: "quiet",
    LINE: "line",
    BAR: "bar",
    STRONG: "strong",
    WARM: "warm",
    PAPER: "paper",
    REAL: "real",
    TARGET: "target",
    SOFT: "soft",
    "#000000": "ink",
}
_KEPT = {
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset", "opacity", "fill-opacity",
    "stroke-opacity", "font-size", "font-weight", "text-anchor", "stroke-linecap", "stroke-linejoin",
}  # fmt: skip
_NUMBER = re.compile(r"-?\d+\.\d+")
_FEW = re.compile(r"\s+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches that makes room for its labels; MissingExtraError without matplotlib."""
    library = load_optional("matplotlib.figure", "a picture")
    figure: Figure = library.Figure(figsize=(width, height), layout="constrained")
    return figure


def canvas(
    width: float, height: float, *, left: float = 0, bottom: float = 0, right: float = 0, top: float = 0
) -> Axes:
    """Axes of a new figure, both in pixels, without a frame, ticks or a background; the margins are their labels'."""
    library = load_optional("matplotlib.figure", "a report", extra="report")
    figure = library.Figure(figsize=(width / 72, height / 72), dpi=72)
    figure.patch.set_visible(False)
    axes: Axes = figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height)
    )
    axes.patch.set_visible(False)
    axes.tick_params(length=0, labelsize=10, colors=QUIET)
    axes.spines[:].set_visible(False)
    return axes


def to_svg(axes: Axes, *, name: str, title: str, description: str) -> str:
    """The figure of some axes as an `svg` element, with a title and a description for those who do not see it.

    Args:
        axes: what is drawn.
        name: what the ids of the drawing begin with; unique in a page, letters, digits and dashes.
        title: what it shows, in a few words.
        description: what is to be seen, in a sentence or two.
    """
    root = ET.fromstring(_drawn(axes))  # noqa: S314  # of matplotlib's own making
    for unwanted in ("metadata", "defs/style"):
        for parent in root.iter():
            for child in [*parent.findall(f"{{{_SVG}}}{unwanted.rpartition('/')[2]}")]:
                parent.remove(child)
    _name_ids(root, name)
    for element in root.iter():
        _restyle(element)
    _flatten(root)
    root.attrib.pop("version", None)
    for size in ("width", "height"):
        root.set(size, root.get(size, "").removesuffix("pt"))
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        told = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{tag}"})
        told.text = printable(text)
        root.insert(place, told)
    ET.register_namespace("", _SVG)
    ET.register_namespace("xlink", _LINK)
    return ET.tostring(root, encoding="unicode")


def _drawn(axes: Axes) -> str:
    import matplotlib as mpl

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "spinney"}), warnings.catch_warnings():
        # Its fonts lack some scripts; texts stay texts, and the reader's fonts have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support .* natively")
        written = io.StringIO()
        figure: Any = axes.figure
        figure.savefig(written, format="svg", dpi=72, metadata={"Date": None})
    return written.getvalue()


def _name_ids(root: ET.Element, name: str) -> None:
    """Ids that something refers to get the prefix; all others go."""
    link = f"{{{_LINK}}}href"
    used = {element.get(link, "").removeprefix("#") for element in root.iter()}
    used |= {
        found for element in root.iter() for value in element.attrib.values() for found in _REFERENCE.findall(value)
    }
    short = {old: f"{name}-{number}" for number, old in enumerate(sorted(used - {""}))}
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in short:
            element.set("id", short[own])
        if element.get(link, "").startswith("#"):
            element.set(link, f"#{short[element.get(link, '')[1:]]}")
        for key, value in element.attrib.items():
            if "url(#" in value:
                element.set(key, _REFERENCE.sub(lambda found: f"url(#{short[found[1]]})", value))


def _restyle(element: ET.Element) -> None:
    """Styles become attributes, colours of ours classes, and numbers as long as a screen can show."""
    classes = []
    for part in element.attrib.pop("style", "").split(";"):
        key, _, value = (text.strip() for text in part.partition(":"))
        if key not in _KEPT:
            continue
        element.set(key, value.removesuffix("px") if key == "font-size" else value)
        if key in ("fill", "stroke") and value.lower() in _ROLES:
            classes.append(f"{key[0]}-{_ROLES[value.lower()]}")
    if classes:
        element.set("class", " ".join(classes))
    for key in ("d", "x", "y", "transform", "points"):
        if key in element.attrib:
            element.set(key, _FEW.sub(" ", _NUMBER.sub(_short, element.attrib[key])).strip())
    if element.get("transform", "").startswith("rotate(-0 "):
        del element.attrib["transform"]


def _short(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _flatten(element: ET.Element) -> None:
    """Leave out groups that say nothing, and blanks between elements."""
    tag = f"{{{_SVG}}}g"
    children: list[ET.Element] = []
    for child in element:
        _flatten(child)
        if child.tag == tag and not child.attrib:
            children += list(child)
        elif not (child.tag in (tag, f"{{{_SVG}}}defs") and not len(child)):
            children.append(child)
    element[:] = children
    if element.tag not in (f"{{{_SVG}}}text", f"{{{_SVG}}}tspan"):
        element.text = None
    element.tail = None
