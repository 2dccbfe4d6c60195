"""Speed, measured as ratios in one run. Nothing here is asserted."""
