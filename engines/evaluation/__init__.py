"""The evaluation engine: sees designs and a graph, never a surrogate; returns outcomes."""
