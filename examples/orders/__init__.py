"""An order desk over a SQLite file: the example server, and the demo that drives it."""
