"""Networks of the literature, written compactly at tiny widths: what is known of them stands in their docstrings."""
