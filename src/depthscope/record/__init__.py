"""What happened: the schema of a run's record, its events, its writer and its reader."""
