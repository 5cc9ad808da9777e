"""Every public verb, one function each."""
