"""Measure a model on environments: concurrent, resumable rollouts against any OpenAI-compatible endpoint."""
