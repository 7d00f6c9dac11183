"""Our rows before NIST's own scorer, `sdnist` 2.4, beside figures that NIST publishes of other systems.

`python -m benchmarks.nist --data FOLDER [--out FOLDER] [--releases N] [--only NAME ...]`, or `make nist DATA=FOLDER`.
FOLDER is NIST's `diverse_communities_data_excerpts`. The scorer runs in an environment of its own, `.venv-nist`, which
is made on first use from `requirements.lock` beside this file, with Python 3.8 to 3.11; it sees files of rows only.

    excerpt.py     the rows, and what is public about their columns
    settings.py    what is released: columns, epsilon, quality
    rules.py       NIST's consistency rules as rules of a schema, where the file is there; without it none are stated
    scorer.py      the environment, and how the scorer is called
    score.py       the scorer's side: runs inside that environment
    published.json figures of NIST's sample reports, which were made with sdnist 2.5
"""
