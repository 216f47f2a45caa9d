"""Windows: assigners, triggers, evictors, and the operators that run them."""
