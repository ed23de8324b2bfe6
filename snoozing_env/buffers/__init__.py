"""Buffers of finished groups."""
