"""Data sets, the only downloader, and the draws of order and augmentation.

Every built-in data set is a function `fn(seed, root, **options) -> Dataset`. Nothing is read,
downloaded or written at import.
"""
