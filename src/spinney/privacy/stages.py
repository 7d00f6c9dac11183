"""The stages of a release: the closed set of names that say what a charge or a part of one was for.

    rows        how many rows there are
    bounds      the bounds of one column
    values      the list of values of one column
    classes     how many rows have each value of a forest's target
    trees       the shapes of a forest's column trees
    one-way     counts of every leaf and category, column by column
    spikes      rows in the first cells of every leaf of a column tree, where round numbers lie
    regions     the shapes of a forest's trees of places
    places      counts of every region, place by place
    workload    the tables that the call states
    selection   which columns to look at together
    pairs       every column with the target
    cliques     the columns that were chosen, together
    prior       where tables of a prior are used in place of what was not counted
    analyses    sums over rows that the linear regressions named in the call follow from, one vector
    products    sums over rows of products of functions of two columns, one vector
    utility     how far what was released is from the table: distances of its tables of one and of two columns
    splits      which nodes of one joint tree split
    leaves      what is released of the leaves of a joint tree or a grid
    answer      one answer that was bought beside a release

Of a release of persons with many rows, besides those of its table of one row a person:

    row trees       the shapes of column trees, grown on one random row of each person
    row one-way     shares of every leaf and category of a column of rows
    row spikes      shares in the first cells of every leaf of a column tree of rows
    alikeness       how alike two random rows of a person are, column by column, one vector
    row selection   which columns of rows to look at, with which others
    row tables      the columns that were chosen, together

An event names its stage in a field, and so do the parts of a composed release. None claims no stage: a charge of one's
own, or an event of an old file whose note is not one that a fit wrote. Whoever asks for a stage does not get it then.
"""

from __future__ import annotations

from typing import Literal, get_args

StageName = Literal[
    "rows",
    "bounds",
    "values",
    "classes",
    "trees",
    "one-way",
    "spikes",
    "regions",
    "places",
    "workload",
    "selection",
    "pairs",
    "cliques",
    "prior",
    "analyses",
    "products",
    "utility",
    "splits",
    "leaves",
    "answer",
    "row trees",
    "row one-way",
    "row spikes",
    "alikeness",
    "row selection",
    "row tables",
]

STAGES: tuple[StageName, ...] = get_args(StageName)

# Stages of a release of persons with many rows: what they promise, they promise to persons.
PERSON_STAGES: tuple[StageName, ...] = (
    "row trees",
    "row one-way",
    "row spikes",
    "alikeness",
    "row selection",
    "row tables",
)
