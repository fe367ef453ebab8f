"""Labels spread over a graph: linear systems and their solvers on arrays in memory."""
