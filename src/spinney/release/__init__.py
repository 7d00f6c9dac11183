"""From noisy bins to weighted points and rows. Sees nothing private, so everything here is free."""
