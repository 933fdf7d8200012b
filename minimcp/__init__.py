"""minimcp."""
