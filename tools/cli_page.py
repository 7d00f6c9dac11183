"""Makes the pages that follow from the code: `docs/reference/cli.md` and the README's picture.

python tools/cli_page.py            write both
python tools/cli_page.py --check    exit 1 if cli.md is not what the commands say now
"""

from __future__ import annotations

import sys
from inspect import cleandoc
from pathlib import Path

import click

from spinney.cli.app import app
from spinney.cli.command import COULD_NOT_TELL, FAILED, INTERRUPTED, TRACEBACK_VARIABLE, WRONG_CALL, Verb

DOCS = Path(__file__).parents[1] / "docs"
REFERENCE = DOCS / "reference" / "cli.md"
PICTURE = DOCS / "images" / "partition.png"

_INTRODUCTION = f"""\
# The `spinney` command

<!-- Written by tools/cli_page.py from the commands themselves. Change their help, then run `make docs`. -->

`spinney` and `python -m spinney` are the same.
`spinney VERB --help` shows what everybody needs on one screen.
Where there is more, `spinney VERB --help-all` shows the text of this page.

Tables are CSV (`.csv`, and `.csv.gz` to read) or Parquet (`.parquet`, `.pq`); `-` is CSV on standard input or output.
A folder of such files or a quoted pattern (`'trips/*.parquet'`) can be read as one table: [files](../how-to/files.md).
A CSV needs a header row, commas and UTF-8, or options that describe its format: [CSV](../how-to/files.md#csv).
Columns are read as the types that the schema states.
Outputs are written whole or not at all, and an existing file is overwritten only with `--force`.

| exit status | meaning |
|---|---|
| 0 | done |
| {FAILED} | the run failed: the table does not fit its schema, the budget is too small, or a file cannot be read |
| {WRONG_CALL} | the call is wrong: a bad option, parameter or schema, a missing input, or an output that exists |
| {COULD_NOT_TELL} | an audit had too little time to tell anything |
| {INTERRUPTED} | interrupted; no file is left half written, and whole parts of a sample stay for the next run |

Messages go to standard error as `error: ...`, or with `--json` as `{{"error": "..."}}`.
They name columns and lines, never values of the table.
Set `{TRACEBACK_VARIABLE}=1` to see tracebacks, which may quote private values.
"""


def reference_page() -> str:
    """The reference of all verbs as Markdown."""
    return "\n".join([_INTRODUCTION, *(_section(verb) for verb in app.commands.values())])


def _section(verb: click.Command, within: str = "") -> str:
    """A verb, and below a group of verbs those that are not hidden."""
    arguments = [str(p.name).upper() for p in verb.params if isinstance(p, click.Argument)]
    options = [p for p in verb.params if isinstance(p, click.Option) and p.expose_value]
    name = f"spinney {within}{verb.name}"
    verbs = [each for each in verb.commands.values() if not each.hidden] if isinstance(verb, click.Group) else []
    usage = " ".join([name, "VERB" if verbs else "", *arguments, "[OPTIONS]"]).replace("  ", " ")
    examples = verb.examples if isinstance(verb, Verb) else ()
    lines = [f"##{'#' if within else ''} `{name}`\n", f"    {usage}\n", f"{cleandoc(verb.help or '')}\n"]
    if options:
        lines += ["| option | meaning |", "|---|---|", *(_row(option) for option in options), ""]
    lines += ["```sh", *examples, "```", ""]
    return "\n".join([*lines, *(_section(each, f"{within}{verb.name} ") for each in verbs)])


def _row(option: click.Option) -> str:
    value = ""
    if isinstance(option.type, click.Choice):
        value = " " + "\\|".join(str(choice) for choice in option.type.choices)
    elif not option.is_flag:
        value = f" {option.metavar}"
    notes = ["Required."] if option.required else []
    if option.show_default:
        notes.append(f"Default: {option.default}.")
    name = " / ".join([option.opts[0], *option.secondary_opts])
    return f"| `{name}{value}` | {' '.join([option.help or '', *notes])} |"


def draw_picture(path: Path) -> None:
    """The made-up town, its partition and synthetic rows, with seeded noise so that the picture can be made again."""
    import numpy as np

    from spinney import KDTreeSynthesizer, UnsafeSeededEntropy
    from spinney.demo_data import make_town, town_schema
    from spinney.report.pictures import comparison_figure, save_figure

    town = make_town()
    model = KDTreeSynthesizer(epsilon="1").fit(town, town_schema(), entropy=UnsafeSeededEntropy(7))
    synthetic = np.asarray(model.sample(len(town), seed=7))
    figure = comparison_figure(model.release_, town, synthetic)
    path.parent.mkdir(exist_ok=True)
    save_figure(figure, path, overwrite=True, dpi=95)


def main() -> None:
    """Write the pages, or check them."""
    page = reference_page()
    if sys.argv[1:] == ["--check"]:
        if not REFERENCE.exists() or REFERENCE.read_text(encoding="utf-8") != page:
            sys.exit("docs/reference/cli.md is not what the commands say; run `make docs`")
        return
    REFERENCE.parent.mkdir(exist_ok=True)
    REFERENCE.write_text(page, encoding="utf-8")
    draw_picture(PICTURE)


if __name__ == "__main__":
    main()
