"""The program as a graph: written down by the API, compiled into levels and stages, printed for people."""
