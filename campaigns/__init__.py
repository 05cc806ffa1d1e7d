"""Long runs: what the tests sample, over everything there is. `make histories` runs them; each goes on where it stopped."""
