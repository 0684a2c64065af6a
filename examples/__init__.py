"""Whole servers that show how Stanchion is used; each folder is one of them."""
