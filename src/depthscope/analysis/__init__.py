"""What it means: the tidy table, intervals, findings, mean-field theory, diagnosis."""
