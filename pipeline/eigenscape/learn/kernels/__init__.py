"""Scores, decisions, linear systems and cuts on arrays in memory."""
