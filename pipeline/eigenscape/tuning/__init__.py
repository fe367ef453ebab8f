"""`eigenscape tune`: the best of many jobs on a scene, found by blocked cross-validation within a budget."""
