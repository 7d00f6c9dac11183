"""The source of mixed-table.ipynb: a table of many kinds of columns, with a target, a plan and a ledger."""

# %% [markdown]
# # A mixed table with a target
#
# Most tables have amounts, dates, categories and gaps beside each other, and somebody wants to study one column by the
# others.
# This notebook plans what a budget buys, fits a forest, and looks at the result from all sides.
# The patients are made up.
#
# It needs polars, jinja2 and matplotlib: `pip install ".[polars,report]"` in a checkout.

# %%
import numpy as np
import polars as pl

import spinney as sp

rng = np.random.default_rng(0)  # stands for your private table
n = 8_000
age = rng.integers(18, 96, n)
smokes = rng.random(n) < 0.35 - age / 400
stay = rng.geometric(np.where(age > 65, 0.15, 0.3))
patients = pl.DataFrame(
    {
        "age": age,
        "region": rng.choice(["north", "east", "south", "west"], n, p=[0.4, 0.3, 0.2, 0.1]),
        "smokes": smokes,
        "admitted": np.datetime64("2024-01-01") + rng.integers(0, 366, n),
        "nights": np.minimum(stay, 90),
        "cost": np.round(rng.lognormal(6.5, 0.5, n) * stay, 2),
        "returned": rng.random(n) < 0.05 + 0.2 * smokes + 0.2 * (age > 65),
    }
)
patients.head(3)

# %% [markdown]
# ## 1. A schema, with reasons
#
# Every bound and every list is public knowledge, and a comment says where it comes from.
# Generous bounds cost a forest next to nothing.

# %%
schema = sp.Schema(
    {
        "age": sp.Integer(0, 120),  # nobody is older
        "region": sp.Category(["north", "east", "south", "west"]),  # the regions of the country
        "smokes": sp.Boolean(),
        "admitted": sp.Date("2024-01-01", "2024-12-31"),  # the year that the table is about
        "nights": sp.Integer(0, 365),  # a year at most
        "cost": sp.Real(0, 1_000_000, multiple_of=0.01),  # more than any tariff allows, in cents
        "returned": sp.Boolean(),  # within thirty days: what is to be studied
    }
)
sp.check(patients, schema)

# %% [markdown]
# ## 2. What would a budget buy?
#
# A plan needs the schema and a number of rows, and no table.
# It reads nothing and spends nothing, so you may make as many as you like.

# %%
sp.plan(schema, 8_000, ["0.2", 1, 5], target="returned")

# %% [markdown]
# The last line says how large a group has to be before it can be told from none.
# Epsilon 1 will do here; its plan in full:

# %%
sp.plan(schema, 8_000, 1, target="returned")

# %% [markdown]
# ## 3. Fit, on account
#
# All releases about the same people add up, so they share a ledger with a limit.
# A charge is made before noise is drawn, and one that exceeds the limit is refused.

# %%
ledger = sp.Ledger(limit="1.5", delta="1e-5")
model = sp.ForestSynthesizer(epsilon="1", target="returned").fit(patients, schema, ledger=ledger)
model

# %%
ledger

# %%
try:
    sp.ForestSynthesizer(epsilon="1").fit(patients, schema, ledger=ledger)
except sp.SpinneyError as error:
    print(error)

# %% [markdown]
# ## 4. Look at it

# %%
model.release_.explain()

# %%
sp.plot.distributions(model, ["age", "region", "nights", "cost"])[0].figure

# %% [markdown]
# Which columns depend on each other, and which were measured together:

# %%
sp.plot.pairs(model)

# %%
sp.plot.pair(model, "age", "returned")

# %% [markdown]
# ## 5. Answers with error bars
#
# The interval knows of the noise, and the statement says how far it can be trusted.

# %%
release = model.release_
release.proportion({"returned": True}, given={"smokes": True})

# %%
release.table({"smokes": [False, True], "returned": [False, True]})

# %%
release.mean("nights", where={"age": (66, 120)})

# %% [markdown]
# ## 6. Rows, and rows under conditions
#
# `where` draws rows of one kind only; `balance` says how often a value is to appear.

# %%
rows = model.sample(8_000, seed=7)
rows.head(3)

# %%
old = model.sample(1_000, where={"age": (66, 120)}, balance={"returned": 0.5}, seed=7)
old.group_by("returned").agg(pl.len(), pl.col("age").min(), pl.col("nights").mean().round(1)).sort("returned")

# %% [markdown]
# ## 7. How good is it?
#
# Figures that may be published have noise of their own, and are paid for at the fit (`utility_share`).
#
# **What follows is not private.**
# A comparison with the real table is computed from it without noise.
# It is for the holder alone: do not publish it, and do not choose parameters by it.
# Here the table is made up, so comparing is harmless.

# %%
from spinney import metrics

metrics.compare(patients, rows, release.schema)

# %%
sp.plot.distribution(model, "nights", against=patients)
