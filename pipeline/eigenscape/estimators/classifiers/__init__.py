"""Classifiers that spread few labels over the graph of all samples: one module for each, and what they share.

::

    labels       y: which samples have a label, and which class
    shares       labels spread over the graph, and read at new samples
    spreading    fit and predict of the classifiers that spread labels
"""
