"""What is asked: specs, the catalogue of names, plans, and the bundled studies (`named/*.toml`)."""
