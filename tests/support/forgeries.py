"""Release files as a forger would change them: the promise lowered with consistency, above noise that stays as it is.

A forger has the whole source. Whatever stands on the card is changed together with all that is compared with it there;
archives are written as ours are. What a forgery leaves as it was is what the file's own numbers say.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from spinney.privacy.budget import Unit
from spinney.privacy.composition import composed_delta
from spinney.privacy.mechanisms import UNITS, part_from_dict, vector_variance

Members = dict[str, Any]
Forgery = Callable[[Members], None]


def members_of(path: Path) -> Members:
    """All members of a file, the card as data."""
    with zipfile.ZipFile(path) as archive:
        members: Members = {name: archive.read(name) for name in archive.namelist()}
    return members | {"card.json": json.loads(members["card.json"])}


def forged(path: Path, change: Forgery, to: Path) -> Path:
    """A copy of a release file with its members changed, all checksums right."""
    members = members_of(path)
    change(members)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            data = json.dumps(content).encode() if name == "card.json" else content
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    to.write_bytes(buffer.getvalue())
    return to


def card(members: Members) -> dict[str, Any]:
    found: dict[str, Any] = members["card.json"]["card"]
    return found


def charges(members: Members) -> list[dict[str, Any]]:
    return [event for event in card(members)["events"] if "epsilon" in event]


def settle(members: Members) -> None:
    """Make all that is computed from events what the events give, and the call one that asked for it."""
    stated = card(members)
    for name in ("epsilon", "delta"):
        stated[name] = str(sum((Fraction(event.get(name, 0)) for event in charges(members)), Fraction(0)))
    stated["parameters"]["epsilon"] = stated["epsilon"]
    if Fraction(stated["delta"]):
        stated["parameters"]["delta"] = stated["delta"]
    stated["cautions"], stated["groups"] = [], []


def lower_tree(members: Members, by: int = 4) -> None:
    """A tree or a grid: every charge a part of what it was, noise in the plan and in the leaves as much wider."""
    for event in charges(members):
        event["epsilon"] = str(Fraction(event["epsilon"]) / by)
        if "rate" in event:
            event["rate"] = str(Fraction(event["rate"]) / by)
    plan = card(members)["plan"]
    for name in ("count_epsilon", "decision_epsilon"):
        if name in plan:
            plan[name] = str(Fraction(plan[name]) / by)
    for name in ("count_noise_scale", "decision_noise_scale"):
        if name in plan:
            plan[name] *= by
    if "rate" in members["card.json"]:
        members["card.json"]["rate"] = str(Fraction(members["card.json"]["rate"]) / by)
    settle(members)


def lower_parts(members: Members, by: int = 4, *, only: tuple[str, ...] = ()) -> None:
    """A composed charge: parts with wider noise, in the charge and in the plan, and the least epsilon they cost."""
    (event,) = [event for event in charges(members) if event["event"] == "ComposedRelease"]
    plan, unit = card(members)["plan"], Unit.parse(card(members)["unit"])
    for part in event["parts"]:
        if only and part["stage"] not in only:
            continue
        widen(part, plan, unit, by)
    parts = [part_from_dict(part) for part in event["parts"]]
    low, high = Fraction(0), Fraction(event["epsilon"])
    for _ in range(30):
        middle = (low + high) / 2
        is_enough = composed_delta(parts, middle, unit) <= Fraction(event["delta"])
        low, high = (low, middle) if is_enough else (middle, high)
    event["epsilon"] = str(Fraction(math.ceil(high * 10**6), 10**6))
    settle(members)


def widen(part: dict[str, Any], plan: dict[str, Any], unit: Unit, by: int) -> None:
    """One part with noise `by` times as wide, and its entry in the plan."""
    stage = part["stage"]
    if "variance" in part:
        part["variance"] = str(Fraction(part["variance"]) * by**2)
        plan[f"{stage} noise"] = round(math.sqrt(Fraction(part["variance"])), 3)
    if part["part"] == "WeightedTables":
        part["mean_squared"] = str(Fraction(part["mean_squared"]) / by**2)
        moved = vector_variance(Fraction(part["mean_squared"]), unit.factor * UNITS**2)
        plan[f"{stage} noise"] = round(math.sqrt(moved) / UNITS, 3)
    if part["part"] == "GaussianVector":
        part["mean_squared"] = str(Fraction(part["mean_squared"]) / by**2)
        plan[f"{stage} mean squared"] = float(f"{float(Fraction(part['mean_squared'])):.9g}")
    if part["part"] == "TreeShapes":
        part["rate"] = str(Fraction(part["rate"]) / by)
        scale = {"trees": "decision", "regions": "regions", "row trees": "row decision"}[stage]
        plan[f"{scale} noise scale"] = round(float(1 / Fraction(part["rate"])), 3)
    if part["part"] == "Selections":
        part["epsilon"] = str(Fraction(part["epsilon"]) / by)
        ends = {"selection": "", "prior": " for the prior", "row selection": " among rows"}[stage]
        plan[f"epsilon of a choice{ends}"] = round(float(Fraction(part["epsilon"])), 6)


def lower_pure_forest(members: Members, by: int = 4) -> None:
    """A pure forest: every charge a part of what it was, and the plan with it."""
    plan = card(members)["plan"]
    for event in charges(members):
        event["epsilon"] = str(Fraction(event["epsilon"]) / by)
        stage = event.get("stage")
        if "rate" in event:
            event["rate"] = str(Fraction(event["rate"]) / by)
            plan["decision noise scale"] = round(float(1 / Fraction(event["rate"])), 3)
            event["decay"] = None
        elif f"{stage} noise" in plan:
            plan[f"{stage} noise"] = round(math.sqrt(2) * event["sensitivity"] / float(Fraction(event["epsilon"])), 3)
        elif stage == "selection":
            plan["epsilon of a choice"] = round(float(Fraction(event["epsilon"]) / event["times"]), 6)
    settle(members)
