"""Many rows a person: players of baseball and their seasons, in two linked tables."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import polars as pl
from tools.gallery.work import EXAMPLES, OURS, REAL, Work, console, new_figure, save, table

import spinney as sp
from spinney.metrics import compare

_MOST_DRAWN = 25
_COUNTS = ("G", "AB", "H", "HR", "SB", "BB")
Both = tuple[pl.DataFrame, pl.DataFrame]


def measure(work: Work) -> dict[str, Any]:
    """Fit players and seasons, draw others, and compare seasons, careers, and how alike the seasons of a player are."""
    players = pl.read_parquet(work.data / "people" / "lahman_persons.parquet").rename({"person": "player"})
    players = players.with_columns(pl.col("birth", "height").cast(pl.Int64)).drop("usa", "heavy")
    seasons = pl.read_parquet(work.data / "people" / "lahman_rows.parquet").rename({"person": "player"})
    players.write_parquet(work.folder / "players.parquet")
    seasons.write_parquet(work.folder / "seasons.parquet")
    for name in ("players", "seasons", "baseball"):
        shutil.copy(EXAMPLES / f"{name}.toml", work.folder)
    work.run("check", "spinney check --tables baseball.toml")
    work.run("plan", f"spinney plan --tables baseball.toml --persons {players.height} --epsilon 1")
    work.run("fit", "spinney fit --tables baseball.toml --epsilon 1 --out baseball.spinney")
    work.run("sample", "spinney sample baseball.spinney --out synthetic/")
    work.run("ask", 'spinney ask baseball.spinney "mean(seasons.#) by players.bats" "count where seasons.# >= 10"')
    drawn = (
        pl.read_parquet(work.folder / "synthetic/players.parquet"),
        pl.read_parquet(work.folder / "synthetic/seasons.parquet"),
    )
    real = players, seasons
    _draw(real, drawn)
    columns = {
        name: kind for name, kind in sp.Schema.from_file(work.folder / "seasons.toml").items() if name != "player"
    }
    compared = compare(seasons.select(*columns), drawn[1].select(*columns), sp.Schema(columns))
    return {
        "players": [players.height, drawn[0].height],
        "seasons": [seasons.height, drawn[1].height],
        "most": int(seasons.group_by("player").len()["len"].max()),  # type: ignore[arg-type]
        "facts": {name: [fact(*real), fact(*drawn)] for name, fact in _FACTS.items()},
        "ks": {name: column.ks for name, column in compared.columns.items()},
    }


def _numbers(players: pl.DataFrame, seasons: pl.DataFrame) -> np.ndarray:
    """How many seasons each player has."""
    found = players.select("player").join(seasons.group_by("player").len(), on="player", how="left")
    return found["len"].fill_null(0).to_numpy()


def _alike(name: str, seasons: pl.DataFrame) -> float:
    """Rank correlation of a count in two successive seasons of one player."""
    ordered = seasons.sort("player", "year", "AB")
    pairs = ordered.with_columns(pl.col(name).shift(-1).over("player").alias("next")).drop_nulls("next")
    return float(pairs.select(pl.corr(name, "next", method="spearman")).item())


def _ratio(seasons: pl.DataFrame) -> float:
    """Hits for each time at bat, of seasons with a hundred or more."""
    many = seasons.filter(pl.col("AB") >= 100)
    return float(many["H"].sum() / many["AB"].sum())


def _impossible(seasons: pl.DataFrame) -> float:
    """Seasons with more hits than times at bat, or more home runs than hits."""
    return float(seasons.select(((pl.col("H") > pl.col("AB")) | (pl.col("HR") > pl.col("H"))).mean()).item())


def _career(seasons: pl.DataFrame) -> float:
    """The 99th percentile of home runs in a career."""
    return float(seasons.group_by("player").agg(pl.col("HR").sum())["HR"].quantile(0.99) or 0)


_FACTS = {
    "mean seasons of a player": lambda players, seasons: float(_numbers(players, seasons).mean()),
    "players of one season": lambda players, seasons: float((_numbers(players, seasons) == 1).mean()),
    "players of ten seasons or more": lambda players, seasons: float((_numbers(players, seasons) >= 10).mean()),
    "seasons in the National League": lambda _, seasons: float((seasons["league"] == "NL").mean()),
    "hits for a time at bat": lambda _, seasons: _ratio(seasons),
    "games in two successive seasons, rank correlation": lambda _, seasons: _alike("G", seasons),
    "home runs in two successive seasons, rank correlation": lambda _, seasons: _alike("HR", seasons),
    "home runs of a career, 99th percentile": lambda _, seasons: _career(seasons),
    "seasons with more hits than times at bat, or more home runs than hits": lambda _, seasons: _impossible(seasons),
}
_SHARES = {"players of one season", "players of ten seasons or more", "seasons in the National League"}
_SHARES |= {"seasons with more hits than times at bat, or more home runs than hits"}


def _draw(real: Both, drawn: Both) -> None:
    figure, (left, right) = new_figure(9.0, 3.2, ncols=2)
    for (players, seasons), colour, label, side in ((real, REAL, "real", -0.2), (drawn, OURS, "synthetic", 0.2)):
        numbers = _numbers(players, seasons)
        places = np.arange(_MOST_DRAWN + 1)
        heights = [(numbers == place).mean() for place in places]
        left.bar(places + side, heights, 0.4, color=colour, label=label)
        careers = seasons.group_by("player").agg(pl.col("H").sum())["H"].to_numpy()
        shares = np.linspace(0.3, 0.999, 200)
        right.plot(np.quantile(careers, shares), 1 - shares, color=colour, label=label, lw=1.6)
    left.set(xlabel="seasons of a player", ylabel="share of players")
    right.set(xlabel="hits in a career", ylabel="share of players with more", xscale="symlog", yscale="log")
    left.legend()
    save(figure, "players-careers.svg")


def blocks(record: dict[str, Any]) -> dict[str, str]:
    """What stands on the page, by the names of its places."""
    found, typed, seconds = record["figures"], record["transcripts"], record["seconds"]

    def shown(name: str, value: float) -> str:
        return f"{value:.1%}" if name in _SHARES else f"{value:.3g}" if value < 10 else f"{value:,.0f}"

    facts = [(name, *(shown(name, value) for value in values)) for name, values in found["facts"].items()]
    columns = [(name, f"{value:.3f}") for name, value in found["ks"].items()]
    return {
        "table": f"There are {found['players'][0]:,} players with {found['seasons'][0]:,} seasons; "
        f"one of them has {found['most']}.\n",
        "check": console(typed["check"]),
        "plan": console(typed["plan"]),
        "fit": console("\n\n".join([typed["fit"], typed["sample"]]))
        + f"\nThe fit took {seconds['fit']:.0f} seconds with all loading, and the draw gave {found['players'][1]:,} "
        f"players with {found['seasons'][1]:,} seasons.\n",
        "ask": console(typed["ask"]),
        "facts": table(("", "real", "synthetic"), facts),
        "columns": table(("column of seasons", "Kolmogorov-Smirnov distance"), columns),
    }
