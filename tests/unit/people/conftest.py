"""Small tables of persons, and models fitted to them once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import spinney as sp

PERSONS = {"id": sp.Identifier(), "region": sp.Category(["west", "east"]), "age": sp.Integer(0, 120)}
ROWS = {
    "customer": sp.Identifier(),
    "day": sp.Integer(0, 364),
    "kind": sp.Category(["a", "b", "c"]),
    "amount": sp.Real(0, 500),
}
N_PERSONS = 500


class Shop:
    """Customers and their transactions, and how they are fitted."""

    def __init__(self):
        rng = np.random.default_rng(0)
        n_rows = np.minimum(rng.poisson(3, N_PERSONS), 20)
        who, taste = np.repeat(np.arange(N_PERSONS), n_rows), rng.integers(0, 3, N_PERSONS)
        kind = np.where(rng.random(len(who)) < 0.7, taste[who], rng.integers(0, 3, len(who)))
        self.customers = pd.DataFrame(
            {
                "id": np.arange(N_PERSONS),
                "region": np.array(["west", "east"])[(taste > 0).astype(int)],
                "age": rng.integers(18, 90, N_PERSONS),
            }
        )
        self.transactions = pd.DataFrame(
            {
                "customer": who,
                "day": rng.integers(0, 365, len(who)),
                "kind": np.array(["a", "b", "c"])[kind],
                "amount": rng.gamma(2, 20, len(who)).round(1),
            }
        ).sort_values(["customer", "day"], ignore_index=True)

    @property
    def frames(self):
        return {"customers": self.customers, "transactions": self.transactions}

    def with_rows(self, transactions):
        return self.frames | {"transactions": transactions}

    @staticmethod
    def tables(*, persons=None, rows=None, rules=(), person_rules=(), **options):
        return sp.Tables(
            {
                "customers": sp.Schema(PERSONS | (persons or {}), rules=list(person_rules)),
                "transactions": sp.Schema(ROWS | (rows or {}), rules=list(rules)),
            },
            links=[sp.Link("transactions.customer", "customers.id", **({"most": 20, "order": "day"} | options))],
        )

    @staticmethod
    def flat(**options):
        columns = options.pop("columns", ROWS)
        return sp.Schema(columns, person="customer", **({"most_rows": 20, "order": "day"} | options))

    @staticmethod
    def fit(frames, stated, **options):
        ledger = options.pop("ledger", None)
        model = sp.LinkedSynthesizer(**({"epsilon": 8, "delta": "1e-5"} | options))
        return model.fit(frames, stated, entropy=sp.UnsafeSeededEntropy(3), ledger=ledger)


@pytest.fixture(scope="session")
def shop():
    return Shop()


@pytest.fixture(scope="session")
def fitted(shop):
    """Customers and transactions in order."""
    return shop.fit(shop.frames, shop.tables())
