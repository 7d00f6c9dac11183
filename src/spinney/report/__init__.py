"""Pictures of releases. Sees released numbers only, except where a caller hands over rows to draw beside them."""
