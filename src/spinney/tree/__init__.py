"""The trees and grids of the paper: from true counts to noisy bins. SENSITIVE up to the bins."""
