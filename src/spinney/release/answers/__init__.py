"""Questions to a release and their answers: what all kinds of release share."""
