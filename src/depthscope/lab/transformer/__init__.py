"""A GPT by hand. Read `layers` first: each derivation stands there."""
