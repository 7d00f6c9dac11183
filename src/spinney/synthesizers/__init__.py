"""Front doors in the scikit-learn manner: `__init__` stores, `fit` validates and spends, results end in `_`."""
