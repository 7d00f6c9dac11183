"""`spinney sample`: synthetic rows from a release. Costs no epsilon, however often."""

from __future__ import annotations

import json

import click

from spinney.cli.verb import FILE, Verb, check_output, force_option, json_option, warn_of_brands

# "tilted" is of releases of bins, "fitted" of releases of leaf moments.
PLACEMENTS = ("tilted", "fitted", "uniform", "centre")


@click.command(
    cls=Verb,
    examples=(
        "spinney sample people.spinney --rows 10000 --out synthetic.parquet",
        "spinney sample people.spinney --rows 10000 --seed 7 --out synthetic.csv",
        "spinney sample people.spinney --rows 5 --out -",
    ),
)
@click.argument("release", type=FILE)
@click.option(
    "--rows",
    type=int,
    metavar="N",
    help="How many rows; by default as many as the private table had where that is public, otherwise the noisy total.",
)
@click.option("--out", required=True, metavar="FILE", help="A .csv or .parquet file, or - for CSV on standard output.")
@click.option(
    "--seed", type=int, metavar="N", help="Draw the same rows again. The noise of the release is not affected."
)
@click.option(
    "--placement",
    type=click.Choice(PLACEMENTS),
    help="Where rows lie in their leaf; by default as the release was fitted.",
)
@force_option
@json_option
def sample(
    release: str, rows: int | None, out: str, seed: int | None, placement: str | None, force: bool, as_json: bool
) -> None:
    """Draw synthetic rows from RELEASE.

    The output appears whole or not at all.
    """
    n_rows = sample_file(release, out, n_rows=rows, seed=seed, placement=placement, force=force)
    if out != "-":
        wrote = f"wrote {n_rows:,} synthetic rows to {out}"
        click.echo(json.dumps({"out": out, "rows": n_rows}) if as_json else wrote)


def sample_file(
    release: str,
    out: str,
    *,
    n_rows: int | None = None,
    seed: int | None = None,
    placement: str | None = None,
    force: bool = False,
) -> int:
    """Draw rows into a file; returns how many."""
    from spinney.cli.tables import check_table_name, write_table
    from spinney.release.storage import load

    if out != "-":
        check_table_name(out, "--out")
        check_output(out, force=force, inputs=[release])
    loaded = load(release)
    warn_of_brands(loaded.card)
    table = loaded.sample(n_rows, seed=seed, placement=placement, frame="pyarrow")
    write_table(table, out, overwrite=force)
    return int(table.num_rows)
