"""The documentation as a static site: `python -m tools.website`, or `make site`."""
