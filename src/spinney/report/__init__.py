"""Reports and pictures of releases: PUBLIC, except where a caller hands over rows or figures of the real table."""
