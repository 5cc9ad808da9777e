"""One task: the only place where a spec becomes objects; yields events and writes nothing."""
