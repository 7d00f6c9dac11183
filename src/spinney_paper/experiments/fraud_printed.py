"""What the paper prints about card fraud: areas under the ROC, kept to be shown beside ours. Epsilon -> area."""

from __future__ import annotations

_EPSILONS = ("10", "1", "0.1", "0.01")

# Table "Data dependent algorithm", 20 repetitions.
_TREE_ROWS = {
    "Logistic Regression": (0.705, 0.545, 0.481, 0.527),
    "Gaussian Naive Bayes": (0.562, 0.563, 0.479, 0.547),
    "Bernoulli Naive Bayes": (0.495, 0.564, 0.497, 0.521),
    "Linear SVM": (0.758, 0.524, 0.508, 0.546),
    "Decision Tree": (0.676, 0.611, 0.519, 0.532),
    "LDA": (0.518, 0.580, 0.480, 0.542),
    "Ada Boost": (0.632, 0.572, 0.485, 0.521),
    "Bagging": (0.673, 0.579, 0.518, 0.508),
    "Random Forest": (0.663, 0.594, 0.530, 0.543),
    "GBM": (0.631, 0.582, 0.521, 0.523),
    "Multi-layer perceptron": (0.625, 0.553, 0.486, 0.525),
    "XGBoost": (0.588, 0.598, 0.527, 0.478),
}
PRINTED_TREE = {name: dict(zip(_EPSILONS, areas, strict=True)) for name, areas in _TREE_ROWS.items()}
PRINTED_TREE_AVERAGE = dict(zip(_EPSILONS, (0.627, 0.572, 0.503, 0.526), strict=True))

# Table "DP-MERF", 5 repetitions, averages alone.
PRINTED_MERF = {"10": 0.880, "1": 0.792, "0.1": 0.564}
