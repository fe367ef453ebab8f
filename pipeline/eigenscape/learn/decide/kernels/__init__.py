"""Decisions, scores, intervals and areas on arrays in memory."""
