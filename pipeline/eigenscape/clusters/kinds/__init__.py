"""Kinds of cluster: jobs of queues, steps of an allocation, machines reached by ssh."""
