"""Space, counts, and the mechanisms that turn exact counts into noisy bins."""
