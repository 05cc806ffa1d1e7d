"""Drawings: the parts of pages that are put together here rather than in a template, as there are thousands of them, or as
they are pictures. Whatever others wrote is escaped where it enters.
"""
