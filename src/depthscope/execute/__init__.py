"""Many tasks: the worker, the executors, the driver."""
