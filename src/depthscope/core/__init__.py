"""What every room stands on: errors, named random streams, digests, atomic files, profiles, depth rules."""
