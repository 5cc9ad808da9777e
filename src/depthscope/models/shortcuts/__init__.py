"""Shortcuts: what goes around a block's branch (`skips`), how the two are joined (`joins`), by name (`named`)."""
