"""What hurt people elsewhere, told as stories of duly; docs/scenarios.md says which story stands where."""
