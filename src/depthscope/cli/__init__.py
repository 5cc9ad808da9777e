"""The only printer: arguments, environment, exit codes."""
