"""The report: a page with tables and pictures, made of one JSON file and of nothing else."""
