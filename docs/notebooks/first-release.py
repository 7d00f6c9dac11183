"""The source of first-release.ipynb: from a private table to rows, pictures, a report and questions."""

# %% [markdown]
# # A first release
#
# This notebook goes from a private table to something that may be published: synthetic rows, pictures of what was
# released, a report for whoever signs it off, and answers with error bars.
# The table is a made-up town in which 20,000 people live who do not exist, so nothing here is secret.
#
# It needs polars, jinja2 and matplotlib: `pip install ".[polars,report]"` in a checkout.

# %%
import polars as pl

import spinney as sp
from spinney.demo_data import make_town

town = pl.DataFrame(make_town(), schema=["x", "y"])
town.head(3)

# %% [markdown]
# ## 1. State what is public
#
# A schema says what everybody may know: the names of the columns, their types and their bounds.
# The bounds come from public knowledge and not from the rows: the map is a square of ten kilometres.

# %%
schema = sp.Schema({"x": sp.Real(0, 10), "y": sp.Real(0, 10)})
schema

# %% [markdown]
# `sp.check` lists everything that is wrong with the schema or the table, before anything is spent.
# Its findings describe the private table, so they are for its holder alone.

# %%
sp.check(town, schema)

# %% [markdown]
# ## 2. Spend epsilon, once
#
# `fit` is the only step that reads the rows, and the only one that costs privacy.
# What follows uses its result alone, and may be repeated as often as you like.

# %%
model = sp.KDTreeSynthesizer(epsilon="1").fit(town, schema)
model

# %% [markdown]
# ## 3. Draw rows
#
# Polars in, polars out.
# A seed repeats the same rows; the noise of the release has none.

# %%
rows = model.sample(20_000, seed=7)
rows.head(3)

# %% [markdown]
# ## 4. Look at it
#
# `sp.plot` draws what was released.
# The old town, the station quarter, the four villages and parts of the ring road can be seen.
# What is finer than the leaves cannot: smaller leaves would hold more noise than people.

# %%
sp.plot.map(model)

# %% [markdown]
# One column by itself, with an interval for each bar:

# %%
sp.plot.distribution(model, "x")

# %% [markdown]
# ## 5. Ask questions
#
# Synthetic rows give a number without saying how far off it may be.
# The release itself answers with an interval, and says what kind of statement it is.
# How many people live in the station quarter?

# %%
quarter = {"x": (4.6, 7.1), "y": (2.2, 3.7)}
model.release_.count(quarter)

# %%
model.release_.table({"x": [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]}, simultaneous=True)

# %% [markdown]
# ## 6. A report for whoever signs it off
#
# One page says what is promised to whom, what was measured and how well it is known.
# It uses only what was released, so it may be published with the rows.

# %%
model.report("report.html", title="A made-up town", purpose="An example")

# %% [markdown]
# ## 7. Save the release
#
# The file holds released numbers only, and may be published too.
# Whoever loads it can draw rows and ask questions, without the private table.

# %%
model.save("town.spinney")
same = sp.load("town.spinney")
same.sample(3, seed=1)

# %% [markdown]
# The card says what was charged for what.
# Read on in [a mixed table](mixed-table.ipynb), with categories, dates, a target and a ledger.

# %%
print(same.card)
