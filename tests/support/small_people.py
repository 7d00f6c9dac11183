"""Small tables of persons with rows, in memory and as files, for tests of every door to a model of persons."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import spinney as sp

N_CUSTOMERS = 600

CUSTOMERS = sp.Schema(
    {
        "id": sp.Identifier(prefix="C-"),
        "age": sp.Integer(0, 99),
        "region": sp.Category(["north", "west"]),
        "churn": sp.Boolean(),
    }
)
SALES_COLUMNS = {
    "customer": sp.Identifier(),
    "day": sp.Integer(0, 365),
    "amount": sp.Real(0, 500),
    "kind": sp.Category(["food", "toys"]),
}
SALES = sp.Schema(SALES_COLUMNS)
FLAT = sp.Schema(SALES_COLUMNS, person="customer", most_rows=20, order="day")
TABLES = sp.Tables(
    {"customers": CUSTOMERS, "sales": SALES}, links=[sp.Link("sales.customer", "customers.id", most=20, order="day")]
)


def shop(n_customers: int = N_CUSTOMERS) -> dict[str, pd.DataFrame]:
    """Customers and what they bought: none to some dozen sales each, of kinds that go by customer and by region."""
    rng = np.random.default_rng(3)
    region = rng.choice(["north", "west"], n_customers, p=[0.7, 0.3])
    keys = np.array([f"SECRET{number}" for number in range(n_customers)])
    customers = pd.DataFrame(
        {
            "id": keys,
            "age": rng.integers(18, 90, n_customers),
            "region": region,
            "churn": rng.random(n_customers) < 0.3,
        }
    )
    taste = rng.random(n_customers)
    counts = rng.poisson(np.where(region == "west", 5, 2))
    owner = np.repeat(np.arange(n_customers), counts)
    sales = pd.DataFrame(
        {
            "customer": keys[owner],
            "day": rng.integers(0, 366, len(owner)),
            "amount": rng.gamma(2, 20, len(owner)).round(2),
            "kind": np.where(rng.random(len(owner)) < taste[owner], "food", "toys"),
        }
    )
    return {"customers": customers, "sales": sales.sample(frac=1, random_state=1, ignore_index=True)}


def write_shop(folder: Path, tables: dict[str, pd.DataFrame] | None = None) -> Path:
    """The tables as files, their schemas, and the file that names them; customers are CSV, sales Parquet."""
    tables = shop() if tables is None else tables
    tables["customers"].to_csv(folder / "customers.csv", index=False)
    tables["sales"].to_parquet(folder / "sales.parquet", index=False)
    CUSTOMERS.to_file(folder / "customers.toml")
    SALES.to_file(folder / "sales.toml")
    FLAT.to_file(folder / "flat.toml")
    (folder / "shop.toml").write_text(
        '[tables.customers]\nschema = "customers.toml"\nfile = "customers.csv"\n'
        '[tables.sales]\nschema = "sales.toml"\nfile = "sales.parquet"\n'
        '[[links]]\nchild = "sales.customer"\nparent = "customers.id"\nmost = 20\norder = "day"\n'
    )
    return folder / "shop.toml"


@cache
def linked_model() -> sp.LinkedSynthesizer:
    """Linked tables, fitted once."""
    return sp.LinkedSynthesizer("20", target="customers.churn").fit(shop(), TABLES)


@cache
def flat_model() -> sp.LinkedSynthesizer:
    """One table of rows, fitted once."""
    return sp.LinkedSynthesizer("5").fit(shop()["sales"], FLAT)
