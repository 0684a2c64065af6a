"""The built-in layers, one file each."""
